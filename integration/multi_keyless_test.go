package integration

import (
	"fmt"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// What is about no key, in transactions on a key, @.
const keylessInMulti = `MULTI
	SET @ 1 PX 50000
	ECHO x
	PING
	PING you
	EXEC
	GET @
	WATCH @
	SET @ 2 PX 50000
	MULTI
	PING
	GET @
	UNWATCH
	EXEC
	GET @
	MULTI
	PING
	EXEC
	MULTI
	WAIT 0 0
	WAIT x 0
	READONLY x
	GET @
	EXEC
	MULTI
	SCRIPT LOAD return(1)
	PUBLISH @channel hi
	STRLEN @
	EXEC
	MULTI
	GET @
	PING
	DISCARD
	GET @
	MULTI
	PING
	NOSUCH
	EXEC
	GET @
	MULTI
	EVAL return(1) x @
	ECHO x
	SET @ 3 PX 50000
	EVAL return(1) 5 @
	EVALSHA_RO 0000000000000000000000000000000000000000 -1 @
	EXEC
	GET @
	MULTI
	EVAL return(1) x @
	EXEC`

func TestWhatIsAboutNoKeyInMultiIsAsOnOneRedis(t *testing.T) {
	f := startFront(t)
	alone := startProxy(t, harness.Addrs(f.masters))
	for _, proto := range []string{"2", "3"} {
		for i, c := range []struct{ addr, key string }{{f.proxy.Addr, "lock:"}, {f.proxy.Addr, "data:"}, {alone.Addr, "k:"}} {
			key := fmt.Sprint(c.key, proto, i)
			o, p := dial(t, f.oracle.Addr), dial(t, c.addr)
			asked(t, o, p, "HELLO", proto)
			for n, line := range strings.Split(keylessInMulti, "\n") {
				request := strings.Fields(strings.ReplaceAll(line, "@", key))
				if want, got := asked(t, o, p, request...); got != want {
					t.Errorf("RESP%s %s line %d %q: got %s, want %s", proto, c.key, n+1, request, short(fmt.Sprintf("%q", got)), short(fmt.Sprintf("%q", want)))
				}
			}
			_, _ = o.Close(), p.Close()
		}
	}
}

// Who releases and tells so in one transaction is heard, and only if it has released.
func TestWhatATransactionPublishesIsHeard(t *testing.T) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	c, other, listener := dial(t, proxy.Addr), dial(t, proxy.Addr), dial(t, proxy.Addr)
	expect(t, listener, "*3\r\n$9\r\nsubscribe\r\n$4\r\nwake\r\n:1\r\n", "SUBSCRIBE", "wake")
	expect(t, c, "+OK\r\n", "SET", "k", "me", "NX", "PX", "60000")
	expect(t, c, "+OK\r\n", "WATCH", "k")
	expect(t, other, "+OK\r\n", "SET", "k", "you", "PX", "60000")
	for _, message := range []string{"lost", "released"} {
		expect(t, c, "+OK\r\n", "MULTI")
		expect(t, c, "+QUEUED\r\n", "PUBLISH", "wake", message)
		expect(t, c, "+QUEUED\r\n", "DEL", "k")
		expect(t, c, "+QUEUED\r\n", "PUBLISH", "nobody", message)
		if message == "lost" {
			expect(t, c, "*-1\r\n", "EXEC")
		} else {
			expect(t, c, "*3\r\n:1\r\n:1\r\n:0\r\n", "EXEC")
		}
	}
	reply, err := listener.Reply()
	if err != nil || string(reply) != "*3\r\n$7\r\nmessage\r\n$4\r\nwake\r\n$8\r\nreleased\r\n" {
		t.Fatalf("got %q, %v", reply, err)
	}
}

// What cannot be part of a transaction is refused with what to do instead, wherever the transaction is.
func TestWhatIsRefusedInMultiSaysWhatToDo(t *testing.T) {
	f := startFront(t)
	c := dial(t, f.proxy.Addr)
	for _, first := range [][]string{{"PING"}, {"GET", "lock:a"}, {"GET", "data"}} {
		for _, request := range []string{"SUBSCRIBE x", "UNSUBSCRIBE", "CLIENT REPLY OFF", "CLIENT ID", "SELECT 3", "HELLO 3", "AUTH x", "CLIENT KILL ID 5", "CLIENT UNBLOCK 5"} {
			expect(t, c, "+OK\r\n", "MULTI")
			expect(t, c, "+QUEUED\r\n", first...)
			reply, err := c.Do(strings.Fields(request)...)
			if err != nil || !strings.HasSuffix(string(reply), "inside MULTI; send it before MULTI or after EXEC\r\n") {
				t.Errorf("%q %s: %q, %v", first, request, reply, err)
			}
			expect(t, c, "-EXECABORT Transaction discarded because of previous errors.\r\n", "EXEC")
		}
	}
}
