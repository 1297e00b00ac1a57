package integration

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

var bulkLength = regexp.MustCompile(`\$\d+\r\n`)

// told is a command's reply without its lengths.
func told(c *harness.Conn, args ...string) (string, error) {
	reply, err := c.Do(args...)
	return strings.ReplaceAll(bulkLength.ReplaceAllString(string(reply), ""), "\r\n", " "), err
}

// tells waits until a command's reply matches.
func tells(t *testing.T, c *harness.Conn, want string, args ...string) {
	t.Helper()
	pattern := regexp.MustCompile(want)
	eventually(t, progressMax, fmt.Sprint(args), func() error {
		if got, err := told(c, args...); err != nil || !pattern.MatchString(got) {
			return fmt.Errorf("%q, %v; want %s", got, err, want)
		}
		return nil
	})
}

const long = "300000"

// One master is down, and one has forgotten everything: nobody knows whether the lock is held, and each says why.
func TestOperatorsSeeWhyALockIsNotClear(t *testing.T) {
	masters := startMasters(t, 3)
	c := dial(t, startProxy(t, harness.Addrs(masters)).Addr)
	allVote(t, c, masters)
	expect(t, c, "+OK\r\n", "SET", "k", "me", "NX", "PX", long)
	one := func(i int, rest string) string { return "addr " + regexp.QuoteMeta(masters[i].Addr) + " " + rest }
	clean := "state clean left :0 counts :1 reason  "
	holds, nothing := clean+`type string token me ttl :(29|300)\d+ `, clean+`type none token \$-1 ttl :0 `
	tells(t, c, `^\*22 state held type string token me validity :(29|300)\d+ fence \$-1 waiters :0 client 127\S+ name \$-1 library \$-1 user default masters \*3 \*16 `+
		one(0, holds)+`\*16 `+one(1, holds)+`\*16 `+one(2, holds)+`$`, "LOCKINFO", "k")
	tells(t, c, `^\*6 locks \*1 \*20 resource k type string token me fence \$-1 validity :(29|300)\d+ waiters :0 client 127\S+ name \$-1 library \$-1 user default unclear :0 end all $`, "LOCKS")

	masters[2].Kill()
	apply(t, restarted.hit, masters[1])
	tells(t, c, `^\*22 state unknown type \$-1 token \$-1 validity \$-1 .*`+one(0, holds)+
		`.*`+one(1, `state quarantined left :[1-9]\d+ counts :0 reason quarantined [^*]* type none token \$-1 ttl :0 `)+
		`.*`+one(2, `state disconnected left :0 counts :0 reason connection [a-z]+ type \$-1 token \$-1 ttl :0 $`), "LOCKINFO", "k")
	if got, err := told(c, "GET", "k"); err != nil || !strings.HasPrefix(got, "-NOQUORUM ") {
		t.Errorf("GET: %q, %v", got, err)
	}
	tells(t, c, `^-NOQUORUM 1 of 3 masters answered, 2 needed: `, "LOCKS")
	expect(t, c, ":1\r\n", "FORCEUNLOCK", "k") // two have answered, and have it no more
	expect(t, c, ":0\r\n", "FORCEUNLOCK", "k")
	tells(t, c, `.*`+one(0, nothing), "LOCKINFO", "k")
	masters[0].Kill()
	tells(t, c, `^-NOQUORUM 1 of 3 masters answered, 2 needed: `, "FORCEUNLOCK", "k")
}

// Whatever there is: a lock in a hash, as Redisson's, what only one master has, and an honest one that is waited for.
func TestForceUnlockFreesWhateverIsThere(t *testing.T) {
	s := startSplit(t)
	other := dial(t, startProxy(t, harness.Addrs(s.masters)).Addr)
	absent := []string{":0\r\n", ":0\r\n", ":0\r\n"}

	expect(t, s.client, ":1\r\n", "EVAL", ownLock, "1", "hash", "me", long)
	tells(t, s.client, `^\*22 state held type hash token \$-1 validity :(29|300)\d+ .* type hash token \$-1 ttl :(29|300)\d+ `, "LOCKINFO", "hash")
	expect(t, other, ":1\r\n", "FORCEUNLOCK", "hash")
	s.everywhere(absent, "EXISTS", "hash")

	s.on(1, "SET", "stray", "x", "PX", long)
	tells(t, s.client, `^\*22 state free .* type string token x `, "LOCKINFO", "stray")
	s.on(0, "SET", "stray", "y", "PX", long)
	tells(t, s.client, `^\*22 state unclear type \$-1 token \$-1 validity \$-1 `, "LOCKINFO", "stray")
	expect(t, s.client, ":1\r\n", "FORCEUNLOCK", "stray")
	s.everywhere(absent, "EXISTS", "stray")

	expect(t, s.client, "+OK\r\n", "SET", "k", "me", "NX", "PX", long)
	waiting, waiter := dial(t, s.addr), make(chan string, 1)
	go func() {
		got, err := told(waiting, "LOCK", "k", long, "TOKEN", "you", "WAIT", long)
		waiter <- fmt.Sprint(got, err)
	}()
	tells(t, s.client, ` waiters :1 `, "LOCKINFO", "k")
	expect(t, other, ":1\r\n", "FORCEUNLOCK", "k") // through another proxy
	if got := <-waiter; !strings.Contains(got, "token you") {
		t.Errorf("who waited got %q", got)
	}
	expect(t, s.client, ":0\r\n", "UNLOCK", "k", "me")
}

// A master stands still until after the reply: what it has then may be somebody's who has taken it since.
func TestForceUnlockIsNotDoneAfterItsReply(t *testing.T) {
	const forceUnlock = `if (redis.call('del', KEYS[1]) == 1) then redis.call(ARGV[2], KEYS[2], ARGV[1]); return 1 else return 0 end`
	s := startSplit(t)
	for _, key := range []string{"script", "command"} {
		for i := range s.masters {
			s.on(i, "SET", key, "x", "PX", long)
		}
		if err := s.masters[2].Pause(); err != nil {
			t.Fatal(err)
		}
		if key == "command" {
			expect(t, s.client, ":1\r\n", "FORCEUNLOCK", key)
		} else {
			expect(t, s.client, ":1\r\n", "EVAL", forceUnlock, "2", key, "channel", "0", "publish")
		}
		if err := s.masters[2].Resume(); err != nil {
			t.Fatal(err)
		}
		s.everywhere([]string{":0\r\n", ":0\r\n", ":1\r\n"}, "EXISTS", key)
	}
}
