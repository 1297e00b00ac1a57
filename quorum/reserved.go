package quorum

// Keys of ours on every master, in every database that carries locks. Clients cannot touch them.
const (
	canaryKey     = "lockproxy:canary"     // a vouch.Canary: where it is what it was, the data is what it was
	quarantineKey = "lockproxy:quarantine" // there while the master's grants do not count: since when, and why
	horizonKey    = "lockproxy:horizon"    // its remaining TTL is never less than that of any lock granted there
	rosterKey     = "lockproxy:roster"     // the epochs of all masters, as far as this one was told
)

// Reserved says that name is one of the keys that lockproxy keeps for itself.
func Reserved(name string) bool {
	return name == canaryKey || name == quarantineKey || name == horizonKey || name == rosterKey
}
