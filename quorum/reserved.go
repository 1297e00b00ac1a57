package quorum

// Keys of ours on every master, in every database that carries locks. Clients cannot touch them.
const (
	canaryKey     = "lockproxy:canary"     // says which process and which data this is
	quarantineKey = "lockproxy:quarantine" // there while the master's grants do not count
	horizonKey    = "lockproxy:horizon"    // its remaining TTL is never less than that of any lock granted there
)

// Reserved says that name is one of the keys that lockproxy keeps for itself.
func Reserved(name string) bool {
	return name == canaryKey || name == quarantineKey || name == horizonKey
}
