package vote

import "lockproxy/quorum/rules"

// A Rule says how the answers of N masters to one script merge. The zero Rule is for a script of which nothing is known.
type Rule struct {
	Merge Merge
	// Granted says which replies grant: of Taking, Extending and Releasing. An error never does.
	Granted func(Value) bool
	// Each says that the reply of an extension is an array of integers, one vote for each: 1 granted, 0 refused.
	Each bool
	// Field is a field of the hash KEYS[1], in which the caller's holds are counted. Of Taking, a quorum must agree on what it
	// is after the script; of Releasing, its being there says that an outer hold of the caller keeps the lock.
	Field string
	// Late is the reply where a quorum granted, but too late to leave any validity: of Taking.
	Late Value
	// Blind says that the script takes a lock from whoever holds it. It must not take one that was granted after its own client
	// had been answered: so the round waits for each master, and a master that is reached later does not run the script.
	Blind bool
	// Queue is where a refused caller waits, if there is one: of Taking, with a Field.
	Queue *Queue
	// Derived says that the script may touch keys that begin with one of KEYS and a colon.
	Derived bool
}

// A Merge is a way to merge.
type Merge uint8

// The ways to merge.
//
//	Merge      a quorum must                         else the reply is    what is put back
//	Agreeing   reply the same, but for what clocks   an error             what differs from what was agreed on,
//	           told, with the same effects                                or all
//	Taking     grant, and agree on Field             the refused one      grants, where they lose
//	Extending  grant, as decideExtend has it         the refused one      nothing
//	Releasing  grant, as decideRelease has it        the refused one      nothing
//	           keep the lock, or be free of it       an error
//	Telling    answer; the commonest reply counts    -                    nothing
//
// To put back is to make a key that the script created or changed what it was, where it still is as the script left it.
//
// Replies that refuse merge to the largest if they are integers, as remaining TTLs are, and else to the commonest. Who waits in a
// Queue may be told less: see sooner.
//
// Integers that grant an extension or a release merge to the largest number that a quorum reaches: so many masters replied
// with it or with more. If those who granted are no quorum, they merge to the least. A release of several keys tells how many of
// them the caller had. There, that is without Field, a master that failed counts as one that reaches any number: a key that was
// deleted on one master may have been on those that failed, too, and was the caller's then, as decideRelease has it for one key.
//
// Redisson's unlock replies 1 if it freed the lock, and 0 if an outer hold keeps it. Masters may count different holds: one that
// missed an inner lock frees it too early, one that missed an inner unlock too late. So 0 is the reply only if a quorum keeps the
// lock, because its holder goes on relying on it; and 1 only if no quorum can, because that ends the holder's watchdog. A read
// lock's unlock replies 0, too, if only other clients keep the lock. There Field tells whether the caller does. If not, nobody
// relies on the lock by this reply, and it merges as any other integer.
//
// Replies that differ only in what the script was told of TTLs and the time merge in the same way: the reply is the one with
// the largest of these that a quorum reaches.
const (
	Agreeing Merge = iota
	Taking
	Extending
	Releasing
	Telling
)

// PutsBack says that what does not belong to the decision is put back.
func (m Merge) PutsBack() bool { return m == Agreeing || m == Taking }

// Judge notes what an answer is for the rule. It is called once for each answer, before any other method is told of the answer.
func (r *Rule) Judge(a *Answer) { a.Vote, a.did = r.vote(a), a.summary() }

// vote returns what an answer is for a rule.
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
