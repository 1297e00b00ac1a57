package sim

import (
	"slices"
	"testing"
	"time"
)

// sharing are clients with one token: a holds the resource until 100 ms, and asks to release it at 90 ms.
type sharing struct {
	*World
	a, b, c *client
	first   *stake
}

const (
	ms            = time.Millisecond
	sharedRelease = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
)

func inSharing(t *testing.T, f func(s *sharing)) []string {
	return inWorld(t, func(w *World, a, b *client) {
		s := &sharing{World: w, a: a, b: b, c: &client{name: "c"}}
		s.first = s.begin()
		p := s.grant(s.first, a, 100*ms)
		time.Sleep(90 * ms)
		p.over, s.first.asked = true, w.now()
		f(s)
	})
}

func (s *sharing) begin() *stake { return s.checker.begins("r", "shared") }

// grant promises what a stake asks for, for so long.
func (s *sharing) grant(st *stake, c *client, d time.Duration) *promise {
	p := &promise{resource: "r", token: "shared", client: c, until: s.now() + d}
	st.becomes(p, s.now())
	s.checker.granted(p)
	return p
}

// set lets a master have a key with the token.
func (s *sharing) set(master int) {
	s.servers[master].command(&session{}, []string{"SET", "r", "shared", "PX", "200"})
}

// release lets a master run the release that was asked for first, as what was sent to it, perhaps again.
func (s *sharing) release(master int) {
	m, words := s.servers[master], []string{"EVAL", sharedRelease, "1", "r", "shared"}
	c := &session{giver: s.checker.gives(m, words)}
	m.command(c, words)
}

// A release that is late takes a key of the next holder, which is excused; and of nobody else.
func TestTheCheckerExcusesALateReleaseOfASharedToken(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(s *sharing)
		want []string
	}{
		{"of an attempt under way", func(s *sharing) {
			next := s.begin()
			time.Sleep(20 * ms)
			s.set(0)
			s.release(0)
			s.grant(next, s.b, 100*ms)
			s.grant(s.begin(), s.c, 100*ms)
		}, nil},
		{"of one that was granted", func(s *sharing) {
			time.Sleep(20 * ms)
			next := s.begin()
			s.set(0)
			s.grant(next, s.b, 100*ms)
			s.release(0)
			s.grant(s.begin(), s.c, 100*ms)
		}, nil},
		{"of the next but one, by the next", func(s *sharing) {
			next := s.begin()
			time.Sleep(20 * ms)
			s.set(0)
			s.release(0)
			p := s.grant(next, s.b, 100*ms)
			third := s.begin()
			s.set(0)
			s.grant(third, s.c, 100*ms)
			p.over, next.asked = true, s.now()
			s.release(0)
			s.grant(s.begin(), s.a, 100*ms)
		}, nil},
		{"a key that was set while its own lock held", func(s *sharing) {
			next := s.begin()
			s.set(0)
			time.Sleep(20 * ms)
			s.release(0)
			s.grant(next, s.b, 100*ms)
			s.grant(s.begin(), s.c, 100*ms)
		}, []string{twoHolders}},
		{"a key of before the attempt", func(s *sharing) {
			time.Sleep(20 * ms)
			s.set(0)
			time.Sleep(ms)
			next := s.begin()
			s.release(0)
			s.grant(next, s.b, 100*ms)
			s.grant(s.begin(), s.c, 100*ms)
		}, []string{twoHolders}},
		{"a key of after the grant", func(s *sharing) {
			time.Sleep(20 * ms)
			s.grant(s.begin(), s.b, 100*ms)
			time.Sleep(ms)
			s.set(0)
			s.release(0)
			s.grant(s.begin(), s.c, 100*ms)
		}, []string{twoHolders}},
		{"no key", func(s *sharing) {
			next := s.begin()
			time.Sleep(20 * ms)
			s.release(0)
			s.grant(next, s.b, 100*ms)
			s.grant(s.begin(), s.c, 100*ms)
		}, []string{twoHolders}},
		{"twice on one master", func(s *sharing) {
			time.Sleep(20 * ms)
			s.set(0)
			s.release(0)
			next := s.begin()
			s.set(0)
			s.release(0)
			s.grant(next, s.b, 100*ms)
			s.grant(s.begin(), s.c, 100*ms)
		}, []string{twoHolders}},
		{"sent too late", func(s *sharing) {
			time.Sleep(s.plan.Config.InstanceTimeout + 60*ms)
			next := s.begin()
			s.set(0)
			s.release(0)
			s.grant(next, s.b, 100*ms)
			s.grant(s.begin(), s.c, 100*ms)
		}, []string{twoHolders}},
		{"never asked for", func(s *sharing) {
			s.first.asked = 0
			next := s.begin()
			time.Sleep(20 * ms)
			s.set(0)
			s.release(0)
			s.grant(next, s.b, 100*ms)
			s.grant(s.begin(), s.c, 100*ms)
		}, []string{twoHolders}},
	} {
		if got := inSharing(t, test.do); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}
