// Package group counts what becomes of locks by groups of keys, which the operator names: waits, holds and refusals. No key is told.
//
// Memory is fixed. The group of a key is found anew at each event: patterns are few, and a cache by key would grow.
package group

import (
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
)

// Other is the label of the keys that no pattern matches.
const Other = "other"

// A Rule puts the keys that a pattern matches into a group. Patterns are those of KEYS.
type Rule struct{ Pattern, Label string }

// An Outcome is how a wait ended.
type Outcome int

// The outcomes of a wait.
const (
	Granted Outcome = iota
	Refused         // another client held the lock to the end of the wait, or the waiting client was gone
	Failed          // an error, as without a quorum
	outcomes
)

func (o Outcome) String() string { return [outcomes]string{"granted", "refused", "failed"}[o] }

// Groups are the groups of a proxy. Nil has no groups, and counts nothing. Methods may be called on any goroutine; none waits for another.
type Groups struct {
	rules []rule
	all   []*group // each label once: in the order of the rules, then Other
	seed  maphash.Seed
	epoch time.Time // where the times in grants begin: 1 ms before the start, so that no grant is 0
	// grants have the latest grant of a key: in the upper 16 bits a hash of the key, then 16 bits of a hash of the token (0: unknown),
	// then the time of the grant in ms. 0: no grant. A key that gets the place of another key makes the other's hold go uncounted.
	grants [grantsMax]atomic.Uint64
}

// grantsMax is how many locks are timed at one moment, at most.
const grantsMax = 1 << 15

type rule struct {
	pattern string
	group   *group
}

type group struct {
	label   string
	waited  [outcomes]quorum.Histogram
	held    quorum.Histogram
	refused atomic.Uint64
}

// New returns the groups of the rules; nil without rules. The first rule that matches a key counts.
func New(rules []Rule) *Groups {
	if len(rules) == 0 {
		return nil
	}
	g, byLabel := &Groups{seed: maphash.MakeSeed(), epoch: time.Now().Add(-time.Millisecond)}, map[string]*group{}
	for _, r := range append(rules[:len(rules):len(rules)], Rule{"*", Other}) {
		in := byLabel[r.Label]
		if in == nil {
			in = &group{label: r.Label}
			byLabel[r.Label] = in
			g.all = append(g.all, in)
		}
		g.rules = append(g.rules, rule{r.Pattern, in})
	}
	return g
}

// of returns the group of a key. The last rule matches every key.
func (g *Groups) of(name string) *group {
	for i := range g.rules {
		if wire.Match(g.rules[i].pattern, name) {
			return g.rules[i].group
		}
	}
	return g.all[len(g.all)-1]
}

// Refuse counts an attempt that was refused, because another client holds the key.
func (g *Groups) Refuse(key quorum.Key) {
	if g != nil {
		g.of(key.Name).refused.Add(1)
	}
}

// Wait counts a wait for a lock that took so long.
func (g *Groups) Wait(key quorum.Key, is Outcome, took time.Duration) {
	if g != nil {
		g.of(key.Name).waited[is].Add(took)
	}
}

// Grant notes that the client with the token has the lock from now on. "" is an unknown token.
func (g *Groups) Grant(key quorum.Key, token string, now time.Time) {
	if g == nil {
		return
	}
	place, mark := g.place(key)
	place.Store(mark | g.mark(token) | uint64(uint32(now.Sub(g.epoch).Milliseconds())))
}

// End counts the hold of a lock that has ended now. An end by another token than the grant's counts nothing: the grant is that of an
// earlier lock. "" is an unknown token, and ends any.
func (g *Groups) End(key quorum.Key, token string, now time.Time) {
	if g == nil {
		return
	}
	place, mark := g.place(key)
	was, by := place.Load(), g.mark(token)
	if granted := was & tokenBits; was == 0 || was&keyBits != mark || granted != 0 && by != 0 && granted != by {
		return
	}
	ms := uint32(now.Sub(g.epoch).Milliseconds()) - uint32(was)   // right also when the time has passed 32 bits
	if ms > math.MaxUint32-uint32(time.Minute/time.Millisecond) { // the grant is a later lock's, noted since this end was
		return
	}
	if place.CompareAndSwap(was, 0) {
		g.of(key.Name).held.Add(time.Duration(ms) * time.Millisecond)
	}
}

// The parts of a grant.
const (
	keyBits   = 0xffff << 48
	tokenBits = 0xffff << 32
)

// place returns where the grant of a key is noted, and the key's part of the grant.
func (g *Groups) place(key quorum.Key) (*atomic.Uint64, uint64) {
	h := maphash.String(g.seed, key.Name) ^ uint64(key.DB)*0x9e3779b97f4a7c15
	return &g.grants[h%grantsMax], h & keyBits
}

// mark returns the token's part of a grant; 0 for an unknown token.
func (g *Groups) mark(token string) uint64 {
	if token == "" {
		return 0
	}
	return maphash.String(g.seed, token)&tokenBits | 1<<32
}

// A Count is what was counted of one group.
type Count struct {
	Label   string
	Waited  [outcomes]quorum.Durations // by Outcome
	Held    quorum.Durations
	Refused uint64
}

// Counts returns the counts of all groups, also of those without locks so far.
func (g *Groups) Counts() []Count {
	if g == nil {
		return nil
	}
	all := make([]Count, len(g.all))
	for i, in := range g.all {
		all[i] = Count{Label: in.label, Held: in.held.Load(), Refused: in.refused.Load()}
		for is := range in.waited {
			all[i].Waited[is] = in.waited[is].Load()
		}
	}
	return all
}
