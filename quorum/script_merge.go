package quorum

import (
	"cmp"
	"iter"
	"slices"
)

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
	// Blind says that the script takes a lock from whoever holds it. It is not to take one that was granted when its client had
	// been answered: so it waits for each master, and what reaches a master later is not run.
	Blind bool
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
//	Extending  grant, as DecideExtend has it         the refused one      nothing
//	Releasing  grant, as DecideRelease has it        the refused one      nothing
//	           keep the lock, or be free of it       an error
//	Telling    answer; the commonest reply counts    -                    nothing
//
// To put back is to make a key that the script created or changed what it was, where it still is as the script left it.
//
// Replies that refuse merge to the largest if they are integers, as remaining TTLs are, and else to the commonest.
//
// Integers that grant an extension or a release merge to the largest number that a quorum reaches: so many masters replied
// with it or with more. If those who granted are no quorum, they merge to the least.
//
// Redisson's unlock replies 1 if it freed the lock, and 0 if an outer hold keeps it. Masters may count different holds: one that
// missed an inner lock frees it too early, one that missed an inner unlock too late. So 0 is the reply only if a quorum keeps the
// lock, because its holder goes on relying on it; and 1 only if no quorum can, because that ends the holder's watchdog. If the
// reply is 0 also where only other clients keep it, as a read lock, Field tells: nobody relies on their holds by this reply, and
// it merges as any other integer.
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

// A count is the state of a merge: the answers so far, by master, nil where there is none.
type count struct {
	rule    Rule
	masters int
	answers []*answer
	failed  int
	// unclocked says that a quorum agrees only if what the script was told of TTLs and the time is left out. It is settled
	// with the decision.
	unclocked bool
}

// vote returns what an answer is for a rule.
func (r *Rule) vote(a *answer) Vote {
	switch r.Merge {
	case Agreeing, Telling:
		return Granted
	case Extending:
		if r.Each && a.value.Kind == ArrayValue {
			return Granted // its elements are the votes
		}
	}
	if a.isError() || !r.Granted(a.value) {
		return Refused
	}
	return Granted
}

// who returns the answers that vote so.
func (c *count) who(v Vote) iter.Seq[*answer] {
	return func(yield func(*answer) bool) {
		for _, a := range c.answers {
			if a != nil && c.rule.vote(a) == v && !yield(a) {
				return
			}
		}
	}
}

// A class is what those who vote Granted must agree on.
type class struct{ reply, did, field string }

func (c *count) class(a *answer) class {
	switch r := &c.rule; {
	case r.Merge == Agreeing && c.unclocked:
		return class{reply: a.unclocked(), did: a.did()}
	case r.Merge == Agreeing:
		return class{reply: a.encoded, did: a.did()}
	case r.Merge == Taking && r.Field != "":
		return class{field: a.field}
	}
	return class{}
}

// largest returns the class that most granted answers are in, and how many.
func (c *count) largest() (agreed class, n int) {
	seen := make(map[class]int, 1)
	for a := range c.who(Granted) {
		k := c.class(a)
		if seen[k]++; seen[k] > n {
			agreed, n = k, seen[k]
		}
	}
	return agreed, n
}

// decide is the rule for t, the votes so far.
func (c *count) decide(t Tally) Decision {
	q := Quorum(t.Masters)
	switch {
	case c.rule.Blind && t.Pending() > 0:
		return Undecided
	case c.rule.Merge == Releasing:
		return c.decideRelease(t)
	case c.rule.Merge == Extending && c.rule.Each:
		return c.decideEach(t)
	case c.rule.Merge == Agreeing:
		same := c.alike(q)
		switch {
		case same >= q:
			return Won
		case t.Failed > t.spare():
			return Unanswered
		case same+t.Pending() < q && t.Answered() >= q:
			return Lost
		}
		return Undecided
	case c.rule.Merge == Extending:
		return DecideExtend(t)
	case c.rule.Field != "":
		_, same := c.largest()
		t.Refused += t.Granted - same
		t.Granted = same
	}
	return Decide(t)
}

// alike returns how many agree, and settles whether they do only if what clocks told is left out.
func (c *count) alike(quorum int) int {
	c.unclocked = false
	_, wholly := c.largest()
	if wholly >= quorum || !slices.ContainsFunc(c.answers, (*answer).toldByClocks) {
		return wholly
	}
	c.unclocked = true
	_, butForClocks := c.largest()
	c.unclocked = butForClocks >= quorum
	return max(wholly, butForClocks)
}

// decideEach waits, once a quorum has answered with arrays, until every element is decided, or one cannot be.
func (c *count) decideEach(t Tally) Decision {
	d := DecideExtend(t)
	if d != Won {
		return d
	}
	for _, one := range c.elements(t.Failed) {
		switch DecideExtend(one) {
		case Unanswered: // there is no reply that says so of one
			return Unanswered
		case Undecided:
			d = Undecided
		}
	}
	return d
}

// elements counts the votes on each element. An array that is too short, or no array, refuses.
func (c *count) elements(failed int) []Tally {
	var all []Tally
	answered := 0
	for _, a := range c.answers {
		if a == nil {
			continue
		}
		answered++
		i := 0
		for vote := range a.value.Parts() {
			if i == len(all) {
				all = append(all, Tally{Masters: c.masters, Failed: failed})
			}
			if vote.Kind == IntValue && vote.Int > 0 {
				all[i].Granted++
			}
			i++
		}
	}
	for i := range all {
		all[i].Refused = answered - all[i].Granted
	}
	return all
}

// decideRelease waits, once the release is done, until it is clear whether a quorum keeps the lock all the same.
func (c *count) decideRelease(t Tally) Decision {
	q, kept := Quorum(t.Masters), c.kept()
	switch d := DecideRelease(t); {
	case d != Won || kept >= q:
		return d
	case kept+t.Failed+t.Pending() < q && (t.Pending() == 0 || c.givenIsClear(t)):
		return Won
	case kept+t.Pending() < q && kept+t.Failed >= q:
		return Unanswered
	}
	return Undecided
}

// keeps says that a master that granted a release keeps the lock, for an outer hold of the caller.
func (r *Rule) keeps(a *answer) bool {
	return a.value.Kind == IntValue && a.value.Int == 0 && (r.Field == "" || a.field != "")
}

// kept returns how many do.
func (c *count) kept() (n int) {
	for a := range c.who(Granted) {
		if c.rule.keeps(a) {
			n++
		}
	}
	return n
}

// givenIsClear says that the masters that have not answered can no longer change the reply of a Releasing.
func (c *count) givenIsClear(t Tally) bool {
	q, n := Quorum(t.Masters), c.granted()
	low, high := n, n
	for range t.Pending() {
		low, high = append([]int64{-1 << 63}, low...), append(high, 1<<63-1)
	}
	slices.Sort(high)
	if len(low) < q || len(high) < q {
		return false
	}
	return low[len(low)-q] == high[len(high)-q]
}

// granted returns the integers of the granted answers, ascending, but for those of masters that keep the lock.
func (c *count) granted() []int64 {
	var n []int64
	for a := range c.who(Granted) {
		if !c.rule.keeps(a) {
			n = append(n, a.value.Int)
		}
	}
	slices.Sort(n)
	return n
}

// won returns the reply of a round that a quorum granted.
func (c *count) won() Value {
	agreed, _ := c.largest()
	switch {
	case c.rule.Merge == Extending && c.rule.Each:
		return c.each()
	case c.rule.Merge == Releasing && c.kept() >= Quorum(c.masters):
		return Value{Kind: IntValue}
	case c.rule.Merge == Extending || c.rule.Merge == Releasing:
		if n := c.granted(); len(n) > 0 {
			i := max(len(n)-Quorum(c.masters), 0)
			return c.commonest(Granted, func(a *answer) bool { return a.value.Int == n[i] })
		}
	}
	agrees := func(a *answer) bool { return c.class(a) == agreed }
	if c.unclocked {
		return c.atLeast(agrees)
	}
	return c.commonest(Granted, agrees)
}

// atLeast returns, of granted answers that are the same but for what clocks told, the largest that a quorum reaches.
func (c *count) atLeast(of func(*answer) bool) Value {
	all := slices.SortedFunc(c.who(Granted), func(a, b *answer) int { return slices.Compare(b.clocks, a.clocks) })
	if all = slices.DeleteFunc(all, func(a *answer) bool { return !of(a) }); len(all) == 0 {
		return Value{}
	}
	return all[min(Quorum(c.masters), len(all))-1].value
}

// each merges arrays, element by element.
func (c *count) each() Value {
	var all []int64
	for _, one := range c.elements(c.failed) {
		said := int64(0)
		if Decide(one) == Won {
			said = 1
		}
		all = append(all, said)
	}
	return integers(all...)
}

// refused returns the reply of those that refused, and false if nobody did. That a client does not hold its lock only a quorum can say:
// else the reply is the error of a master that could not look.
func (c *count) refused() (Value, bool) {
	all, no, numbers := 0, 0, 0
	others, most, largest := make(map[string]int), 0, Value{}
	for a := range c.who(Refused) {
		if all++; !a.isError() {
			no++
		}
		if a.value.Kind != IntValue {
			others[a.encoded]++
			most = max(most, others[a.encoded])
		} else if numbers++; numbers == 1 || a.value.Int > largest.Int {
			largest = a.value
		}
	}
	if no < min(all, Quorum(c.masters)) && (c.rule.Merge == Releasing || c.rule.Merge == Extending) {
		return c.commonest(Refused, (*answer).isError), true
	}
	if numbers > 0 && numbers >= most {
		return largest, true
	}
	return c.commonest(Refused, func(*answer) bool { return true }), most > 0
}

// worthAsking returns how often to ask, in all, for a lock that some masters granted and that was not won.
func (c *count) worthAsking() int {
	granted, refused := 0, 0
	for range c.who(Granted) {
		granted++
	}
	for range c.who(Refused) {
		refused++
	}
	switch {
	case c.rule.Merge != Taking || granted == 0:
		return 1
	case refused >= Quorum(c.masters): // of one holder, who lacks a vote, or of several whose votes were split
		return 2
	}
	return askedMax
}

// commonest returns the reply that most of some answers gave that vote so; of several, the one that sorts first.
func (c *count) commonest(v Vote, of func(*answer) bool) Value {
	seen := make(map[string]int)
	var best *answer
	for a := range c.who(v) {
		if !of(a) {
			continue
		}
		seen[a.encoded]++
		if best == nil || seen[a.encoded] > seen[best.encoded] ||
			seen[a.encoded] == seen[best.encoded] && cmp.Less(a.encoded, best.encoded) {
			best = a
		}
	}
	if best == nil {
		return Value{}
	}
	return best.value
}

// wrong says that what this answer did is to be put back, given how the round ended.
func (c *count) wrong(a *answer, d Decision) bool {
	switch c.rule.Merge {
	case Agreeing:
		agreed, _ := c.largest()
		return d != Won || c.class(a) != agreed
	case Taking:
		agreed, _ := c.largest()
		return c.rule.vote(a) == Granted && (d != Won || c.class(a) != agreed)
	}
	return false
}

// ttl returns the shortest TTL that those who granted have set, 0 if they set none.
func (c *count) ttl() (least int64) {
	agreed, _ := c.largest()
	for a := range c.who(Granted) {
		if ms := a.ttl().Milliseconds(); c.class(a) == agreed && ms > 0 && (least == 0 || ms < least) {
			least = ms
		}
	}
	return least
}
