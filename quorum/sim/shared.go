package sim

import (
	"slices"
	"time"
)

// A stake is an attempt with a token that others use as well, and the lock that may come of the attempt.
//
// A release takes the key with its token, whoever set the key. So a slow master may run a release when the releaser's
// own lock is over, though the release was asked for in time. Then the release takes the next client's key there, as on
// one Redis, and nothing is promised to that client (docs/safety.md, "Tokens that are not unique"). No other loss of
// such a lock is excused: a taken key must have been set when the releaser's own lock was over, or had lost a key in
// this way itself.
type stake struct {
	resource, token string
	began           time.Duration    // true time, as all fields below
	lock            *promise         // nil until the lock is granted
	granted         time.Duration    // then
	robbed          time.Duration    // when one of its possible keys was first taken; 0 if none was
	asked           time.Duration    // when its release was asked for; 0 if never
	sent            map[*server]bool // where the release has been sent
}

// over is since when nothing of the lock need be there any more.
func (st *stake) over() time.Duration {
	if st.robbed != 0 {
		return min(st.robbed, st.lock.until)
	}
	return st.lock.until
}

// begins notes an attempt with a shared token.
func (k *checker) begins(resource, token string) *stake {
	st := &stake{resource: resource, token: token, began: k.world.now(), sent: make(map[*server]bool)}
	k.stakes[resource] = append(k.stakes[resource], st)
	return st
}

// ends notes that the attempt has failed.
func (k *checker) ends(st *stake) {
	k.stakes[st.resource] = slices.DeleteFunc(k.stakes[st.resource], func(other *stake) bool { return other == st })
}

// becomes notes that a lock was promised for the stake.
func (st *stake) becomes(p *promise, now time.Duration) {
	p.stake, p.doubtful = st, st.robbed != 0
	st.lock, st.granted = p, now
}

// gives returns the stake whose release is being sent to a master, nil for any other command. Releases of one token are
// sent in the order of the requests, if sent in time.
func (k *checker) gives(s *server, words []string) *stake {
	if len(words) != 5 || words[0] != "EVAL" && words[0] != "EVALSHA" || words[2] != "1" {
		return nil
	}
	var first *stake
	for _, st := range k.stakes[words[3]] {
		const slack = 50 * time.Millisecond // the patience of the engine counts in ticks
		inTime := k.world.now() <= st.asked+k.world.plan.loosest().InstanceTimeout+slack
		if st.asked != 0 && st.token == words[4] && !st.sent[s] && inTime && (first == nil || st.asked < first.asked) {
			first = st
		}
	}
	if first != nil {
		first.sent[s] = true
	}
	return first
}

// takes notes that the release of a stake has taken a key that was set at a true time.
func (k *checker) takes(by *stake, set time.Duration) {
	if set < by.over() {
		return
	}
	for _, st := range k.stakes[by.resource] {
		if st == by || st.token != by.token || st.began > set || st.lock != nil && st.granted < set {
			continue
		}
		if st.robbed == 0 {
			st.robbed = k.world.now()
			k.world.logf("checker", "%s: a release that is late has taken what an attempt of %.6f had on a master", st.resource, st.began.Seconds())
		}
		if st.lock != nil {
			st.lock.doubtful = true
		}
	}
}

// givesBack returns a function to call after the script of a stake's release.
func (s *server) givesBack(c *session, key string) func() {
	_, had := s.get(c, key)
	set := s.store.lastPut(c.db, key)
	return func() {
		if _, has := s.get(c, key); had && !has {
			s.world.checker.takes(c.giver, set)
		}
	}
}
