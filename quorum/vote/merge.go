package vote

import (
	"iter"
	"slices"
	"time"

	"lockproxy/quorum/rules"
)

// A Count is the state of a merge: the answers so far, by master, nil where there is none.
type Count struct {
	Rule    Rule
	Answers []*Answer

	// The findings of decide, fixed with the decision: a later answer changes no finding.
	agreed    class // of most granted answers
	same      int   // the number of answers in agreed
	unclocked bool  // a quorum agrees only if clock readings are left out
}

// Who returns the answers with the vote v.
func (c *Count) Who(v rules.Vote) iter.Seq[*Answer] {
	return func(yield func(*Answer) bool) {
		for _, a := range c.Answers {
			if a != nil && a.Vote == v && !yield(a) {
				return
			}
		}
	}
}

// A class is the part of an answer on which Granted votes must agree.
type class struct{ reply, did, field string }

func (c *Count) class(a *Answer) class {
	switch r := &c.Rule; {
	case r.Merge == Agreeing && c.unclocked:
		return class{reply: a.unclocked(), did: a.did}
	case r.Merge == Agreeing:
		return class{reply: a.encoded, did: a.did}
	case r.Merge == Taking && r.Field != "":
		return class{field: a.Field}
	}
	return class{}
}

// classify finds the class of most granted answers.
func (c *Count) classify() {
	c.agreed, c.same = class{}, 0
	for a := range c.Who(rules.Granted) {
		is, n := c.class(a), 0
		for other := range c.Who(rules.Granted) {
			if c.class(other) == is {
				n++
			}
		}
		if n > c.same {
			c.agreed, c.same = is, n
		}
	}
}

// Decide is the rule for t, the votes so far.
func (c *Count) Decide(t rules.Tally) rules.Decision {
	q := rules.Quorum(t.Masters)
	switch {
	//mutant: what takes a lock from whoever holds it is answered by a quorum
	case c.Rule.Blind && t.Pending() > 0:
		return rules.Undecided
	case c.Rule.Merge == Releasing:
		return c.decideRelease(t)
	case c.Rule.Merge == Extending && c.Rule.Each:
		return c.decideEach(t)
	case c.Rule.Merge == Agreeing:
		c.alike(q)
		switch {
		case c.same >= q:
			return rules.Won
		case t.Failed > t.Spare():
			return rules.Unanswered
		case c.same+t.Pending() < q && t.Answered() >= q:
			return rules.Lost
		}
		return rules.Undecided
	case c.Rule.Merge == Extending:
		return rules.DecideExtend(t)
	case c.Rule.Field != "":
		c.classify()
		t.Refused += t.Granted - c.same
		t.Granted = c.same
	}
	return rules.DecideAcquire(t)
}

// alike is classify, and leaves out clock readings if a quorum agrees only then.
func (c *Count) alike(quorum int) {
	c.unclocked = false
	c.classify()
	if c.same >= quorum || !slices.ContainsFunc(c.Answers, (*Answer).toldByClocks) {
		return
	}
	wholly, agreed := c.same, c.agreed
	c.unclocked = true
	if c.classify(); c.same < quorum {
		c.unclocked, c.agreed, c.same = false, agreed, max(wholly, c.same)
	}
}

// decideEach waits, once a quorum has answered with arrays, until every element is decided, or some element cannot be.
func (c *Count) decideEach(t rules.Tally) rules.Decision {
	d := rules.DecideExtend(t)
	if d != rules.Won {
		return d
	}
	for _, one := range c.elements(t.Failed) {
		switch rules.DecideExtend(one) {
		case rules.Unanswered: // no reply can say so of a single element
			return rules.Unanswered
		case rules.Undecided:
			d = rules.Undecided
		}
	}
	return d
}

// elements counts the votes on each element. An array that is too short, or no array, refuses. An element that is an error is no
// vote.
func (c *Count) elements(failed int) []rules.Tally {
	var all []rules.Tally
	answered := 0
	for _, a := range c.Answers {
		if a == nil {
			continue
		}
		answered++
		i := 0
		for said := range a.Value.Parts() {
			if i == len(all) {
				all = append(all, rules.Tally{Masters: len(c.Answers), Failed: failed})
			}
			switch {
			case said.Kind == IntValue && said.Int > 0:
				all[i].Granted++
			case said.Kind == ErrorValue:
				all[i].Failed++
			}
			i++
		}
	}
	for i := range all {
		all[i].Refused = answered - all[i].Granted - (all[i].Failed - failed)
	}
	return all
}

// decideRelease waits, once the release is done, until it is clear whether a quorum keeps the lock all the same.
func (c *Count) decideRelease(t rules.Tally) rules.Decision {
	q, kept := rules.Quorum(t.Masters), c.kept()
	switch d := rules.DecideRelease(t); {
	case d != rules.Won || kept >= q:
		return d
	case kept+t.Failed+t.Pending() < q && (t.Pending() == 0 || c.givenIsClear(t)):
		return rules.Won
	case kept+t.Pending() < q && kept+t.Failed >= q:
		return rules.Unanswered
	}
	return rules.Undecided
}

// kept returns how many of the masters that granted a release keep the lock.
func (c *Count) kept() (n int) {
	for a := range c.Who(rules.Granted) {
		if c.Rule.keeps(a) {
			//mutant: one master that keeps a lock is a quorum
			n++
		}
	}
	return n
}

// givenIsClear says that the unanswered masters can no longer change the reply of a Releasing.
func (c *Count) givenIsClear(t rules.Tally) bool {
	n := c.granted()
	least := len(n) - c.reach(t.Failed) // where in n the reply is, if all the others reply with less; most: if with more, or not
	most := least + t.Pending()
	return least >= 0 && most < len(n) && n[least] == n[most]
}

// reach returns how many masters have to reply with a number, or more, if it is to be the reply, where so many have failed.
func (c *Count) reach(failed int) int {
	if c.Rule.Merge == Releasing && c.Rule.Field == "" {
		//mutant: who does not answer a release had nothing to release
		return rules.Quorum(len(c.Answers)) - failed
	}
	return rules.Quorum(len(c.Answers))
}

// given returns the integer to which the granted integers n merge.
func (c *Count) given(n []int64) int64 {
	failed := 0
	for _, a := range c.Answers {
		if a == nil {
			failed++
		}
	}
	return n[len(n)-min(max(c.reach(failed), 1), len(n))]
}

// granted returns the integers of the granted answers, ascending, without the masters that keep the lock.
func (c *Count) granted() []int64 {
	var n []int64
	for a := range c.Who(rules.Granted) {
		if !c.Rule.keeps(a) {
			n = append(n, a.Value.Int)
		}
	}
	slices.Sort(n)
	return n
}

// Reply returns the reply of a round that a quorum granted.
func (c *Count) Reply() Value {
	switch {
	case c.Rule.Merge == Extending && c.Rule.Each:
		return c.each()
	case c.Rule.Merge == Releasing && c.kept() >= rules.Quorum(len(c.Answers)):
		return Value{Kind: IntValue}
	case c.Rule.Merge == Extending || c.Rule.Merge == Releasing:
		if n := c.granted(); len(n) > 0 {
			given := c.given(n)
			return c.commonest(rules.Granted, func(a *Answer) bool { return a.Value.Int == given })
		}
	}
	if c.unclocked {
		return c.atLeast(c.agrees)
	}
	return c.commonest(rules.Granted, c.agrees)
}

// agrees says that an answer is in the agreed class.
func (c *Count) agrees(a *Answer) bool { return c.class(a) == c.agreed }

// atLeast returns the largest value that a quorum reaches, of granted answers that differ in clock readings alone.
func (c *Count) atLeast(of func(*Answer) bool) Value {
	all := slices.SortedFunc(c.Who(rules.Granted), func(a, b *Answer) int { return slices.Compare(b.clocks, a.clocks) })
	if all = slices.DeleteFunc(all, func(a *Answer) bool { return !of(a) }); len(all) == 0 {
		return Value{}
	}
	return all[min(rules.Quorum(len(c.Answers)), len(all))-1].Value
}

// each merges arrays, element by element.
func (c *Count) each() Value {
	var all []int64
	for _, one := range c.elements(0) {
		said := int64(0)
		if rules.DecideAcquire(one) == rules.Won {
			said = 1
		}
		all = append(all, said)
	}
	return integers(all...)
}

// Refusal returns the reply of the masters that refused, and false if none did. Only a quorum can say that a client does not hold its
// lock: without a quorum the reply is the error of a master that could not look.
func (c *Count) Refusal() (Value, bool) {
	all, no, numbers := 0, 0, 0
	others, most, largest := make(map[string]int), 0, Value{}
	for a := range c.Who(rules.Refused) {
		if all++; !a.isError() {
			no++
		}
		if a.Value.Kind != IntValue {
			others[a.encoded]++
			most = max(most, others[a.encoded])
		} else if numbers++; numbers == 1 || a.Value.Int > largest.Int {
			largest = a.Value
		}
	}
	//mutant: who could not look says no
	if no < min(all, rules.Quorum(len(c.Answers))) && (c.Rule.Merge == Releasing || c.Rule.Merge == Extending) {
		return c.commonest(rules.Refused, (*Answer).isError), true
	}
	if numbers > 0 && numbers >= most {
		return largest, true
	}
	return c.commonest(rules.Refused, func(*Answer) bool { return true }), most > 0
}

// Briefly returns a refusal upon which the client asks again soon: a remaining TTL, as masters told it, is at most most.
func (c *Count) Briefly(refusal Value, most time.Duration) Value {
	for a := range c.Who(rules.Refused) {
		if a.toldByClocks() && a.Value == refusal {
			refusal.Int = min(refusal.Int, most.Milliseconds())
		}
	}
	return refusal
}

// commonest returns the reply of most answers, among the answers with the vote v that of accepts; of several commonest replies, the
// first in sorting order.
func (c *Count) commonest(v rules.Vote, of func(*Answer) bool) Value {
	seen := make(map[string]int)
	var best *Answer
	for a := range c.Who(v) {
		if !of(a) {
			continue
		}
		seen[a.encoded]++
		if best == nil || seen[a.encoded] > seen[best.encoded] ||
			seen[a.encoded] == seen[best.encoded] && a.encoded < best.encoded {
			best = a
		}
	}
	if best == nil {
		return Value{}
	}
	return best.Value
}

// IsWrong says that the answer's effects are to be put back, given how the round ended.
func (c *Count) IsWrong(a *Answer, d rules.Decision) bool {
	if !c.Rule.Merge.PutsBack() || a.Vote != rules.Granted {
		return false
	}
	return d != rules.Won || !c.agrees(a) && !c.didTheSame(a)
}

// didTheSame says that an answer outside the agreed class is of a master with the same changes as the agreed answers, created keys
// included. Else a release would be undone there because of the rest of the master's reply, and so would a lock.
func (c *Count) didTheSame(a *Answer) bool {
	if c.Rule.Merge != Agreeing || a.did != c.agreed.did {
		return false
	}
	for other := range c.Who(rules.Granted) {
		if c.agrees(other) && a.createdAs(other) {
			return true
		}
	}
	return false
}

// TTL returns the shortest TTL that the granted answers have set and that is to be promised, 0 if there is none. A script that takes
// a lock gives up nothing.
func (c *Count) TTL(gives Giving) (least time.Duration) {
	if c.Rule.Merge == Taking {
		gives = Giving{}
	}
	for a := range c.Who(rules.Granted) {
		if ttl := a.ttl(gives); c.agrees(a) && ttl > 0 && (least == 0 || ttl < least) {
			least = ttl
		}
	}
	return least
}

// Replaced returns the keys that a winning script has deleted, or given another value.
func (c *Count) Replaced() (names []string) {
	for a := range c.Who(rules.Granted) {
		if !c.agrees(a) {
			continue
		}
		for _, e := range a.Effects {
			if e.Kind == Deleted || e.Kind == Changed {
				names = append(names, e.Name)
			}
		}
		break
	}
	return names
}

// Queues says that a refused script is to reach the masters that have not been asked yet, too: the script has left something on others,
// such as a place in the queue of a fair lock, and the queues are to be alike. Not so if a master granted: then
// the script is put back, or run again.
func (c *Count) Queues() bool {
	left := false
	for _, a := range c.Answers {
		switch {
		case a == nil:
		case a.Vote == rules.Granted:
			return false
		case len(a.Effects) > 0:
			left = true
		}
	}
	return left && c.Rule.Merge == Taking
}
