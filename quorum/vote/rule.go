package vote

import "lockproxy/quorum/rules"

// A Rule says how the answers of N masters to one script merge. The zero Rule is for an unknown script.
type Rule struct {
	Merge Merge
	// Granted names the replies that grant: of Taking, Extending and Releasing. An error never does.
	Granted func(Value) bool
	// Each says that the reply of an extension is an array of integers, one vote for each: 1 granted, 0 refused.
	Each bool
	// Field is a field of the hash KEYS[1]: the counter of the caller's holds. Of a Taking, a quorum must agree on the field's value
	// after the script. Of a Releasing, a field that exists says that an outer hold of the caller keeps the lock.
	Field string
	// Late is the reply where a quorum granted, but too late to leave any validity: of Taking.
	Late Value
	// Blind says that the script takes a lock from any holder. The script must not take a lock that was granted after the script's
	// own client had been answered. So the round waits for each master, and a master that is reached later does not run the script.
	Blind bool
	// Queue is where a refused caller waits; nil if nowhere: of Taking, with a Field.
	Queue *Queue
	// Derived says that the script may touch keys that begin with one of KEYS and a colon.
	Derived bool
}

// A Merge is a way to merge.
type Merge uint8

// The ways to merge.
//
//	Merge      a quorum must                         else the reply is    put back are
//	Agreeing   reply the same, but for clock         an error             effects that differ from the agreed
//	           readings, with the same effects                            effects, or all
//	Taking     grant, and agree on Field             the refused one      grants, where they lose
//	Extending  grant, as decideExtend has it         the refused one      none
//	Releasing  grant, as decideRelease has it        the refused one      none
//	           keep the lock, or be free of it       an error
//	Telling    answer; the commonest reply counts    -                    none
//
// To put back is to restore a key that the script created or changed, where the key still is as the script left the key.
//
// Replies that refuse merge to the largest if they are integers, as remaining TTLs are, and else to the commonest. A client that
// waits in a Queue may be told less: see sooner.
//
// Integers that grant an extension or a release merge to the largest number that a quorum reaches: a quorum replied with this number
// or more. If fewer than a quorum granted, the integers merge to the least. A release of several keys tells how many of the keys the
// caller had. There, without Field, a failed master counts as reaching any number: a key that was deleted on one master may have been
// on the failed masters, too, and was the caller's then, as decideRelease has it for one key.
//
// Redisson's unlock replies 1 if the lock is free, and 0 if an outer hold keeps the lock. Masters may count different holds: a master
// that missed an inner lock frees the lock too early, a master that missed an inner unlock too late. So 0 is the reply only if a
// quorum keeps the lock, because the holder goes on relying on the lock; and 1 only if no quorum can, because 1 ends the holder's
// watchdog. A read lock's unlock replies 0, too, if only other clients keep the lock. There Field tells whether the caller does. If
// not, nobody relies on the lock by this reply, and the reply merges as any other integer.
//
// Replies that differ only in clock readings merge in the same way: the reply is the one with the largest readings that a quorum
// reaches.
const (
	Agreeing Merge = iota
	Taking
	Extending
	Releasing
	Telling
)

// PutsBack says that effects outside the decision are put back.
func (m Merge) PutsBack() bool { return m == Agreeing || m == Taking }

// Judge notes an answer's vote and effects for the rule. Judge is called once for each answer, before any other method sees the
// answer.
func (r *Rule) Judge(a *Answer) { a.Vote, a.did = r.vote(a), a.summary() }

// vote returns an answer's vote by the rule.
func (r *Rule) vote(a *Answer) rules.Vote {
	switch r.Merge {
	case Agreeing, Telling:
		return rules.Granted
	case Extending:
		if r.Each && a.Value.Kind == ArrayValue {
			return rules.Granted // its elements are the votes
		}
	}
	if a.isError() || !r.Granted(a.Value) {
		return rules.Refused
	}
	return rules.Granted
}

// keeps says that a master that granted a release keeps the lock, for an outer hold of the caller.
func (r *Rule) keeps(a *Answer) bool {
	return a.Value.Kind == IntValue && a.Value.Int == 0 && (r.Field == "" || a.Field != "")
}

// WorthAsking returns how often to ask, in all, and most at most, for a lock that some masters granted and that was not won.
func (r *Rule) WorthAsking(t rules.Tally, most int) int {
	switch {
	case r.Merge != Taking || t.Granted == 0:
		return 1
	case t.Refused >= rules.Quorum(t.Masters): // for one holder, which lacks a vote, or for several, whose votes were split
		return 2
	}
	return most
}
