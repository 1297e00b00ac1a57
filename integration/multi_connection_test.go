package integration

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// What concerns the connection, or says nothing of keys, in transactions on a key, @.
const connectionInMulti = `MULTI
	SET @ 1 PX 50000
	CLIENT SETNAME me
	CLIENT GETNAME
	SELECT 3
	ECHO x
	EXEC
	CLIENT GETNAME
	GET @
	SELECT 0
	GET @
	WATCH @
	SET @ 2 PX 50000
	MULTI
	GET @
	SELECT 5
	CLIENT SETNAME you
	HELLO 3
	EXEC
	CLIENT GETNAME
	GET @
	GET @not
	MULTI
	SELECT 99
	SELECT x
	AUTH nobody x
	AUTH default x
	AUTH x
	AUTH a b c
	GET @
	EXEC
	GET @
	MULTI
	GET @not
	HELLO 3
	GET @not
	EXEC
	GET @not
	MULTI
	HELLO
	GET @not
	EXEC
	MULTI
	GET @not
	HELLO 9
	HELLO x
	HELLO 2
	GET @not
	EXEC
	GET @not
	MULTI
	CLIENT LIST ID 999999999
	CLIENT NO-EVICT ON
	CLIENT NO-EVICT maybe
	ACL WHOAMI
	PUBLISH @channel hi
	STRLEN @
	CLIENT SETNAME here
	EXEC
	CLIENT GETNAME
	MULTI
	GET @
	SELECT 2
	CLIENT SETNAME nobody
	DISCARD
	GET @
	MULTI
	SELECT 2
	CLIENT SETNAME nobody
	NOSUCH
	EXEC
	CLIENT GETNAME
	GET @
	MULTI
	CLIENT GETNAME
	SELECT 1
	EXEC
	SELECT 0
	MULTI
	CLIENT SETNAME a
	CLIENT SETNAME "
	SELECT 0
	DEL @
	CLIENT GETNAME
	CLIENT ID x
	CLIENT ID
	EXEC
	MULTI
	CLIENT SETNAME b
	SELECT 0
	DEL @
	CLIENT SETNAME c
	CLIENT GETNAME
	EXEC
	CLIENT GETNAME
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

var helloID = regexp.MustCompile(`(\$2\r\nid\r\n):\d+`)

func TestWhatConcernsTheConnectionInMultiIsAsOnOneRedis(t *testing.T) {
	f := startFront(t)
	alone := startProxy(t, harness.Addrs(f.masters))
	for _, proto := range []string{"2", "3"} {
		for i, c := range []struct{ addr, key string }{{f.proxy.Addr, "lock:"}, {f.proxy.Addr, "data:"}, {alone.Addr, "k:"}} {
			key := fmt.Sprint(c.key, proto, i)
			o, p := dial(t, f.oracle.Addr), dial(t, c.addr)
			asked(t, o, p, "HELLO", proto)
			for n, line := range strings.Split(connectionInMulti, "\n") {
				request := strings.Fields(strings.ReplaceAll(line, "@", key))
				want, got := asked(t, o, p, request...)
				want, got = helloID.ReplaceAllString(want, "$1"), helloID.ReplaceAllString(got, "$1")
				if got != want {
					t.Errorf("RESP%s %s line %d %q: got %s, want %s", proto, c.key, n+1, request, short(fmt.Sprintf("%q", got)), short(fmt.Sprintf("%q", want)))
				}
			}
			_, _ = o.Close(), p.Close()
		}
	}
}

// A client's id is that which the proxy tells, in a transaction at the upstream, too.
func TestTheClientsOwnIDIsToldInMulti(t *testing.T) {
	f := startFront(t)
	for range 2 {
		c := dial(t, f.proxy.Addr)
		id := idOf(t, c)
		for _, key := range []string{"lock:a", "data"} {
			expect(t, c, "+OK\r\n", "MULTI")
			expect(t, c, "+QUEUED\r\n", "GET", key)
			expect(t, c, "+QUEUED\r\n", "CLIENT", "ID")
			expect(t, c, "*2\r\n$-1\r\n:"+id+"\r\n", "EXEC")
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
		for _, request := range []string{"SUBSCRIBE x", "UNSUBSCRIBE", "CLIENT REPLY OFF", "CLIENT KILL ID 5", "CLIENT UNBLOCK 5"} {
			expect(t, c, "+OK\r\n", "MULTI")
			expect(t, c, "+QUEUED\r\n", first...)
			reply, err := c.Do(strings.Fields(request)...)
			if err != nil || !strings.HasSuffix(string(reply), "inside MULTI; send it before MULTI or after EXEC\r\n") {
				t.Errorf("%q %s: %q, %v", first, request, reply, err)
			}
			expect(t, c, "-EXECABORT Transaction discarded because of previous errors.\r\n", "EXEC")
		}
	}
	expect(t, c, "+OK\r\n", "MULTI")
	expect(t, c, "+QUEUED\r\n", "SELECT", "3")
	reply, err := c.Do("SET", "lock:a", "t", "PX", "9000")
	if err != nil || !strings.Contains(string(reply), "in one database") {
		t.Errorf("%q, %v", reply, err)
	}
	expect(t, c, "-EXECABORT Transaction discarded because of previous errors.\r\n", "EXEC")
}
