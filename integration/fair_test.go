package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
	"lockproxy/script"
)

// A fairLock is a text with which some version of Redisson takes a fair lock.
type fairLock struct {
	name string
	text string
	ends int64 // when places time out that are taken now, ms
	wait int64 // for how long a place lasts, ms
}

// fairLocks returns all of them that the table of known scripts has.
func fairLocks(t *testing.T) []fairLock {
	t.Helper()
	var all []fairLock
	for _, f := range script.Families() {
		if !f.Queues {
			continue
		}
		text, err := os.ReadFile(filepath.Join("testdata", "redisson", f.SHA+".lua"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fairLock{name: f.Does, text: string(text), ends: time.Now().UnixMilli() + 300_000, wait: 300_000})
	}
	if len(all) < 9 {
		t.Fatalf("only %d texts", len(all))
	}
	return all
}

// take returns the request of a client.
func (f *fairLock) take(name, who string) []string {
	wait, now := strconv.FormatInt(f.wait, 10), strconv.FormatInt(f.ends-f.wait, 10)
	args := []string{"60000", who, wait, now, "not twice"}
	switch {
	case strings.HasPrefix(f.name, "tryLock,") || strings.HasPrefix(f.name, "tryLock of"):
		args[2], args[3] = now, wait
	case f.old():
		args[2] = strconv.FormatInt(f.ends, 10)
	}
	return append([]string{"EVAL", f.text, "3", name, queueOf(name), timeoutsOf(name)}, args...)
}

// old says that the text is of a version in which asking again moves when one's place times out, but not the place.
func (f *fairLock) old() bool { return strings.HasSuffix(f.name, "2.7-3.11.0") }

func queueOf(name string) string    { return "redisson_lock_queue:{" + name + "}" }
func timeoutsOf(name string) string { return "redisson_lock_timeout:{" + name + "}" }

// gets has a client ask for the lock until it has it.
func (s *split) gets(t *testing.T, f *fairLock, name, who string) {
	t.Helper()
	eventually(t, cleanMax, who+" has the lock", func() error {
		reply, err := s.client.Do(f.take(name, who)...)
		if err == nil && string(reply) != "$-1\r\n" {
			err = fmt.Errorf("%s got %q", who, reply)
		}
		return err
	})
}

// waits has clients wait on one master, past the proxies, in this order.
func (s *split) waits(f *fairLock, master int, name, queue string) {
	s.Helper()
	for i, who := range strings.Fields(queue) {
		s.on(master, "RPUSH", queueOf(name), who)
		s.on(master, "ZADD", timeoutsOf(name), strconv.FormatInt(f.ends+int64(i)*f.wait, 10), who)
	}
}

// listens subscribes to what a client is told when its turn has come, with a connection that has n subscriptions, and returns what
// waits until it is told.
func (s *split) listens(t *testing.T, listener *harness.Conn, n int, name, who string) func() {
	t.Helper()
	channel := "redisson_lock__channel:{" + name + "}:" + who
	expect(t, listener, fmt.Sprintf("*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:%d\r\n", len(channel), channel, n+1), "SUBSCRIBE", channel)
	return func() {
		t.Helper()
		reply, err := listener.Reply()
		if err != nil || string(reply) != fmt.Sprintf("*3\r\n$7\r\nmessage\r\n$%d\r\n%s\r\n$1\r\n0\r\n", len(channel), channel) {
			t.Fatalf("%s was told %q, %v", who, reply, err)
		}
	}
}

// queues checks who waits on each master in the end, and that the n-th place times out when the n-th does.
func (s *split) queues(f *fairLock, name string, want ...string) {
	s.Helper()
	s.settle()
	for i, w := range want {
		eventually(s, cleanMax, fmt.Sprintf("the queue of master %d", i+1), func() error {
			queue, err := harness.Strings([]byte(s.on(i, "LRANGE", queueOf(name), "0", "-1")))
			if err != nil {
				return err
			}
			ends, err := harness.Strings([]byte(s.on(i, "ZRANGE", timeoutsOf(name), "0", "-1")))
			if err != nil {
				return err
			}
			if got, by := strings.Join(queue, " "), strings.Join(ends, " "); got != w || by != w && !f.old() {
				return fmt.Errorf("%q wait, and time out in the order %q, want %q", got, by, w)
			}
			return nil
		})
	}
}

// Clients that came through several proxies are in another order on each master, so that nobody is first on a quorum. Whoever asks
// next, the one who is to be first is told, or is the one who asks, and has the lock.
func TestOfThoseThatWaitForAFairLockOneIsFirst(t *testing.T) {
	s := startSplit(t)
	listener := dial(t, startProxy(t, harness.Addrs(s.masters)).Addr)
	for i, f := range fairLocks(t) {
		t.Run(f.name, func(t *testing.T) {
			told, asks := fmt.Sprintf("told%d", i), fmt.Sprintf("asks%d", i)
			for _, name := range []string{told, asks} {
				s.waits(&f, 0, name, "b a c")
				s.waits(&f, 1, name, "c a b")
				s.waits(&f, 2, name, "a b c")
			}
			hears := s.listens(t, listener, i, told, "a")
			if reply, err := s.client.Do(f.take(told, "b")...); err != nil || reply[0] != ':' {
				t.Fatalf("b got %q, %v", reply, err)
			}
			hears()
			s.queues(&f, told, "a b c", "a c b", "a b c")
			for _, name := range []string{told, asks} {
				expect(t, s.client, "$-1\r\n", f.take(name, "a")...)
				s.queues(&f, name, "b c", "c b", "b c")
			}
		})
	}
}

// Who is first everywhere may sleep for minutes: a master that had lost his place told him so, and who had the lock died. Whoever asks
// next, he is told.
func TestWhoIsFirstEverywhereIsToldThatTheLockIsFree(t *testing.T) {
	s := startSplit(t)
	listener := dial(t, startProxy(t, harness.Addrs(s.masters)).Addr)
	for i, f := range fairLocks(t) {
		t.Run(f.name, func(t *testing.T) {
			name := fmt.Sprintf("k%d", i)
			for master := range s.masters {
				s.waits(&f, master, name, "a b")
			}
			hears := s.listens(t, listener, i, name, "a")
			if reply, err := s.client.Do(f.take(name, "b")...); err != nil || reply[0] != ':' {
				t.Fatalf("b got %q, %v", reply, err)
			}
			hears()
			s.queues(&f, name, "a b", "a b", "a b")
		})
	}
}

// A master that has lost the place of who waits tells him for how long those may wait who are before him now. But a quorum of masters is
// free sooner.
func TestWhoWaitsAsksAgainWhenAQuorumMayBeFree(t *testing.T) {
	s := startSplit(t)
	for i, f := range fairLocks(t) {
		t.Run(f.name, func(t *testing.T) {
			name := fmt.Sprintf("k%d", i)
			for master, queue := range []string{"a", "a", "b"} {
				s.on(master, "HSET", name, "x", "1")
				s.on(master, "PEXPIRE", name, "20000")
				s.waits(&f, master, name, queue)
			}
			reply, err := s.client.Do(f.take(name, "a")...)
			if ms, ok := harness.Int(reply); err != nil || !ok || ms > 20_000 {
				t.Errorf("a is to ask again after %q ms, %v", reply, err)
			}
		})
	}
}

// Who has the lock has no place any more where another was first: else he would be first there later, when he does not wait.
func TestWhoHasAFairLockWaitsNowhere(t *testing.T) {
	s := startSplit(t)
	for i, f := range fairLocks(t) {
		t.Run(f.name, func(t *testing.T) {
			name := fmt.Sprintf("k%d", i)
			s.waits(&f, 0, name, "a b c")
			s.waits(&f, 1, name, "a c b")
			s.waits(&f, 2, name, "b a c")
			expect(t, s.client, "$-1\r\n", f.take(name, "a")...)
			s.queues(&f, name, "b c", "c b", "b c")
		})
	}
}

// A queue that is never empty lasts for ttl_max from when somebody has come or gone, so that who waits keeps his place, and is told.
func TestAQueueLastsWhileItIsUsed(t *testing.T) {
	s := startSplit(t)
	for i, f := range fairLocks(t) {
		t.Run(f.name, func(t *testing.T) {
			name := fmt.Sprintf("k%d", i)
			keys := []string{queueOf(name), timeoutsOf(name)}
			passes := func(who, reply string) { // most of the queue's time
				for master := range s.masters {
					for _, key := range keys {
						s.on(master, "PEXPIRE", key, "60000")
					}
				}
				if got, err := s.client.Do(f.take(name, who)...); err != nil || !strings.HasPrefix(string(got), reply) {
					t.Fatalf("%s got %q, %v", who, got, err)
				}
				for _, key := range keys {
					for master := range s.masters {
						eventually(t, cleanMax, key, func() error {
							if got := s.on(master, "PTTL", key); len(got) < len(":1000000\r\n") {
								return fmt.Errorf("master %d has it for %q ms", master+1, got)
							}
							return nil
						})
					}
				}
			}
			s.waits(&f, 0, name, "a b")
			s.waits(&f, 1, name, "a b")
			s.waits(&f, 2, name, "a b")
			passes("a", "$-1\r\n")
			if strings.Contains(f.text, "'rpush'") { // else nobody waits by this text
				passes("c", ":")
			}
		})
	}
}

// A master that has lost its data grants the lock to anybody, and does not count.
func TestAFairLockGoesOnWhereAMasterHasLostItsQueue(t *testing.T) {
	s := startSplit(t)
	if err := s.masters[1].Restart(); err != nil {
		t.Fatal(err)
	}
	for i, f := range fairLocks(t) {
		t.Run(f.name, func(t *testing.T) {
			name := fmt.Sprintf("k%d", i)
			s.waits(&f, 0, name, "a b c")
			s.waits(&f, 2, name, "b a c")
			s.gets(t, &f, name, "a")
		})
	}
}

// A master has missed that somebody had the lock, or ceased to wait, and lists him still. With another one down it is needed for a quorum.
func TestAFairLockIsNotKeptByWhoHasLeft(t *testing.T) {
	s := startSplit(t)
	s.masters[2].Kill()
	for i, f := range fairLocks(t) {
		if !strings.Contains(f.text, "'rpush'") { // nobody waits by this text
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			for j, waits := range [][2]string{{"gone", ""}, {"gone a", "a"}} {
				name := fmt.Sprintf("k%d-%d", i, j)
				s.waits(&f, 0, name, waits[0])
				s.waits(&f, 1, name, waits[1])
				s.gets(t, &f, name, "a")
			}
		})
	}
}

// Votes are split, as two clients are first on a master each, and what the third master has done is not known: so the script is not run
// again. Who is to be first is told all the same, though it is the one who asks: he was told for how long others may have the lock.
func TestWhoIsFirstIsToldWhereNobodyAsksAgainForHim(t *testing.T) {
	masters := startMasters(t, 3)
	relays, addrs := startRelays(t, masters)
	proxy := startProxy(t, addrs)
	s := &split{T: t, masters: masters, addr: proxy.Addr, client: dial(t, proxy.Addr)}
	listener := dial(t, proxy.Addr)
	for i, f := range fairLocks(t) {
		t.Run(f.name, func(t *testing.T) {
			s.settle()
			name := fmt.Sprintf("k%d", i)
			s.waits(&f, 1, name, "a b")
			s.waits(&f, 2, name, "b a")
			hears := s.listens(t, listener, i, name, "a")
			relays[0].Catch("not twice")
			if err := s.client.Send(harness.Encode(nil, f.take(name, "a")...)); err != nil {
				t.Fatal(err)
			}
			eventually(t, cleanMax, "the script is on its way to the first master", relays[0].Caught)
			relays[0].Cut()
			if reply, err := s.client.Reply(); err != nil || reply[0] != ':' {
				t.Fatalf("a got %q, %v", reply, err)
			}
			hears()
			relays[0].Deliver()
		})
	}
}
