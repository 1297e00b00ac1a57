package resp

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/integration/harness"
	"lockproxy/resp/wire"
)

var small = Limits{Clients: 3, Args: 8, Bulk: 1000, Command: 3000, Input: 8000, Pipeline: 4, Output: 4 << 20, Memory: 64 << 20}

// A login that was good stays so when the password is another one.
func TestALoginNeedsThePasswordOfItsMoment(t *testing.T) {
	var now atomic.Pointer[string]
	is := func(text string) { now.Store(&text) }
	is("old")
	r := newRig(t, Config{Users: []User{{Name: "default", Password: func() string { return *now.Load() }}}})
	before := r.dial()
	before.send(words("AUTH old"))
	before.want("+OK\r\n")
	is("new")
	c := r.dial()
	for _, try := range []struct{ auth, want string }{{"AUTH old", string(errWrongPass)}, {"AUTH new", "OK"}} {
		if got := c.ask(strings.Fields(try.auth)...); !strings.Contains(got, try.want) {
			t.Errorf("%s: got %q", try.auth, got)
		}
	}
	if got := before.ask("PING"); got != "+PONG\r\n" {
		t.Errorf("who has logged in before gets %q", got)
	}
}

// What a client must not be able to do, each with the answer it gets before the connection is closed.
func TestHostileRequests(t *testing.T) {
	for name, c := range map[string]struct{ send, want string }{
		"a huge multibulk count":         {"*2147483648\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
		"a count of 64 bits":             {"*9223372036854775807\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
		"a count beyond 64 bits":         {"*99999999999999999999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
		"a count with a sign":            {"*+1\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
		"no count":                       {"*\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
		"more arguments than allowed":    {"*9\r\n", "-ERR Protocol error: command of more than 8 arguments (max_args)\r\n"},
		"a count that does not end":      {"*" + strings.Repeat("0", wire.LineMax+1), "-ERR Protocol error: too big mbulk count string\r\n"},
		"a bulk of 2^63-1":               {"*1\r\n$9223372036854775807\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
		"a bulk just below 2^63":         {"*1\r\n$9223372036854775800\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
		"a negative bulk":                {"*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
		"a bulk larger than Redis takes": {"*1\r\n$536870913\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
		"a bulk larger than allowed":     {"*1\r\n$1001\r\n", "-ERR Protocol error: argument of more than 1000 bytes (max_bulk)\r\n"},
		"a bulk length that has no end":  {"*1\r\n$" + strings.Repeat("1", wire.LineMax+1), "-ERR Protocol error: too big bulk count string\r\n"},
		"no dollar":                      {"*1\r\nPING\r\n", "-ERR Protocol error: expected '$', got 'P'\r\n"},
		"an array in an array":           {"*1\r\n*1\r\n", "-ERR Protocol error: expected '$', got '*'\r\n"},
		"no ASCII for a dollar":          {"*1\r\n\xd94\r\n", "-ERR Protocol error: expected '$', got '\xd9'\r\n"},
		"no protocol in silence":         {words("CLIENT REPLY OFF") + "*x\r\n", ""},
		"a line end for a dollar":        {"*1\r\n\r\n", "-ERR Protocol error: expected '$', got ' '\r\n"},
		"a large command of legal arguments": {"*8\r\n" + strings.Repeat("$1000\r\n"+strings.Repeat("x", 1000)+"\r\n", 3),
			"-ERR Protocol error: command of more than 3000 bytes (max_command)\r\n"},
		"a line that does not end":        {strings.Repeat("a", wire.LineMax+1), "-ERR Protocol error: too big inline request\r\n"},
		"an open quote":                   {"GET \"a\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"},
		"an open single quote":            {"GET 'a\\'\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"},
		"an escape without its character": {"GET \"a\\\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"},
		"many inline words":               {"A B C D E F G H I\r\n", "-ERR Protocol error: command of more than 8 arguments (max_args)\r\n"},
		"an HTTP request":                 {"POST / HTTP/1.1\r\nHost: x\r\n\r\n", ""},
		"replies instead of requests":     {"+OK\r\n:1\r\n$-1\r\n", "-ERR unknown command '+OK', with args beginning with: \r\n"},
		"a TLS greeting":                  {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", "-ERR unknown command '\x16\x03\x01\x02', with args beginning with: \r\n"},
		"zero bytes":                      {"\x00\x00\x00\n\x00\n", ""},
		"forged line ends in a name":      {"*1\r\n$9\r\nx\r\n+OK\r\ny\r\n", "-ERR unknown command 'x  +OK  y', with args beginning with: \r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{Limits: small})
			cl := r.dial()
			cl.send(c.send)
			cl.want(c.want)
			if strings.Contains(c.want, "Protocol error") || name == "an HTTP request" || name == "no protocol in silence" {
				cl.wantEnd()
				_ = cl.Close()
			}
			other := r.dial()
			other.send(words("PING"))
			other.want("+PONG\r\n")
		})
	}
}

func TestBeforeLoginTheLimitsAreTighter(t *testing.T) {
	cfg := Config{Users: []User{{Name: "default", Password: password("pw")}}}
	for send, want := range map[string]string{
		"*11\r\n":                        "-ERR Protocol error: unauthenticated multibulk length\r\n",
		"*2\r\n$4\r\nAUTH\r\n$16385\r\n": "-ERR Protocol error: unauthenticated bulk length\r\n",
	} {
		c := newRig(t, cfg).dial()
		c.send(send)
		c.want(want)
		c.wantEnd()
	}
	c := newRig(t, cfg).dial()
	c.send(words("AUTH pw") + words("EXISTS 1 2 3 4 5 6 7 8 9 0 1 2 3"))
	c.want("+OK\r\n:0\r\n")
}

// Who has not logged in and does not read has few replies waiting, and little that was read ahead of them.
func TestBeforeLoginFewCommandsRunAhead(t *testing.T) {
	inBubble(t, Config{Users: []User{{Name: "default", Password: password("pw")}}}, func(t *testing.T, _ *fakeEngine, srv *Server, dial func() net.Conn) {
		c := dial()
		defer c.Close()
		request := words(strings.Repeat("x", 120))
		for ahead := 0; ahead <= 2*inputBeforeAuth; ahead += inputBeforeAuth / 8 {
			go func() { _, _ = io.WriteString(c, strings.Repeat(request, inputBeforeAuth/8/len(request))) }()
			synctest.Wait()
			if depth, run := srv.sessions.all()[0].replies.backlog.depth.Load(), srv.Stats().Commands; max(depth, int64(run)) > depthBeforeAuth {
				t.Fatalf("%d commands have run, %d replies wait, want at most %d", run, depth, depthBeforeAuth)
			}
			if used := srv.relief.strangers.budget.used(); used == 0 || used > 4*inputBeforeAuth { // a buffer doubles as it grows
				t.Fatalf("it takes %d bytes of memory", used)
			}
		}
		if !srv.sessions.all()[0].replies.closing.Load() {
			t.Error("it goes on being read")
		}
	})
}

func TestAClientThatDoesNotLogInIsSentAway(t *testing.T) {
	c := newRig(t, Config{Users: []User{{Name: "default", Password: password("pw")}}, Limits: Limits{Auth: 30 * time.Millisecond}}).dial()
	c.wantEnd()
}

func TestAnIdleClientIsSentAwayUnlessItsCommandRuns(t *testing.T) {
	t.Parallel()
	const idle = 500 * time.Millisecond // that long the test may stand still before its command is there
	r := newRig(t, Config{Limits: Limits{Idle: idle}})
	arrived := r.engine.hold()
	busy := r.dial()
	busy.send(words("GET k"))
	<-arrived
	r.dial().wantEnd()
	began := r.server.clock.Load()
	waitFor(t, "its clock stands still", func() bool { return r.server.clock.Load() > began+2*idle.Milliseconds() })
	busy.send(words("PING")) // is still served, although it came long after the timeout
	waitFor(t, "PING is not run", func() bool { return r.server.Stats().Commands == 2 })
	r.engine.release(0)
	busy.want("$-1\r\n+PONG\r\n")
	busy.wantEnd()
}

func TestTooManyClientsAreTurnedAway(t *testing.T) {
	log := &logged{}
	r := newRig(t, Config{Limits: small, Logger: slog.New(slog.NewTextHandler(log, nil))})
	for range 3 {
		r.dial().ask("PING")
	}
	var more []*client
	for range 3 * refusalsMax {
		more = append(more, r.dial())
	}
	for _, c := range more {
		c.want("-ERR max number of clients reached\r\n")
		c.wantEnd()
	}
	if s := r.server.Stats(); s.Clients != 3 || s.Rejected != 3*refusalsMax {
		t.Errorf("%+v", s)
	}
	const line = `level=WARN msg="clients are turned away: there are max_clients" max_clients=3 client=`
	if n := strings.Count(log.String(), line); n != 1 {
		t.Errorf("logged %d times: %s", n, log)
	}
}

func keyPair(t *testing.T) tls.Certificate {
	t.Helper()
	cert, key, err := harness.Certificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// To tell a client by TLS that there are too many takes its part in a handshake: who says nothing must not hold up the others.
func TestAClientTooManyThatKeepsSilentHoldsNobodyUp(t *testing.T) {
	pair := keyPair(t)
	r := newRig(t, Config{Limits: Limits{Clients: 1}})
	l := listen(t)
	served := make(chan error, 1)
	go func() {
		served <- r.server.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}}))
	}()
	only := r.dial()
	only.ask("PING")
	for range refusalsMax + 4 {
		silent, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
	}
	waitFor(t, "the silent ones are not turned away", func() bool { return r.server.Stats().Rejected == refusalsMax+4 })
	_ = only.Close()
	r.awaitGone()
	conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := &client{t, conn, bufio.NewReader(conn)}
	_ = c.SetDeadline(time.Now().Add(patienceMax))
	c.send(words("PING"))
	c.want("+PONG\r\n")
	_ = r.server.Shutdown(t.Context())
	if err := <-served; !errors.Is(err, ErrServerClosed) {
		t.Errorf("Serve returned %v", err)
	}
}

// Who never ends the handshake is sent away, though nobody needs to log in; who has ended it may be silent.
func TestATLSHandshakeEndsWithinTheTimeOfALogin(t *testing.T) {
	pair := keyPair(t)
	r := newRig(t, Config{Limits: Limits{Auth: time.Second}})
	l := listen(t)
	go func() { _ = r.server.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}})) }()
	shaken, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer shaken.Close()
	for _, said := range []string{"", "\x16\x03\x01\x02\x00\x01\x00"} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patienceMax))
		_, _ = io.WriteString(conn, said)
		if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: it is not sent away", said)
		}
	}
	c := &client{t, shaken, bufio.NewReader(shaken)}
	if got := c.ask("PING"); got != "+PONG\r\n" {
		t.Errorf("got %q", got)
	}
}

// A client on OpenSSL that does not trust the certificate sends its alert unencrypted, which to crypto/tls is a bad record.
func TestTheLogSaysThatAClientDoesNotTrustTheCertificate(t *testing.T) {
	pair := keyPair(t)
	log := &logged{}
	r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	l := listen(t)
	go func() { _ = r.server.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}})) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := tls.Client(&plainAlerts{Conn: conn}, &tls.Config{ServerName: "127.0.0.1"})
	if err := client.HandshakeContext(t.Context()); err == nil {
		t.Fatal("it trusts the certificate")
	}
	waitFor(t, "the log does not say so", func() bool {
		return strings.Contains(log.String(), `msg="a client cannot speak TLS with us" client=`) &&
			strings.Contains(log.String(), ` cause="it does not trust tls_cert, it seems: `)
	})
}

// A client that goes away amid the handshake has not said that it cannot speak TLS.
func TestTheLogDoesNotBlameTheTLSOfAClientThatLeaves(t *testing.T) {
	pair := keyPair(t)
	log := &logged{}
	r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	l := listen(t)
	go func() { _ = r.server.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}})) }()
	const record = "\x16\x03\x01\x02\x00" // begins a hello of 512 bytes
	for n, said := range []string{"", record[:3], record, record + "\x01\x00\x01\xfc\x03\x03"} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, said)
		_ = conn.Close()
		waitFor(t, "it does not end", func() bool { return strings.Count(log.String(), "connection ended") == n+1 })
	}
	if strings.Contains(log.String(), "cannot speak TLS") {
		t.Errorf("the log says\n%s", log.String())
	}
}

// plainAlerts is a connection whose first write, the client's hello, is sent as it is, and any later one as an alert in plain text.
type plainAlerts struct {
	net.Conn
	begun bool
}

func (p *plainAlerts) Write(b []byte) (int, error) {
	if p.begun {
		const alert, tls12, fatal, unknownCA = 21, "\x03\x03", 2, 48
		_, err := p.Conn.Write(append(append([]byte{alert}, tls12...), 0, 2, fatal, unknownCA))
		return len(b), err
	}
	p.begun = true
	return p.Conn.Write(b)
}

func TestSendingTooFarAheadEndsTheConnection(t *testing.T) {
	r := newRig(t, Config{Limits: small})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(words("DEL k"))
	<-arrived
	go func() { _, _ = io.WriteString(c, strings.Repeat(words("DEL k"), 1000)) }()
	waitFor(t, "it is not closed", r.isClosing)
	r.engine.release(0)
	c.want(":0\r\n-ERR more than 8000 bytes sent ahead of the replies; read replies before sending more\r\n")
}

// isClosing says whether some connection is being ended.
func (r *rig) isClosing() bool {
	for _, s := range r.server.sessions.all() {
		if s.replies.closing.Load() {
			return true
		}
	}
	return false
}

// A client that does not read stops being read from; what waits for it is bounded, and in the end it is cut off.
func TestAClientThatDoesNotRead(t *testing.T) {
	value := strings.Repeat("x", 1<<20)
	for name, limits := range map[string]Limits{
		"write timeout": {Write: 50 * time.Millisecond, Output: 1 << 30, Memory: 1 << 30},
		"output limit":  {Output: 3 << 20, Memory: 1 << 30},
		"memory":        {Write: time.Second, Output: 1 << 30, Memory: 6 << 20}, // it is not read until then
	} {
		t.Run(name, func(t *testing.T) {
			limits.Bulk, limits.Command = 2<<20, 4<<20
			r := newRig(t, Config{Limits: limits})
			c := r.dial()
			if got := c.ask("SET", "k", value); got != "+OK\r\n" {
				t.Fatal(got)
			}
			go func() { _, _ = io.WriteString(c, strings.Repeat(words("GET k"), 500)) }()
			r.awaitGone()
			awaitNothingHeld(t, r)
		})
	}
}

func TestTheMemoryBudgetBoundsAllClientsTogether(t *testing.T) {
	limits := Limits{Bulk: 1 << 20, Command: 2 << 20, Memory: 1 << 20}
	r := newRig(t, Config{Limits: limits})
	lines := make(chan string, 8)
	for range 8 {
		c := r.dial()
		go func() { _, _ = io.WriteString(c, "*2\r\n$4\r\nECHO\r\n$600000\r\n"+strings.Repeat("x", 500_000)) }()
		go func() {
			line, _ := c.r.ReadString('\n')
			lines <- line
		}()
	}
	for range 7 { // there is room for one
		if line := <-lines; !strings.HasPrefix(line, "-ERR lockproxy holds as much") {
			t.Errorf("got %q", line)
		}
	}
}

// The budget counts a command for as long as it runs, because the engine holds on to it.
func TestRunningCommandsCountTowardsTheMemoryBudget(t *testing.T) {
	r := newRig(t, Config{})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(cmdline("SET", "k", strings.Repeat("x", 100_000)))
	<-arrived
	waitFor(t, "not about 100,000 bytes are counted", func() bool { used := r.server.relief.memory.used(); return used > 100_000 && used < 110_000 })
	r.engine.release(0)
	c.want("+OK\r\n")
	awaitNothingHeld(t, r)
}

// Announced lengths cost nothing until the bytes arrive.
func TestAnnouncedLengthsAreNotAllocated(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Bulk: 512 << 20, Command: 1 << 30}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		c := r.dial()
		c.send("*1024\r\n$536870912\r\nx")
	}
	waitFor(t, "not all are there", func() bool { return r.server.Stats().Clients == 100 })
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 10<<20 {
		t.Errorf("100 announcements of 512 MiB took %d bytes", grown)
	}
}

// patienceMax is how long a busy machine may take over anything that is to happen by itself.
const patienceMax = 30 * time.Second

// waitFor waits until done, or fails with what is wrong: the server owes nobody a signal.
func waitFor(t testing.TB, wrong string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patienceMax); !done(); {
		if time.Now().After(end) {
			t.Fatal(wrong)
		}
		time.Sleep(time.Millisecond)
	}
}

// Whatever a client leaves half done must not keep anything.
func TestHalfCommandsAndHangUps(t *testing.T) {
	r := newRig(t, Config{})
	for i, raw := range []string{"", "*", "*3", "*3\r", "*3\r\n", "*3\r\n$", "*3\r\n$3\r\nSE", "SET k", "\"", "*1\r\n$4\r\nPING\r"} {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprint(conn, raw)
		if tcp := conn.(*net.TCPConn); i%2 == 0 {
			_ = tcp.SetLinger(0) // a reset instead of an orderly end
		}
		_ = conn.Close()
	}
	r.awaitGone()
}
