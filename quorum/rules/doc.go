// Package rules has the decisions of Redlock: pure, without clock and without I/O. Tests check each rule over every pattern of votes.
//
// Enters: how many masters granted, refused and failed (Tally); what each master told of a key (Told); a TTL and the time that has passed.
// Leaves: a Decision that no later vote overturns, and that is never later than it could be; how long a lock may be relied upon.
//
//	decision.go    taking, releasing and extending a lock; what a quorum holds
//	validity.go    validity, drift, and for how long masters keep a key
//
// quorum/vote has the rules of clients' scripts, quorum/vouch those of whether a master may vote.
package rules
