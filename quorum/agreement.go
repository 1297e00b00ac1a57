package quorum

import (
	"fmt"
	"math"
	"slices"
	"time"

	"lockproxy/quorum/rules"
	"lockproxy/quorum/vouch"
)

// An agreement is what masters tell of a key in one round, and what a quorum of them agrees on.
type agreement struct {
	told   []sighting // the answers that count, as they came; guarded by round.mu, as is agreed
	agreed rules.Opinion
}

// A sighting is an opinion, and what else its master tells of the key.
type sighting struct {
	rules.Told
	length int           // of a string in bytes, of anything else in entries
	head   string        // the first bytes of a long value, if they were asked for
	left   time.Duration // how long the master will keep the key; below 0 if for ever
	ends   int64         // when the master will drop the key, ms of its clock; if it was asked
	slack  int64         // how inexact ends is, ms
	late   time.Duration // by how much that is later than its client asked, as far as is known
	later  time.Duration // by how much it may be later
	drops  vouch.Span    // when that is by our clock; see readRound.timeDrops
	master int
	epoch  int64 // of the master, when it told
}

// hear adds what a master tells, if it counts. The vote is granted whatever the master says: it has answered.
func (a *agreement) hear(en *entry, s sighting) ballot {
	is := granted
	if !s.Exists {
		is = grantedIfClean
	}
	if en.counts(is) {
		a.add(en, s)
	}
	return is
}

func (a *agreement) add(en *entry, s sighting) {
	if a.told == nil {
		a.told = make([]sighting, 0, len(en.round.entries))
	}
	s.master, s.epoch, s.Old = en.master, en.epoch, !en.clean
	a.told = append(a.told, s)
}

// decide is the rule of a round that reads one key.
func (a *agreement) decide(t rules.Tally) (d rules.Decision) {
	a.agreed, d = rules.DecideRead(t, a.told)
	return d
}

// view returns what was agreed on. It is called with the round's mu held.
func (a *agreement) view(e *Engine) View {
	if !a.agreed.Exists {
		return View{Type: "none"}
	}
	v := View{Exists: true, Type: typeName(a.agreed.Kind), told: a.told, seen: a.agreed}
	v.TTL, v.TTLMost = e.cfg.remaining(a.told, a.agreed, rules.Quorum(len(e.masters)))
	if a.agreed.Kind == "string" {
		v.Value = a.agreed.Value
	}
	for _, s := range a.told {
		if s.Opinion == a.agreed {
			v.Length, v.head = s.length, s.head
		}
	}
	return v
}

// typeName returns the type, as TYPE names it, of a kind.
func typeName(kind string) string {
	if kind == digestedKind || kind == sampledKind {
		return "string"
	}
	return kind
}

// content is what is there, as a master tells it that is asked for digests: what changes depend on is compared with that.
func (v *View) content() (kind, content string) {
	switch {
	case v.Type == "string" && len(v.Value) > shortMax:
		return digestedKind, fmt.Sprintf("%s:%d", shaOf(v.Value), len(v.Value))
	case v.seen.Exists:
		return v.seen.Kind, v.seen.Value
	}
	return v.Type, v.Value
}

// remaining returns for how long a quorum of so many masters will still hold what was agreed on, and for how long any master will, both as the
// client that set it counts. The latter is no more than ttl_max allows: a master whose clock was set back may tell more.
func (c *Config) remaining(told []sighting, agreed rules.Opinion, quorum int) (ttl, most time.Duration) {
	var left []time.Duration
	longest := time.Duration(math.MinInt64)
	for _, s := range told {
		if s.Opinion == agreed {
			left = append(left, c.lasts(s.left)-s.later)
			longest = max(longest, c.lasts(s.left)-s.late)
		}
	}
	slices.Sort(left)
	return c.shown(left[len(left)-quorum]), c.shown(min(longest, c.kept(c.TTLMax)))
}

// timeLateness notes by how much a key is kept longer than its client asked. It is called by the lane's loop.
func (s *sighting) timeLateness(c *laneClock, name string) {
	if s.Exists && s.left >= 0 {
		least, most := c.lateness(signature{name: name, token: s.Value}, s.ends, s.slack)
		s.late, s.later = time.Duration(least)*time.Millisecond, time.Duration(most)*time.Millisecond
	}
}

// lasts is for how long a master will keep a key whose PTTL is left.
func (c *Config) lasts(left time.Duration) time.Duration {
	if left < 0 { // set on the master by someone else, for ever
		return c.kept(c.TTLMax)
	}
	return left
}
