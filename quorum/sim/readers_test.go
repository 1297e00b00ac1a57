package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/vote"
)

// A lock of readers is held on by others where a master has missed an extension, and the caller's own hold is over there. Who extends it
// then has no vote of that master: it would free the lock as soon as the others leave. But that is no "not held" either. The caller
// holds its write lock, too, which has no such time.
func TestAReaderExtendsOnlyWhereItsOwnHoldIs(t *testing.T) {
	const several = "redis.call('pexpire', KEYS[1], ARGV[1]) redis.call('pexpire', KEYS[2] .. ':' .. ARGV[3] .. ':rwlock_timeout:1', ARGV[1]) " +
		"redis.call('pexpire', KEYS[2] .. ':' .. ARGV[3] .. ':write:rwlock_timeout:1', ARGV[1]) return {1}"
	rule := vote.Rule{Merge: vote.Extending, Derived: true, Granted: positive}
	each := rule
	each.Each = true
	for _, way := range []struct {
		name string
		req  quorum.RunRequest
		said func(vote.Value) int64
	}{
		{"one lock", quorum.RunRequest{Script: quorum.NewScript(rereadText), Rule: rule, Args: []string{"60000", "me"}}, func(v vote.Value) int64 { return v.Int }},
		{"several", quorum.RunRequest{Script: quorum.NewScript(several), Rule: each, Args: []string{"60000", "1", "me"}}, func(v vote.Value) int64 { return slices.Collect(v.Parts())[0].Int }},
	} {
		for _, test := range []struct {
			name string
			on   string // what each master has of the two holds: of mine and of another reader's, or both, or none
			want string
		}{
			{"all have it", "bbb", "1"},
			{"one has missed an extension", "bob", "1"},
			{"two have", "obo", "in doubt"},
			{"the other's is over", "mmm", "1"},
			{"nobody has one", "...", "in doubt"},
		} {
			t.Run(way.name+", "+test.name, func(t *testing.T) {
				inScene(t, func(s *scene) {
					s.do(func() {
						for i, m := range s.servers {
							at := m.clock.millis(m.now()) + 30000
							m.put(&session{}, "w", item{text: "me\x001\x00me:write\x001\x00mode\x00read\x00other\x001\x00", hash: true, expires: at})
							if on := test.on[i]; on == 'm' || on == 'b' {
								m.put(&session{}, "{w}:me:rwlock_timeout:1", item{text: "1", expires: at})
							}
							if on := test.on[i]; on == 'o' || on == 'b' {
								m.put(&session{}, "{w}:other:rwlock_timeout:1", item{text: "1", expires: at})
							}
						}
					})
					ran := make(chan quorum.Ran, 1)
					way.req.Keys = []string{"w", "{w}"}
					s.proxies[0].life.engine.Run(way.req, func(r quorum.Ran) { ran <- r })
					r, got := <-ran, "in doubt"
					if r.Err == nil && r.Reply.Kind != vote.ErrorValue {
						got = fmt.Sprint(way.said(r.Reply))
					}
					if got != test.want {
						t.Errorf("got %s, %+v, want %s", got, r, test.want)
					}
				})
			})
		}
	}
}

// A reader leaves while another's hold is over on two masters, which have missed its extension, and delete the lock. The third misses
// that, and the other's hold goes on there.
func TestALateReleaseLeavesTheLockToOtherReaders(t *testing.T) {
	const join = "redis.call('hset', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil"
	const leave = "if redis.call('exists', KEYS[2]) == 1 then redis.call('hdel', KEYS[1], ARGV[1]) return 0 end redis.call('del', KEYS[1]) return 1"
	for _, test := range []struct {
		name    string
		readers []string
		left    bool
	}{
		{"alone", []string{"me"}, false},
		{"two", []string{"other", "me"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				run := func(text string, rule vote.Rule, args ...string) {
					t.Helper()
					r := <-begin(s.proxies[0].life.engine.Run, quorum.RunRequest{
						Script: quorum.NewScript(text), Rule: rule, Keys: []string{"w", "{w}:other"}, Args: args,
					})
					if r.Err != nil {
						t.Fatalf("%+v", r)
					}
				}
				for _, reader := range test.readers {
					run(join, vote.Rule{Merge: vote.Taking, Granted: isNil}, "30000", reader)
					s.sleep(20 * time.Millisecond)
				}
				s.stop(2)
				run(leave, vote.Rule{Merge: vote.Releasing, Granted: positive}, "me")
				s.do(func() {
					m := s.servers[2]
					if test.left {
						m.put(&session{}, "{w}:other", item{text: "1", expires: m.clock.millis(m.now()) + 30000})
					}
				})
				s.resume(2)
				s.sleep(time.Second)
				s.do(func() {
					m := s.servers[2]
					if w, there := m.store.get(0, "w", m.clock.millis(m.now())); there != test.left {
						t.Errorf("%v %+v", there, w)
					}
				})
			})
		})
	}
}

// A reader's attempt fails with a vote of one master. There another reader has come meanwhile, so the lock is not as the attempt left
// it. If the failed reader stayed in the lock, its next attempt would count two holds there, and one hold on every other master.
func TestAReaderIsPutBackWhereAnotherHasCome(t *testing.T) {
	inScene(t, func(s *scene) {
		join := func(proxy int, reader string) <-chan quorum.Ran {
			return begin(s.proxies[proxy].life.engine.Run, quorum.RunRequest{
				Script: quorum.NewScript(readText), Keys: append([]string{"w"}, holdOf("w", reader)...),
				Args: []string{"30000", reader, reader + ":write"},
				Rule: vote.Rule{Merge: vote.Taking, Derived: true, Granted: isNil, Field: reader},
			})
		}
		s.mute(0)
		s.do(func() {
			for _, l := range s.links[0][1:] {
				l.block(up)
			}
		})
		failed := join(0, "mine")
		s.sleep(10 * time.Millisecond)
		if r := <-join(1, "other"); r.Lock == nil {
			t.Fatalf("the other reader is not granted: %+v", r)
		}
		if r := <-failed; r.Err == nil {
			t.Fatalf("granted: %+v", r)
		}
		s.do(func() {
			for _, l := range s.links[0] {
				l.heal()
			}
		})
		s.sleep(time.Second)
		s.stop(2)
		if r := <-join(0, "mine"); r.Lock == nil {
			t.Errorf("not granted: %+v", r)
		}
	})
}
