package integration

import (
	"fmt"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// listed returns how many locks LOCKS lists, and how the reply ends.
func listed(c *harness.Conn, args ...string) (int, string, error) {
	got, err := told(c, append([]string{"LOCKS"}, args...)...)
	_, end, _ := strings.Cut(got, "unclear ")
	return strings.Count(got, "resource "), end, err
}

// Whatever proxy took the locks, and though a master stands still; what a master alone has is no lock.
func TestLocksListsTheLocksOfAllProxies(t *testing.T) {
	masters := startMasters(t, 3)
	addrs := harness.Addrs(masters)
	mine, other := startProxy(t, addrs), dial(t, startProxy(t, addrs).Addr)
	allVote(t, dial(t, mine.Addr), masters)
	tells(t, dial(t, mine.Addr), `^\*6 token me fence :\d+ validity `, "LOCK", "job:7", long, "TOKEN", "me")
	for i := range 2500 { // more than masters tell at one time
		expect(t, other, "+OK\r\n", "SET", fmt.Sprint("many:", i), "me", "NX", "PX", long)
	}
	direct(t, masters[:1], "SET", "stray", "x", "PX", long)
	check := func(when, stray string) {
		t.Helper()
		eventually(t, progressMax, when, func() error {
			for _, try := range []struct {
				args []string
				n    int
				end  string
			}{
				{nil, 100, " end count "},
				{[]string{"MATCH", "many:100*"}, 11, ":0 end all "},
				{[]string{"MATCH", "*1*2*3*4", "COUNT", "1000"}, 1, ":0 end all "},
				{[]string{"MATCH", "many:77"}, 1, ":0 end all "},
				{[]string{"MATCH", "stray"}, 0, stray + " end all "},
				{[]string{"MATCH", "lockproxy*"}, 0, ":0 end all "},
			} {
				if n, end, err := listed(other, try.args...); n != try.n || !strings.HasSuffix(end, try.end) || err != nil {
					return fmt.Errorf("%q: %d locks, %q, %v", try.args, n, end, err)
				}
			}
			return nil
		})
		tells(t, other, `^\*6 locks \*1 \*20 resource job:7 type string token me fence :\d+ validity :\d+ waiters :0 client \$-1 name \$-1 library \$-1 user \$-1 unclear :0 end all $`, "LOCKS", "MATCH", "j*")
	}
	check("every lock is listed", ":0")
	for i, stray := range []string{":0", ":1", ":1"} { // whether the master that stands still has it, too, nobody knows
		if err := masters[i].Pause(); err != nil {
			t.Fatal(err)
		}
		check("every lock is listed though a master stands still", stray)
		if err := masters[i].Resume(); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, other, "+OK\r\n", "SELECT", "1")
	if n, end, err := listed(other); n != 0 || end != ":0 end all " || err != nil {
		t.Errorf("of another database: %d locks, %q, %v", n, end, err)
	}
}

// A lock that is a hash has no token: the client is known by the key, until the lock is given back or its validity is over.
func TestTheClientOfARedissonLockIsNamed(t *testing.T) {
	masters := startMasters(t, 3)
	one, two := startProxy(t, harness.Addrs(masters)), startProxy(t, harness.Addrs(masters))
	a, b, elsewhere := dial(t, one.Addr), dial(t, one.Addr), dial(t, two.Addr)
	expect(t, a, "+OK\r\n", "CLIENT", "SETNAME", "worker-a")
	expect(t, b, "+OK\r\n", "CLIENT", "SETNAME", "worker-b")
	named := func(when, want string) {
		t.Helper()
		reply, err := b.Do("LOCKINFO", "k")
		if err != nil || !strings.Contains(string(reply), "$6\r\nclient\r\n"+want) {
			t.Errorf("%s: %q, %v", when, reply, err)
		}
	}
	const nobody = "$-1\r\n"
	name := func(c *harness.Conn) string {
		return fmt.Sprintf("$%d\r\n%s\r\n", len(c.LocalAddr().String()), c.LocalAddr())
	}
	expect(t, a, nobody, "EVAL", redissonLock, "1", "k", "30000", "me:1")
	named("after a grant", name(a))
	if reply, err := b.Do("EVAL", redissonLock, "1", "k", "30000", "you:1"); err != nil || reply[0] != ':' {
		t.Fatalf("%q, %v", reply, err)
	}
	named("after another client was refused", name(a))
	expect(t, b, ":1\r\n", "FORCEUNLOCK", "k")
	expect(t, elsewhere, nobody, "EVAL", redissonLock, "1", "k", "30000", "other:1")
	named("taken through another proxy", nobody)
	expect(t, elsewhere, ":1\r\n", "DEL", "k")
	expect(t, a, nobody, "EVAL", redissonLock, "1", "k", "200", "me:1")
	eventually(t, cleanMax, "the lock ends", func() error {
		reply, err := elsewhere.Do("EVAL", redissonLock, "1", "k", "30000", "other:1")
		if err != nil || string(reply) != nobody {
			return fmt.Errorf("%q, %v", reply, err)
		}
		return nil
	})
	named("after the end of the validity", nobody)
}
