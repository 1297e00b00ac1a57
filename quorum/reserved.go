package quorum

import "strings"

// Keys of ours on every master, in every database that carries locks. Clients cannot touch them.
const (
	canaryKey     = "lockproxy:canary"     // a vouch.Canary: where it is what it was, the data is what it was
	quarantineKey = "lockproxy:quarantine" // there while the master's grants do not count: since when, and why
	horizonKey    = "lockproxy:horizon"    // its remaining TTL is never less than that of any lock granted there
	rosterKey     = "lockproxy:roster"     // the epochs of all masters, as far as this one was told
	fenceKey      = "lockproxy:fence"      // the largest fence seen here, and in which epoch that is all there were; see fence.go
	trialKey      = "lockproxy:trial"      // there for no time, to see whether anything can be written
	recordPrefix  = fenceKey + ":"         // and a resource: its newest fence, and the epoch of that
)

// Reserved says that name is one of the keys that lockproxy keeps for itself.
func Reserved(name string) bool {
	if !strings.HasPrefix(name, "lockproxy:") {
		return false
	}
	switch name {
	case canaryKey, quarantineKey, horizonKey, rosterKey, fenceKey, trialKey:
		return true
	}
	return strings.HasPrefix(name, recordPrefix)
}
