package sim

import (
	"errors"
	"testing"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/vote"
)

const (
	expireText = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('pexpire', KEYS[1], ARGV[2]) or 0"
	// tellText is no lock's: it replies what was there.
	tellText = "local was = redis.call('get', KEYS[1]) redis.call('pexpire', KEYS[1], ARGV[2]) return was"
)

// As a ShedLock with safeUpdate unlocks a few ms before its lockAtLeastFor, over a slow network. What makes the lock last longer, or tells
// the validity, is in doubt.
func TestWhoGivesALockUpLateIsToldThatItIsDone(t *testing.T) {
	const short, gone = 40 * time.Millisecond, "..."
	granted := func(v vote.Value) bool { return v.Kind == vote.IntValue && v.Int > 0 }
	byVote := func(text string, rule vote.Rule) func(s *scene) (*quorum.Lock, error) {
		return func(s *scene) (*quorum.Lock, error) {
			r := <-begin(s.proxies[0].life.engine.Run, quorum.RunRequest{
				Script: quorum.NewScript(text), Keys: []string{resourceName(0)}, Args: []string{"mine", "40"}, Rule: rule,
			})
			return r.Lock, r.Err
		}
	}
	extends := func(fenced bool) func(s *scene) (*quorum.Lock, error) {
		return func(s *scene) (*quorum.Lock, error) {
			x := s.extendBy(0, quorum.ExtendRequest{Token: "mine", TTL: short, Fenced: fenced})
			return x.Lock, x.Err
		}
	}
	for _, test := range []struct {
		name   string
		was    time.Duration
		shorts func(s *scene) (*quorum.Lock, error)
		want   error
	}{
		{"compare and expire", time.Minute, extends(false), nil},
		{"compare and expire, longer", short, extends(false), quorum.ErrLate},
		{"EXTEND", time.Minute, extends(true), quorum.ErrLate},
		{"script that extends", time.Minute, byVote(expireText, vote.Rule{Merge: vote.Extending, Granted: granted}), nil},
		{"script that extends, longer", short, byVote(expireText, vote.Rule{Merge: vote.Extending, Granted: granted}), quorum.ErrLate},
		{"script of nobody knows what", time.Minute, byVote(tellText, vote.Rule{}), nil},
		{"script of nobody knows what, longer", short, byVote(tellText, vote.Rule{}), quorum.ErrLate},
	} {
		t.Run(test.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				if a := <-s.acquire(0, "mine", test.was, false); a.Lock == nil {
					t.Fatalf("not granted: %+v", a)
				}
				s.do(func() {
					for i := range s.servers {
						s.links[0][i].slow = 30 * time.Millisecond
					}
				})
				if lock, err := test.shorts(s); !errors.Is(err, test.want) || lock != nil {
					t.Errorf("%v, %v", err, lock)
				}
				s.expectHolders(time.Second, gone)
			})
		})
	}
}
