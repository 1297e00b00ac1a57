package gate

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/quorum"
)

// A gate's goroutine is held up between the end of a try and what follows from the try. A handover in between tells when the resource is
// free next: the waiter behind goes by the lock that was handed over, which ends by its TTL.
func TestAHandoverOvertakesTheEndOfATry(t *testing.T) {
	const held = 20 * time.Millisecond // how long the goroutine is held up
	for name, c := range map[string]struct {
		won  bool // the try got the lock
		want string
	}{
		"won":  {true, "a b c"},
		"lost": {false, "b c"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := false
				w := &world{t: t, votes: "rrr", hears: all}
				w.Gates = New(w, w, 3, func(most time.Duration) time.Duration {
					if slow {
						slow = false
						time.Sleep(held)
					}
					return most / 2
				})
				w.hold("x", time.Hour)
				var got []string
				take := func(token string, ttl, busy time.Duration) {
					w.Gates.Acquire(quorum.AcquireRequest{Key: key, Token: token, TTL: ttl}, 2*time.Hour, func(quorum.Acquired) {
						w.set(func() { got = append(got, token) })
						time.Sleep(busy)
					})
					time.Sleep(10 * time.Millisecond)
				}
				if c.won {
					take("a", time.Hour, held)
				}
				take("b", time.Second, 0)
				take("c", time.Second, 0)
				if c.won {
					w.Gates.HandOver(key, "x", func(quorum.Released) {}) // the first release is open
					time.Sleep(5 * time.Millisecond)
					w.Gates.Release(key, "a", func(quorum.Released) {})
				} else {
					w.Gates.mu.Lock()
					w.Gates.mayHandOver(key) // the turn has begun
					w.Gates.mu.Unlock()
					slow = true
					w.ring(0, 1, 2) // in vain
					time.Sleep(2 * time.Millisecond)
					w.Gates.HandOver(key, "x", func(quorum.Released) {})
				}
				time.Sleep(5 * time.Second)
				w.set(func() {
					if now := strings.Join(got, " "); now != c.want {
						t.Errorf("%q have got the lock, want %q", now, c.want)
					}
				})
				time.Sleep(2 * time.Hour)
				w.Close()
			})
		})
	}
}
