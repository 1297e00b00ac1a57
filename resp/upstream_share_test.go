package resp

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"lockproxy/resp/upstream"
)

// A crossing is an upstream that shows over which connection a command arrives. It answers by itself what the proxy asks
// on its own account: COMMAND, and what a connection begins with.
type crossing struct {
	redis   *upstream.Redis
	arrived chan request
	values  sync.Map // replies that it gives by itself, by command
	l       net.Listener
	running sync.WaitGroup
}

// A request is a command that arrived over a connection.
type request struct {
	conn net.Conn
	text string
}

func (r request) answer(t *testing.T, reply string) {
	t.Helper()
	if _, err := io.WriteString(r.conn, reply); err != nil {
		t.Error(err)
	}
}

// crossingCommands are what the crossing says of its commands.
var crossingCommands = func() string {
	var rows []string
	for _, row := range []string{"get readonly 1", "set write 1", "incr write 1", "blpop noscript 1", "sort movablekeys 1",
		"info loading 0", "json.get module 1", "wait noscript 0"} {
		words := strings.Fields(row)
		rows = append(rows, fmt.Sprintf("*6\r\n$%d\r\n%s\r\n:-2\r\n*1\r\n+%s\r\n:%s\r\n:%[4]s\r\n:%[4]s\r\n", len(words[0]), words[0], words[1], words[2]))
	}
	rows = append(rows, "*10\r\n$5\r\nxinfo\r\n:-2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*0\r\n"+
		"*1\r\n*6\r\n$12\r\nxinfo|stream\r\n:-3\r\n*1\r\n+readonly\r\n:2\r\n:2\r\n:1\r\n")
	return fmt.Sprintf("*%d\r\n%s", len(rows), strings.Join(rows, ""))
}()

func newCrossing(t testing.TB) *crossing {
	t.Helper()
	u := &crossing{arrived: make(chan request, 10_000)}
	u.l = serveEach(t, &u.running, u.serve)
	u.redis = upstream.New(upstream.Options{Addr: u.l.Addr().String()})
	t.Cleanup(u.redis.Close)
	return u
}

func (u *crossing) serve(conn net.Conn) {
	defer conn.Close()
	eachRequest(conn, func(args []string) bool {
		text := strings.Join(args, " ")
		reply, known := u.values.Load(text)
		switch args[0] {
		case "COMMAND":
			reply, known = crossingCommands, true
		case "CLIENT", "SELECT":
			reply, known = "+OK\r\n", true
		case "HELLO":
			reply, known = "%0\r\n", true
		}
		if !known {
			u.arrived <- request{conn, text}
			return true
		}
		_, err := io.WriteString(conn, reply.(string))
		return err == nil
	})
}

// next waits for a command and demands that it is this one.
func (u *crossing) next(t *testing.T, want string) request {
	t.Helper()
	select {
	case got := <-u.arrived:
		if got.text != want {
			t.Fatalf("the upstream got %.100q, want %.100q", got.text, want)
		}
		return got
	case <-time.After(patienceMax):
		t.Fatalf("the upstream never got %.100q", want)
	}
	return request{}
}

func (u *crossing) wantNone(t *testing.T) {
	t.Helper()
	select {
	case got := <-u.arrived:
		t.Fatalf("the upstream got %q", got.text)
	default:
	}
}

func newSharedRig(t testing.TB, limits Limits) (*crossing, *rig) {
	t.Helper()
	u := newCrossing(t)
	return u, newRig(t, Config{Upstream: u.redis, UpstreamShared: true, LockKeys: []string{"lock:*"}, Limits: limits})
}

// same demands that all arrived over one connection, other that these two did not.
func same(t *testing.T, all ...request) {
	t.Helper()
	for _, r := range all {
		if r.conn != all[0].conn {
			t.Fatalf("%q and %q came over two connections", all[0].text, r.text)
		}
	}
}

func other(t *testing.T, a, b request) {
	t.Helper()
	if a.conn == b.conn {
		t.Fatalf("%q and %q came over one connection", a.text, b.text)
	}
}

func TestClientsShareAConnectionAndGetTheirOwnReplies(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	a, b := r.dial(), r.dial()
	a.send(words("CLIENT SETNAME a") + words("GET a1") + words("GET a2"))
	first, second := u.next(t, "GET a1"), u.next(t, "GET a2")
	b.send(words("GET b1"))
	third := u.next(t, "GET b1")
	a.send(words("GET a3"))
	same(t, first, second, third, u.next(t, "GET a3"))
	first.answer(t, "$2\r\na1\r\n$2\r\na")
	first.answer(t, "2\r\n-ERR b1\r\n*1\r\n:3\r\n")
	b.want("-ERR b1\r\n")
	a.want("+OK\r\n$2\r\na1\r\n$2\r\na2\r\n*1\r\n:3\r\n")
	if st := r.server.Stats(); st.UpstreamShared != 1 || st.UpstreamLinks != 0 || st.Forwarded != 4 {
		t.Errorf("%+v", st)
	}
}

func TestACommandThatNeedsItsOwnConnectionWaitsForThoseBefore(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	for _, command := range []string{"BLPOP q 0", "SORT l", "NOSUCH x", "JSON.GET x", "EVAL x 1 k", "WATCH k", "SUBSCRIBE c"} {
		t.Run(command, func(t *testing.T) {
			c := r.dial()
			c.send(words("SET k 1") + words("GET k") + words(command) + words("GET after"))
			set, get := u.next(t, "SET k 1"), u.next(t, "GET k")
			same(t, set, get)
			set.answer(t, "+OK\r\n")
			c.send(words("PING"))
			if c.isAnswered() { // replies of one reading come together
				t.Fatal("a reply that nobody gave")
			}
			u.wantNone(t)
			get.answer(t, "$1\r\n1\r\n")
			own := u.next(t, strings.Replace(command, "SUBSCRIBE", "subscribe", 1))
			other(t, set, own)
			reply := "+own\r\n"
			if strings.HasPrefix(command, "SUBSCRIBE") {
				reply = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
				own.answer(t, reply)
				c.want("+OK\r\n$1\r\n1\r\n" + reply)
				return // GET is refused: it is RESP2
			}
			same(t, own, u.next(t, "GET after"))
			own.answer(t, reply+"+after\r\n")
			c.want("+OK\r\n$1\r\n1\r\n" + reply + "+after\r\n+PONG\r\n")
			c.send(words("GET later"))
			same(t, own, u.next(t, "GET later"))
			own.answer(t, "+later\r\n")
			c.want("+later\r\n")
		})
	}
}

func TestATransactionHasItsOwnConnection(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	c := r.dial()
	c.send(words("GET a") + words("MULTI") + words("SET k 1") + words("EXEC") + words("GET k") + words("RESET") + words("GET b"))
	get := u.next(t, "GET a")
	u.wantNone(t)
	get.answer(t, "+a\r\n")
	own := u.next(t, "MULTI")
	other(t, get, own)
	same(t, own, u.next(t, "SET k 1"), u.next(t, "EXEC"), u.next(t, "GET k"))
	u.wantNone(t)
	own.answer(t, "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n$1\r\n1\r\n")
	c.want("+a\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n$1\r\n1\r\n+RESET\r\n")
	same(t, get, u.next(t, "GET b")) // RESET makes a new client of it
	get.answer(t, "+b\r\n")
	c.want("+b\r\n")
}

// An unknown command belongs to neither side: whoever mistypes one is not told to change lock_keys.
func TestATransactionOnLocksRefusesWhatNobodyKnows(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	c := r.dial()
	for _, ask := range []struct{ request, reply string }{
		{"NOSUCH a", "-ERR unknown command 'NOSUCH', with args beginning with: 'a' \r\n"},
		{"INCR", "-ERR wrong number of arguments for 'incr' command\r\n"},
		{"INCR data", "-" + string(errMixedTransaction) + "\r\n"},
	} {
		c.ask("MULTI")
		c.ask("SET", "lock:x", "t", "NX")
		if reply := c.ask(strings.Fields(ask.request)...); reply != ask.reply {
			t.Errorf("%s: %q", ask.request, reply)
		}
		if reply := c.ask("EXEC"); reply != "-EXECABORT Transaction discarded because of previous errors.\r\n" {
			t.Errorf("%s: EXEC: %q", ask.request, reply)
		}
	}
	if n := r.server.Stats().Split; n != 1 {
		t.Errorf("%d requests count as split by lock_keys", n)
	}
	u.wantNone(t)
}

// Nobody queues what a transaction has that is spoiled, but what the upstream would not have queued is refused all the same.
func TestASpoiledTransactionRefusesWhatTheUpstreamWould(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	c := r.dial()
	c.ask("MULTI")
	for _, ask := range []struct{ request, reply string }{
		{"LOCK lock:x", "-ERR wrong number of arguments for 'lock' command\r\n"},
		{"INCR data", "+QUEUED\r\n"},
		{"NOSUCH a", "-ERR unknown command 'NOSUCH', with args beginning with: 'a' \r\n"},
		{"INCR", "-ERR wrong number of arguments for 'incr' command\r\n"},
		{"XINFO STREAM data", "+QUEUED\r\n"},
		{"XINFO STREAM", "-ERR wrong number of arguments for 'xinfo|stream' command\r\n"},
		{"Xinfo Nosuch data", "-ERR unknown subcommand 'Nosuch'. Try XINFO HELP.\r\n"},
		{"XINFO", "-ERR wrong number of arguments for 'xinfo' command\r\n"},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"},
	} {
		if reply := c.ask(strings.Fields(ask.request)...); reply != ask.reply {
			t.Errorf("%s: %q", ask.request, reply)
		}
	}
	u.wantNone(t)
}

func TestLocksAndSharedCommandsDoNotOvertakeEachOther(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(words("GET a") + words("SET lock:x tok NX PX 9000") + words("PING") + words("GET b"))
	get := u.next(t, "GET a")
	if len(arrived) > 0 {
		t.Fatal("the lock was asked for before what came in front of it was answered")
	}
	get.answer(t, "+a\r\n")
	<-arrived
	u.wantNone(t)
	r.engine.release(0)
	u.next(t, "GET b").answer(t, "+b\r\n")
	c.want("+a\r\n+OK\r\n+PONG\r\n+b\r\n")
}

func TestDatabasesAndProtocolsHaveConnectionsOfTheirOwn(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	c, other3 := r.dial(), r.dial()
	c.send(words("SET k 0") + words("SELECT 1") + words("SET k 1"))
	zero := u.next(t, "SET k 0")
	u.wantNone(t)
	zero.answer(t, "+OK\r\n")
	one := u.next(t, "SET k 1")
	other(t, zero, one)
	one.answer(t, "+OK\r\n")
	c.want("+OK\r\n+OK\r\n+OK\r\n")
	other3.send(words("HELLO 3"))
	other3.reply()
	other3.send(words("SELECT 1") + words("GET k"))
	three := u.next(t, "GET k")
	other(t, one, three)
	three.answer(t, ">2\r\n$10\r\ninvalidate\r\n*0\r\n_\r\n")
	other3.want("+OK\r\n_\r\n")
	if n := r.server.Stats().UpstreamShared; n != 3 {
		t.Errorf("%d connections are shared, want 3", n)
	}
	for db := 2; db < 2+upstream.TrunksMax; db++ { // more than are shared: they have their own
		c := r.dial()
		c.send(words(fmt.Sprint("SELECT ", db%16)) + words("HELLO "+fmt.Sprint(2+db/16%2)) + words("GET k"))
		u.next(t, "GET k")
	}
	if n := r.server.Stats().UpstreamShared; n > upstream.TrunksMax {
		t.Errorf("%d connections are shared, at most %d may be", n, upstream.TrunksMax)
	}
}

func TestRepliesToWhoIsGoneAreNobodyElses(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	a, b := r.dial(), r.dial()
	a.send(words("GET a") + words("GET a"))
	get := u.next(t, "GET a")
	u.next(t, "GET a")
	_ = a.Conn.(*net.TCPConn).SetLinger(0) // it is gone, and the proxy knows
	_ = a.Close()
	waitFor(t, "the client is still there", func() bool { return r.server.Stats().Clients == 1 })
	b.send(words("GET b"))
	u.next(t, "GET b")
	get.answer(t, "+a\r\n+a\r\n+b\r\n")
	b.want("+b\r\n")
}

func TestASharedConnectionThatBreaksEndsThoseWhoWaitForIt(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	a, b, idle := r.dial(), r.dial(), r.dial()
	idle.send(words("GET i"))
	get := u.next(t, "GET i")
	get.answer(t, "+i\r\n")
	idle.want("+i\r\n")
	a.send(words("GET a"))
	u.next(t, "GET a")
	b.send(words("GET b") + words("GET b"))
	u.next(t, "GET b")
	u.next(t, "GET b")
	get.answer(t, "+a\r\n+b\r\n$2\r\nb")
	a.want("+a\r\n")
	_ = get.conn.Close()
	b.wantEnd()
	idle.send(words("GET again"))
	again := u.next(t, "GET again")
	other(t, get, again)
	again.answer(t, "+again\r\n")
	idle.want("+again\r\n")
	if st := r.server.Stats(); st.UpstreamErrors != 1 || st.UpstreamShared != 1 {
		t.Errorf("%+v", st)
	}
}

func TestASharedConnectionThatSpeaksNoRESPIsEnded(t *testing.T) {
	for _, reply := range []string{"HTTP/1.1 400\r\n", "+a\r\n+nobody asked\r\n"} {
		u, r := newSharedRig(t, Limits{})
		c, next := r.dial(), r.dial()
		c.send(words("GET a"))
		get := u.next(t, "GET a")
		get.answer(t, reply)
		waitFor(t, "the connection is still shared", func() bool { return r.server.Stats().UpstreamShared == 0 })
		next.send(words("GET b"))
		u.next(t, "GET b").answer(t, "+b\r\n")
		next.want("+b\r\n")
	}
}

func TestAnUpstreamThatIsGoneIsAnErrorForEach(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	c := r.dial()
	c.send(words("GET a"))
	get := u.next(t, "GET a")
	get.answer(t, "+a\r\n")
	c.want("+a\r\n")
	_ = u.l.Close()
	_ = get.conn.Close()
	waitFor(t, "the connection is still shared", func() bool { return r.server.Stats().UpstreamShared == 0 })
	refused := "-LOADING upstream " + u.redis.Addr() + ": connection refused\r\n"
	c.send(words("GET b") + words("GET c") + words("PING"))
	c.want(refused + refused + "+PONG\r\n")
}

// What waits for a client that does not read is bounded, and nobody else waits for it.
func TestAClientThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	c, fast := r.dial(), r.dial()
	const commands = 1000
	value := "$40000\r\n" + strings.Repeat("v", 40_000) + "\r\n"
	u.values.Store("GET v", value)
	u.values.Store("GET fast", "+fast\r\n")
	u.running.Go(func() { _, _ = io.WriteString(c, strings.Repeat(words("GET v"), commands)) })
	for range 100 {
		fast.send(words("GET fast"))
		fast.want("+fast\r\n")
	}
	if used := r.server.memory.used(); used > 16<<20 {
		t.Errorf("%d bytes are held for it", used)
	}
	for range commands {
		c.want(value)
	}
}

// A client that asks for a little at a time, and reads nothing until it has asked for all, gets its own connection, too: what it does
// not read stays at the upstream, and no request has to wait for its reading.
func TestWhoDoesNotReadGetsItsOwnConnection(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	c := r.dial()
	const group, groups, size = 10, 400, 6000
	value := fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat("v", size))
	u.values.Store("GET v", value)
	sent := 0
	for ; r.server.Stats().UpstreamLinks == 0 && sent < groups*group; sent += group {
		c.send(strings.Repeat(words("GET v"), group))
		waitFor(t, "the client is not served", func() bool {
			return r.server.Stats().Forwarded == uint64(sent+group) && repliesCame(r.server)
		})
	}
	if used, links := r.server.memory.used(), r.server.Stats().UpstreamLinks; used > 2*sharedUnread || links != 1 {
		t.Errorf("%d bytes are held for it, %d links", used, links)
	}
	for range sent {
		c.want(value)
	}
}

// repliesCame says whether all clients have been brought what they asked for over shared connections.
func repliesCame(s *Server) bool {
	for _, sess := range s.clients() {
		sess.mu.Lock()
		owed := sess.shares
		sess.mu.Unlock()
		if owed > 0 {
			return false
		}
	}
	return true
}

// A reply that is larger than may be gathered reaches a client that reads it; one that does not is ended soon.
func TestAReplyTooLargeToBeGatheredPasses(t *testing.T) {
	u, r := newSharedRig(t, Limits{Output: 100_000})
	value := strings.Repeat("v", 10<<20)
	reply := fmt.Sprintf("$%d\r\n%s\r\n", len(value), value)
	a, b := r.dial(), r.dial()
	large := func(c *client) request {
		t.Helper()
		c.send(words("GET small") + words("GET large") + words("GET small"))
		u.next(t, "GET small")
		u.next(t, "GET large")
		return u.next(t, "GET small")
	}
	get := large(a)
	b.send(words("GET b"))
	u.next(t, "GET b")
	u.running.Go(func() { _, _ = io.WriteString(get.conn, "+small\r\n"+reply+"+small\r\n+b\r\n") })
	a.want("+small\r\n" + reply + "+small\r\n")
	b.want("+b\r\n")
	s := r.server.clients()[0]
	waitFor(t, "what has come is still owed", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.shares == 0
	})
	a.send(words("GET after"))
	after := u.next(t, "GET after")
	other(t, get, after) // who had something large has its own connection
	after.answer(t, "+after\r\n")
	a.want("+after\r\n")

	r.server.slow.Purge() // a busy machine may have taken a for slow
	c := r.dial()         // it does not read
	again := large(c)
	b.send(words("GET b"))
	u.next(t, "GET b")
	u.running.Go(func() { _, _ = io.WriteString(again.conn, "+small\r\n"+reply+"+small\r\n+b\r\n") })
	b.want("+b\r\n")
	waitFor(t, "the client that does not read is still there", func() bool { return r.server.Stats().Clients == 2 })

	d := r.dial() // it comes back, and holds nobody up any more
	d.send(words("GET large"))
	its := u.next(t, "GET large")
	other(t, get, its)
	its.answer(t, "+large\r\n")
	d.want("+large\r\n")
	d.send(words("RESET") + words("GET large"))
	other(t, get, u.next(t, "GET large"))
}

// Who has held up others for a while, and then got all, is not to do so again each time that it connects.
func TestWhoHasHeldUpOthersHasItsOwnConnectionNextTime(t *testing.T) {
	u, r := newSharedRig(t, Limits{Output: 100_000})
	value := strings.Repeat("v", 10<<20)
	a, b := r.dial(), r.dial()
	a.send(words("GET large"))
	get := u.next(t, "GET large")
	b.send(words("GET b"))
	same(t, get, u.next(t, "GET b"))
	u.running.Go(func() { _, _ = fmt.Fprintf(get.conn, "$%d\r\n%s\r\n+b\r\n", len(value), value) })
	_, _ = a.Read(make([]byte, 1)) // from now on it holds the others up
	time.Sleep(2 * stallNoted)     // not too long to be served
	_, _ = io.CopyN(io.Discard, a, int64(len(value)))
	b.want("+b\r\n")
	c := r.dial()
	c.send(words("GET large"))
	other(t, get, u.next(t, "GET large"))
}

func TestManyThingsAskedAheadGoOverTheirOwnConnection(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	c := r.dial()
	c.send(strings.Repeat(words("INCR n"), sharedAhead+1))
	var first request
	for range sharedAhead {
		first = u.next(t, "INCR n")
	}
	c.send(words("PING"))
	u.wantNone(t)
	first.answer(t, strings.Repeat(":1\r\n", sharedAhead))
	last := u.next(t, "INCR n")
	other(t, first, last)
	last.answer(t, ":2\r\n")
	c.want(strings.Repeat(":1\r\n", sharedAhead) + ":2\r\n+PONG\r\n")
	big := strings.Repeat("x", sharedBytes)
	d := r.dial()
	d.send(cmdline("SET", "k", big))
	other(t, first, u.next(t, "SET k "+big))
}

// WAIT is about what the same connection has written: what went over a shared one counts, too.
func TestWaitIsToldOfWhatWasWrittenOverASharedConnection(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	c := r.dial()
	c.send(words("SET k v") + words("WAIT 1 0") + words("WAIT 1 0"))
	set := u.next(t, "SET k v")
	set.answer(t, "+OK\r\n")
	own := u.next(t, "PUBLISH lockproxy:wait ")
	other(t, set, own)
	same(t, own, u.next(t, "WAIT 1 0"), u.next(t, "WAIT 1 0"))
	own.answer(t, ":0\r\n:1\r\n:1\r\n")
	c.want("+OK\r\n:1\r\n:1\r\n")

	d := r.dial() // inside MULTI it is a command of the transaction
	d.send(words("SET k v") + words("MULTI") + words("SET k w") + words("WAIT 1 0") + words("EXEC"))
	u.next(t, "SET k v").answer(t, "+OK\r\n")
	for _, request := range []string{"MULTI", "SET k w", "WAIT 1 0", "EXEC"} {
		u.next(t, request)
	}

	u.values.Store("PUBLISH lockproxy:wait ", "-NOPERM no such channel\r\n") // so it would count replicas that lack what was written
	refused := r.dial()
	refused.send(words("SET k v"))
	u.next(t, "SET k v").answer(t, "+OK\r\n")
	refused.want("+OK\r\n")
	refused.send(words("WAIT 1 0"))
	refused.wantEnd()
}

func TestWhatTheProxyAnswersStandsBetweenSharedReplies(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	c := r.dial()
	c.send(words("GET a") + words("PING") + words("GET b"))
	u.next(t, "GET a")
	u.next(t, "GET b").answer(t, "+a\r\n+b\r\n")
	c.want("+a\r\n+PONG\r\n+b\r\n")
}

func TestRepliesThatAreOffAreNotGathered(t *testing.T) {
	u, r := newSharedRig(t, Limits{})
	c := r.dial()
	c.send(words("CLIENT REPLY SKIP") + words("GET a") + words("GET b") + words("CLIENT REPLY OFF") + words("GET c") +
		words("CLIENT REPLY ON") + words("GET d"))
	for _, key := range []string{"a", "b", "c", "d"} {
		u.next(t, "GET "+key).answer(t, "+"+key+"\r\n")
	}
	c.want("+b\r\n+OK\r\n+d\r\n")
}
