package sim

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/quorum"
)

// inWorld runs f in a world without proxies and clients, where it calls the checker itself.
func inWorld(t *testing.T, f func(w *World, a, b *client)) []string {
	t.Helper()
	var rules []string
	synctest.Test(t, func(*testing.T) {
		p := NewPlan(Seed{Number: 1})
		p.Proxies, p.Forgets = 0, true // so that what the masters hold is no matter here
		w := newWorld(p, nil, nil)
		f(w, &client{name: "a"}, &client{name: "b"})
		for _, found := range w.checker.findings {
			rules = append(rules, found.Rule)
		}
	})
	return rules
}

func promised(c *client, until time.Duration) *promise {
	return &promise{resource: "r", token: c.name, client: c, until: until}
}

func TestTheCheckerFindsTwoHolders(t *testing.T) {
	const second = time.Second
	tests := []struct {
		name string
		do   func(w *World, a, b *client)
		want []string
	}{
		{"one after the other", func(w *World, a, b *client) {
			w.checker.granted(promised(a, second))
			time.Sleep(second)
			w.checker.granted(promised(b, 2*second))
		}, nil},
		{"one too early", func(w *World, a, b *client) {
			w.checker.granted(promised(a, second))
			time.Sleep(second - 1)
			w.checker.granted(promised(b, 2*second))
		}, []string{twoHolders}},
		{"after a release", func(w *World, a, b *client) {
			p := promised(a, second)
			w.checker.granted(p)
			p.over = true
			w.checker.granted(promised(b, second))
		}, nil},
		{"the holder again", func(w *World, a, _ *client) {
			w.checker.granted(promised(a, second))
			w.checker.granted(promised(a, second))
		}, nil},
		{"taken by a write", func(w *World, a, b *client) {
			w.checker.granted(promised(a, second))
			w.checker.doubt("r", second/2)
			w.checker.granted(promised(b, second))
		}, nil},
		{"the doubt is over", func(w *World, a, b *client) {
			w.checker.doubt("r", second/2)
			time.Sleep(second)
			w.checker.granted(promised(a, 2*second))
			w.checker.granted(promised(b, 2*second))
		}, []string{twoHolders}},
	}
	for _, test := range tests {
		if got := inWorld(t, test.do); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

// askExtended lets a client that holds a lock be told that its fence is not the newest, where so many masters have kept it.
func askExtended(w *World, a *client, extended bool, kept int) {
	w.plan.Forgets = false
	for _, s := range w.servers[:kept] {
		s.command(&session{}, []string{"SET", "lockproxy:fence:r", "1 5", "PX", "900"})
	}
	p := promised(a, time.Second)
	p.fence, p.extended = 5, extended
	w.checker.fenceTold("r", quorum.FenceView{}, w.checker.fenceMark("r"), p)
}

// takeVote deletes a key of the token a by a script that is told a word, and when the key expires, or so many milliseconds more.
func takeVote(w *World, word string, more int64) {
	s := w.servers[0]
	w.plan.Takeovers, w.plan.Votes = 0, 0
	ends := s.clock.millis(w.now()) + 100
	s.command(&session{}, []string{"SET", "r", "a", "PXAT", strconv.FormatInt(ends, 10)})
	s.command(&session{}, []string{"EVAL", "return redis.call('DEL', KEYS[1])", "1", "r", word, strconv.FormatInt(ends+more, 10)})
}

// setBygone sets a key whose lock is over, by a command that was sent so long after.
func setBygone(w *World, sent time.Duration) {
	w.plan.Takeovers, w.plan.Votes = 0, 0
	w.checker.bygone["a"] = w.now()
	w.servers[0].sent = w.now() + sent
	w.servers[0].command(&session{}, []string{"SET", "r", "a", "PX", "100"})
}

func TestTheCheckerFindsWhatElseMustNotBe(t *testing.T) {
	tests := []struct {
		name string
		do   func(w *World, a *client)
		want string
	}{
		{"a lock that is gone", func(w *World, a *client) {
			w.plan.Forgets = false
			w.checker.gone(promised(a, time.Second), "a test")
		}, lostLock},
		{"a lock that is over", func(w *World, a *client) {
			time.Sleep(time.Second)
			w.checker.gone(promised(a, time.Second), "a test")
		}, ""},
		{"a key for ever", func(w *World, _ *client) {
			w.servers[0].command(&session{}, []string{"SET", "k", "v"})
		}, forEver},
		{"a key for too long", func(w *World, _ *client) {
			w.servers[0].command(&session{}, []string{"SET", "k", "v", "EX", "3600"})
		}, forEver},
		{"a key by what was known of a clock that was set back since", func(w *World, _ *client) { setBack(w, false) }, ""},
		{"a key by what should be known of it", func(w *World, _ *client) { setBack(w, true) }, forEver},
		{"a key that was set back and keeps its instant", func(w *World, _ *client) {
			s, at := w.servers[0], setBack(w, false)
			s.command(&session{knew: s.clock.lead(w.now())}, []string{"SET", "k", "w", "PXAT", at})
		}, ""},
		{"an ordinary key", func(w *World, _ *client) {
			w.servers[0].command(&session{}, []string{"SET", "k", "v", "PX", "100"})
		}, ""},
		{"an attempt that took too long", func(w *World, _ *client) {
			w.checker.ended(2*w.plan.Config.InstanceTimeout+51*time.Millisecond, "a test")
		}, noEnd},
		{"a fence that is not known any more", func(w *World, a *client) { askExtended(w, a, false, 0) }, staleFence},
		{"one that a quorum has kept for an extended lock", func(w *World, a *client) { askExtended(w, a, true, len(w.servers)/2+1) }, staleFence},
		{"one that fewer have kept", func(w *World, a *client) { askExtended(w, a, true, len(w.servers)/2) }, ""},
		{"a lock that a minority holds", func(w *World, a *client) {
			w.plan.Forgets = false
			for _, s := range w.servers[:len(w.servers)/2] {
				s.command(&session{}, []string{"SET", "r", "a", "PX", "2000"})
			}
			w.checker.granted(promised(a, time.Second))
		}, minority},
		{"a lock that a quorum holds for too short a time", func(w *World, a *client) {
			w.plan.Forgets = false
			for _, s := range w.servers {
				s.command(&session{}, []string{"SET", "r", "a", "PX", "900"})
			}
			w.checker.granted(promised(a, time.Second))
		}, minority},
		{"a lock that a quorum holds", func(w *World, a *client) {
			w.plan.Forgets = false
			for _, s := range w.servers[:len(w.servers)/2+1] {
				s.command(&session{}, []string{"SET", "r", "a", "PX", "1100"})
			}
			w.checker.granted(promised(a, time.Second))
		}, ""},
		{"an attempt that was sent too late", func(w *World, _ *client) {
			w.checker.attempt("x", fate{failed: true})
			w.checker.sent([]string{"SET", "k", "x", "NX", "PX", "5"})
		}, afterEnd},
		{"an orphan", func(w *World, _ *client) { orphaned(w, "left") }, orphan},
		{"what somebody else made live longer", func(w *World, _ *client) {
			w.checker.prolonged["k"] = true
			orphaned(w, "left")
		}, ""},
		{"a lock that was granted", func(w *World, _ *client) { orphaned(w, "granted") }, ""},
		{"a vote that is taken without its token", func(w *World, _ *client) { takeVote(w, "b", 0) }, blindTaker},
		{"a vote that is taken by its token", func(w *World, _ *client) { takeVote(w, "a", 0) }, ""},
		{"a vote that is taken by its digest", func(w *World, _ *client) { takeVote(w, sha1hex("a"), 0) }, ""},
		{"a vote that is taken by its DUMP", func(w *World, _ *client) { takeVote(w, "sa", 0) }, ""},
		{"a vote of another expiry that is taken by its DUMP", func(w *World, _ *client) { takeVote(w, "sa", 9) }, blindTaker},
		{"a vote of another expiry that is taken by its digest", func(w *World, _ *client) { takeVote(w, sha1hex("a"), 9) }, blindTaker},
		{"a lock that is over and set again", func(w *World, _ *client) { setBygone(w, time.Second) }, zombie},
		{"a lock that is over and set late", func(w *World, _ *client) { setBygone(w, time.Millisecond) }, ""},
		{"a lock that is extended when somebody has taken it", func(w *World, a *client) {
			w.plan.Forgets = false
			w.checker.steals(a, "r", "a")
			w.checker.returns(promised(a, time.Second), w.now()+1)
		}, heldAgain},
		{"a lock that two have taken", func(w *World, a *client) {
			w.checker.steals(a, "r", "a")
			w.checker.steals(a, "r", "a")
		}, toldTwice},
	}
	for _, test := range tests {
		got := strings.Join(inWorld(t, func(w *World, a, _ *client) { test.do(w, a) }), ", ")
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// setBack sets a key for as long as may be, by what the clock showed before it was set back; a proxy that was told the
// time since knows better.
func setBack(w *World, told bool) (at string) {
	s := w.servers[0]
	c := &session{knew: s.clock.lead(w.now())}
	at = strconv.FormatInt(s.clock.millis(w.now())+w.checker.keptMost.Milliseconds(), 10)
	s.clock.step(w.now(), -10*time.Second)
	time.Sleep(time.Millisecond)
	if told {
		c.knew = s.clock.lead(w.now())
	}
	s.command(c, []string{"SET", "k", "v", "PXAT", at})
	return at
}

func orphaned(w *World, token string) {
	w.plan.Forgets = false
	p := &proxy{world: w}
	p.life = &life{proxy: p}
	w.checker.attempt("left", fate{life: p.life, failed: true})
	w.checker.attempt("granted", fate{life: p.life})
	w.servers[0].command(&session{}, []string{"SET", "k", token, "PX", "100"})
	w.checker.orphans()
}
