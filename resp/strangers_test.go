package resp

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"lockproxy/resp/wire"
)

// halfLogin is a command of 160 KB, as large as a stranger's may be, that lacks its end.
var halfLogin = func() string {
	whole := cmdline(append([]string{"AUTH"}, slicesOf(strings.Repeat("x", wire.BulkBeforeAuth), wire.ArgsBeforeAuth-1)...)...)
	return whole[:len(whole)-2]
}()

func slicesOf(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

// Strangers have a small budget of their own. However many begin a command and do not end it, a client that has logged in keeps its
// locks, and a new one can log in.
func TestStrangersDoNotSpendTheMemoryOfClients(t *testing.T) {
	const memory = 8 << 20
	r := newRig(t, Config{Users: []User{{Name: "default", Password: password("pw")}}, Limits: Limits{Memory: memory, Input: memory, Auth: time.Minute}})
	known := r.dial()
	known.send(words("AUTH pw"))
	known.want("+OK\r\n")
	waiting := r.dial() // for a moment it says nothing
	for range 100 {     // twice of memory
		c := r.dial()
		_, _ = io.WriteString(c, halfLogin)
		if got := known.ask("LOCK", "k", "30000", "TOKEN", "t", "HOLD"); !strings.HasPrefix(got, "*6") {
			t.Fatalf("got %q", got)
		}
		known.send(words("UNLOCK k t"))
		known.want(":1\r\n")
		if used := r.server.relief.strangers.budget.used(); used > memory/strangersShare {
			t.Fatalf("strangers have %d bytes", used)
		}
	}
	waiting.send(words("AUTH pw") + words("PING"))
	waiting.want("+OK\r\n+PONG\r\n")
	waitFor(t, "few have gone", func() bool { return r.server.Stats().Evicted >= 90 })
	waitFor(t, "those that have gone are still there", func() bool { return r.server.Stats().Clients <= 12 })
}

// The stranger that has held memory for longest goes, not the one that says something. The budget has room for three unfinished
// commands, and a fourth comes. Each begins its command only when the one before holds memory.
func TestTheEldestStrangerGoesFirst(t *testing.T) {
	const memory = 16 << 20
	r := newRig(t, Config{Users: []User{{Name: "default", Password: password("pw")}}, Limits: Limits{Memory: memory, Input: memory, Auth: time.Minute}})
	holding := func() int {
		s := &r.server.relief.strangers
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.holding.order.Len()
	}
	var all []*client
	for n := range 4 {
		waitFor(t, "the one before holds nothing", func() bool { return holding() == n })
		c := r.dial()
		c.send(halfLogin)
		all = append(all, c)
	}
	if _, err := io.ReadAll(all[0]); err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the first: %v", err)
	}
	for i, c := range all[1:] {
		c.send("\r\n")
		if got := c.reply(); got != string(errSyntax.AppendTo(nil, false)) {
			t.Errorf("stranger %d got %q", i+1, got)
		}
	}
}

// With max_clients connections, of which some say nothing, one that comes is served in the place of the first of these.
func TestStrangersDoNotTakeThePlacesOfClients(t *testing.T) {
	const places = 20
	r := newRig(t, Config{Users: []User{{Name: "default", Password: password("pw")}}, Limits: Limits{Clients: places, Auth: time.Minute}})
	known := r.dial()
	known.send(words("AUTH pw"))
	known.want("+OK\r\n")
	for range 5 * places {
		r.dial()
		late := r.dial()
		late.send(words("AUTH pw") + words("PING"))
		late.want("+OK\r\n+PONG\r\n")
		_ = late.Close()
		known.send(words("PING"))
		known.want("+PONG\r\n")
		if clients := r.server.Stats().Clients; clients > places {
			t.Fatalf("there are %d clients", clients)
		}
	}
}

// Where all have logged in, there is no place.
func TestClientsThatHaveLoggedInKeepTheirPlaces(t *testing.T) {
	r := newRig(t, Config{Users: []User{{Name: "default", Password: password("pw")}}, Limits: Limits{Clients: 2}})
	for range 2 {
		c := r.dial()
		c.send(words("AUTH pw"))
		c.want("+OK\r\n")
	}
	late := r.dial()
	late.want("-ERR max number of clients reached\r\n")
	late.wantEnd()
}

// newTLSRig is a rig behind TLS.
func newTLSRig(t *testing.T, cfg Config) *rig {
	r := newRig(t, cfg)
	l := listen(t)
	r.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() {
		served <- r.server.Serve(tls.NewListener(Metered(l), &tls.Config{Certificates: []tls.Certificate{keyPair(t)}}))
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-served
	})
	return r
}

// halfHello is the most of a TLS handshake's first message that a server waits for the end of.
func halfHello() []byte {
	const size = 60_000 // announced
	message := append([]byte{1, 0, size >> 8, size & 0xff}, make([]byte, size-1)...)
	var records []byte
	for len(message) > 0 {
		n := min(len(message), 16<<10)
		records = append(records, 22, 3, 1)
		records = binary.BigEndian.AppendUint16(records, uint16(n))
		records = append(records, message[:n]...)
		message = message[n:]
	}
	return records
}

// What TLS holds of handshakes that never end is counted, and a client that is known is not the worse for them.
func TestHandshakesThatNeverEndAreCounted(t *testing.T) {
	const memory = 8 << 20
	r := newTLSRig(t, Config{Limits: Limits{Memory: memory, Input: memory, Auth: time.Minute}})
	secure := func() *client {
		c := r.dial()
		conn := tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true})
		if err := conn.Handshake(); err != nil {
			t.Fatal(err)
		}
		return &client{t: t, Conn: conn, r: c.r}
	}
	ping := func(c *client) {
		t.Helper()
		if _, err := io.WriteString(c, words("PING")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c.Conn, make([]byte, len("+PONG\r\n"))); err != nil {
			t.Fatal(err)
		}
	}
	known, most := secure(), int64(0)
	for range 50 {
		c := r.dial()
		_, _ = c.Write(halfHello())
		most = max(most, r.server.relief.strangers.budget.used())
		ping(known)
	}
	ping(secure())
	const refused = 64 << 10 // is counted for a moment, until the budget says no
	if most < 100_000 || most > memory/strangersShare+refused {
		t.Errorf("at most %d bytes were counted", most)
	}
	waitFor(t, "few have gone", func() bool { return r.server.Stats().Evicted >= 40 })
	if used := r.server.relief.memory.used(); used != 0 {
		t.Errorf("%d bytes are counted of those who have ended theirs", used)
	}
}

// A client that logs in takes what is counted for it along.
func TestALoginMovesWhatIsCounted(t *testing.T) {
	r := newRig(t, Config{Users: []User{{Name: "default", Password: password("pw")}}})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(words("AUTH pw") + cmdline("SET", "k", strings.Repeat("x", wire.BulkBeforeAuth/2), "NX", "PX", "30000"))
	<-arrived
	waitFor(t, "it is not counted", func() bool { return r.server.relief.memory.used() > wire.BulkBeforeAuth/2 })
	if used := r.server.relief.strangers.budget.used(); used != 0 {
		t.Errorf("of strangers %d bytes are counted", used)
	}
	r.engine.releaseAll()
	c.want("+OK\r\n+OK\r\n")
	if got := c.ask("RESET"); got != "+RESET\r\n" {
		t.Fatal(got)
	}
	c.send(halfLogin)
	waitFor(t, "as a stranger it is not counted", func() bool { return r.server.relief.strangers.budget.used() > 160_000 })
	_ = c.Close()
	awaitNothingHeld(t, r)
}

var _ net.Conn = (*metered)(nil)
