package resp

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockproxy/quorum/admission"
	"lockproxy/resp/upstream"
)

// subscribed returns a client that speaks RESP3 and has subscribed to news, a channel of the upstream's.
func subscribed(t *testing.T) (*fakeUpstream, *rig, *client) {
	t.Helper()
	u, r, c := newUpstreamRig(t)
	c.send(words("HELLO 3"))
	c.reply()
	c.send(words("SUBSCRIBE news"))
	u.wantRequest(t, "HELLO 3")
	u.answers <- "%0\r\n"
	u.wantRequest(t, "subscribe news")
	u.answers <- ">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
	c.want(">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
	return u, r, c
}

// A client that has one subscription asks for another while messages come.
func TestAMessageIsNotTakenForAConfirmation(t *testing.T) {
	for _, kind := range []string{"", "s"} {
		u, _, c := newUpstreamRig(t)
		confirmed := func(name string, n int) string {
			return fmt.Sprintf("*3\r\n$%d\r\n%ssubscribe\r\n$1\r\n%s\r\n:%d\r\n", len(kind)+9, kind, name, n)
		}
		message := fmt.Sprintf("*3\r\n$%d\r\n%smessage\r\n$1\r\na\r\n$1\r\nm\r\n", len(kind)+7, kind)
		for i, name := range []string{"a", "b"} {
			c.send(words(kind + "subscribe " + name))
			u.wantRequest(t, kind+"subscribe "+name)
			before := strings.Repeat(message, i)
			u.answers <- before + confirmed(name, i+1)
			c.want(before + confirmed(name, i+1))
		}
	}
}

// The masters may confirm a subscription later than the upstream, and its messages come at once.
func TestNoMessageComesBeforeItsSubscriptionIsConfirmed(t *testing.T) {
	u, r, c := newUpstreamRig(t)
	for i := range 100 {
		r.engine.fakeMessages.park()
		c.send(words("SUBSCRIBE news"))
		u.wantRequest(t, "subscribe news")
		u.answers <- "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nm\r\n"
		if i == 0 && c.peek("*3\r\n") {
			t.Fatal("there was a message before the confirmation")
		}
		r.engine.fakeMessages.unpark(nil)
		c.want("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nm\r\n")
		c.send(words("UNSUBSCRIBE"))
		u.wantRequest(t, "unsubscribe news")
		u.answers <- "*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n:0\r\n"
		c.want("*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n:0\r\n")
	}
}

func TestInRESP3AReplyIsNoMessageWhateverItSays(t *testing.T) {
	u, _, c := subscribed(t)
	c.send(words("MULTI") + words("SET a b") + words("PING") + words("EXEC"))
	for _, sent := range []string{"MULTI", "SET a b", "PING"} {
		u.wantRequest(t, sent)
	}
	u.answers <- "+OK\r\n+QUEUED\r\n+QUEUED\r\n"
	u.wantRequest(t, "EXEC")
	u.answers <- "*2\r\n+OK\r\n+PONG\r\n"
	c.want("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n+PONG\r\n")
	for _, reply := range []string{"*0\r\n", "*1\r\n$7\r\nmessage\r\n", "*1\r\n$9\r\nsubscribe\r\n"} {
		c.send(words("HGETALL h") + words("PING"))
		u.wantRequest(t, "HGETALL h")
		u.answers <- reply
		c.want(reply + "+PONG\r\n")
	}
}

// One piece may bring a reply, a message, and the next reply, or no more than the message.
func TestAMessageIsNotCountedAsAReply(t *testing.T) {
	u, r, c := subscribed(t)
	arrived := r.engine.hold()
	c.send(words("GET a") + words("GET b") + words("SET lock:x tok NX PX 9000"))
	u.wantRequest(t, "GET a")
	u.wantRequest(t, "GET b")
	const replyAndMessage = "+a\r\n>3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nm\r\n"
	u.answers <- replyAndMessage
	c.want(replyAndMessage)
	if c.isAnswered() || len(arrived) > 0 {
		t.Fatal("the lock was asked for before what came in front of it was answered")
	}
	u.answers <- "+b\r\n"
	c.want("+b\r\n")
	<-arrived
	r.engine.release(0)
	c.want("+OK\r\n")
}

// What a value says in the midst of it is no message, either.
func TestAReplyThatComesInPiecesIsOneReply(t *testing.T) {
	u, _, c := subscribed(t)
	c.send(words("GET v") + words("PING"))
	u.wantRequest(t, "GET v")
	for _, piece := range []string{"$14\r\n", ">3\r\n$7\r\nmessag", "\r\n"} {
		u.answers <- piece
		c.want(piece)
	}
	c.want("+PONG\r\n")
}

func TestMessagesComeInTheProtocolOfTheClient(t *testing.T) {
	u, _, c := subscribed(t)
	c.send(words("HELLO 2"))
	c.reply()
	u.wantRequest(t, "HELLO 2")
	u.answers <- "*0\r\n"
	u.answers <- "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nm\r\n"
	c.want("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nm\r\n")
	c.send(words("UNSUBSCRIBE news"))
	u.wantRequest(t, "unsubscribe news")
	u.answers <- "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nm\r\n"
	u.answers <- "*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n:0\r\n"
	c.want("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nm\r\n*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n:0\r\n")
}

// Commands whose replies the client does not want are commands all the same.
func TestALockWaitsForWhatIsNotToBeAnswered(t *testing.T) {
	u, r, c := newUpstreamRig(t)
	arrived := r.engine.hold()
	c.send(words("CLIENT REPLY OFF") + words("SET data v") + words("SET lock:x tok NX PX 9000") + words("CLIENT REPLY ON"))
	u.wantRequest(t, "SET data v")
	if c.peek("+OK\r\n") || len(arrived) > 0 {
		t.Fatal("the lock was asked for before what came in front of it was answered")
	}
	u.answers <- "+OK\r\n"
	<-arrived
	r.engine.release(0)
	c.want("+OK\r\n") // of CLIENT REPLY ON
	c.send(words("CLIENT REPLY OFF") + words("SET data w") + words("RESET") + words("PING"))
	u.wantRequest(t, "SET data w")
	u.answers <- "+OK\r\n"
	c.want("+RESET\r\n+PONG\r\n")
}

func TestScriptExistsPassesNoErrorForAnAnswer(t *testing.T) {
	u, _, c := newUpstreamRig(t)
	shas := strings.TrimSpace(strings.Repeat("0000000000000000000000000000000000000000 ", 20))
	c.send(words("SCRIPT EXISTS " + shas))
	u.wantRequest(t, "SCRIPT EXISTS "+shas)
	u.answers <- "-NOPERM no\r\n"
	c.want("*20\r\n" + strings.Repeat(":0\r\n", 20))
}

// Else a request of some bytes would cost as many texts.
func TestScriptExistsSendsATextOnce(t *testing.T) {
	u, _, c := newUpstreamRig(t)
	c.send(words("SCRIPT LOAD return(1)"))
	u.wantRequest(t, "SCRIPT LOAD return(1)")
	sha := fmt.Sprintf("%x", sha1.Sum([]byte("return(1)")))
	u.answers <- "$40\r\n" + sha + "\r\n"
	c.want("$40\r\n" + sha + "\r\n")
	again := "SCRIPT EXISTS " + sha + " " + strings.ToUpper(sha) + " " + sha // the last of which the upstream denies
	c.send(words(again))
	u.wantRequest(t, "SCRIPT LOAD return(1)")
	u.answers <- "$40\r\n" + sha + "\r\n"
	u.wantRequest(t, again)
	u.answers <- "*3\r\n:1\r\n:1\r\n:0\r\n"
	c.want("*3\r\n:1\r\n:1\r\n:0\r\n")
}

func TestATransactionThatTheUpstreamRefusesDoesNotRunInPieces(t *testing.T) {
	u, _, c := newUpstreamRig(t)
	c.send(words("MULTI"))
	c.want("+OK\r\n")
	c.send(words("SET data v"))
	u.wantRequest(t, "MULTI")
	u.wantRequest(t, "SET data v")
	u.answers <- "-NOPERM no\r\n"
	c.wantEnd()
}

// The upstream refuses all of it with one error. What comes behind is run, as the client has subscribed to nothing.
func TestASubscriptionThatTheUpstreamRefuses(t *testing.T) {
	u, _, c := newUpstreamRig(t)
	c.send(words("SUBSCRIBE news more") + words("GET a"))
	u.wantRequest(t, "subscribe news more")
	u.answers <- "-NOPERM no\r\n"
	c.want("-NOPERM no\r\n")
	u.wantRequest(t, "GET a")
	u.answers <- "+v\r\n"
	c.want("+v\r\n")
}

func TestASubscriptionThatFailsIsNotLeftUpstream(t *testing.T) {
	u, r, c := newUpstreamRig(t)
	r.engine.fakeMessages.failed = errors.New("ERR no quorum")
	c.send(words("SUBSCRIBE news lock:x"))
	u.wantRequest(t, "subscribe news")
	u.answers <- "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
	c.want("-ERR no quorum\r\n")
	c.wantEnd()
}

// What one client asks of the upstream in vain is not the others' failure.
func TestADatabaseThatTheUpstreamLacksIsNoFailureForOthers(t *testing.T) {
	u, _, c := newUpstreamRig(t)
	c.send(words("SELECT 9") + words("GET a"))
	u.wantRequest(t, "SELECT 9")
	u.answers <- "-ERR DB index is out of range\r\n"
	c.want("+OK\r\n")
	if reply := c.reply(); !strings.HasSuffix(reply, "DB index is out of range\r\n") {
		t.Error(reply)
	}
	if _, err := u.redis.Dial(t.Context(), upstream.Greeting{}); err != nil {
		t.Errorf("another client: %v", err)
	}
}

// pong answers a greeting by PING.
func pong(conn net.Conn) {
	_, _ = io.ReadFull(conn, make([]byte, len(cmdline("PING"))))
	_, _ = io.WriteString(conn, "+PONG\r\n")
}

// A link may break at any moment: also after the reader has looked at it, and before it puts a command there.
func TestNothingWaitsForALinkThatHasBroken(t *testing.T) {
	conns := make(chan net.Conn, 10)
	l := serveEach(t, new(sync.WaitGroup), func(conn net.Conn) {
		pong(conn)
		conns <- conn
	})
	up := upstream.New(upstream.Options{Addr: l.Addr().String()})
	for name, use := range map[string]func(*session) bool{
		"a command":  func(s *session) bool { return s.uplink.link.pushRelayed() },
		"a question": func(s *session) bool { s.uplink.link.ask(expectation{n: 1}, "MULTI"); return false },
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			defer far.Close()
			engine := newFakeEngine()
			srv := newServer(Config{Upstream: up, LockKeys: []string{"lock:*"}}, engine, nil, engine.fakeMessages)
			defer srv.gates.Close()
			s := newSession(srv, near, 1)
			s.uplink.make()
			_ = (<-conns).Close()
			<-s.uplink.link.done
			if use(s) {
				t.Error("a command was put on a link that had broken")
			}
			if s.replies.mu.Lock(); !s.replies.gone {
				t.Error("the session goes on")
			}
			s.replies.mu.Unlock()
			s.uplink.drop()
		})
	}
}

// What a command leaves at the upstream is noted when it has been sent. If the upstream could answer before that, and then close the
// connection, nobody would miss a WATCH. So the end of a request, however large, is written with what comes behind it, or at last.
func TestNoRequestIsAnsweredBeforeItsStateIsNoted(t *testing.T) {
	near, far := net.Pipe()
	var wrote bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = wrote.ReadFrom(far)
	}()
	s := &session{server: &Server{}, reader: reader{line: admission.New(time.Second).Place(func() {})}}
	l := &link{session: s, uplink: &s.uplink, conn: near}
	l.send([]string{"SET", "a", strings.Repeat("v", sendSize-10)})
	l.send([]string{"WATCH", "k"})
	l.send([]string{"WATCH", strings.Repeat("k", 3*sendSize)})
	last := len(*l.out)
	l.stateful = false
	l.session.transaction.stage = watchingThere
	l.flush()
	_ = near.Close()
	<-read
	if last == 0 || !l.stateful || !bytes.HasSuffix(wrote.Bytes(), []byte("kk\r\n")) {
		t.Errorf("%d bytes were left to the last write; state noted: %v", last, l.stateful)
	}
}

// The reply finds that the client is gone, before that is read from it.
func TestAClientThatIsGoneIsNoFailureOfTheUpstream(t *testing.T) {
	u := newFakeUpstream(t)
	log := &logged{}
	r := newRig(t, Config{Upstream: u.redis, LockKeys: []string{"lock:*"}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	c := r.dial()
	c.send(words("GET a"))
	u.wantRequest(t, "GET a")
	for _, s := range r.server.sessions.all() {
		if err := s.conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Error(err)
		}
	}
	u.answers <- "$1\r\na\r\n"
	waitFor(t, "the client is still there", func() bool { return r.server.Stats().Clients == 0 })
	if n := r.server.Stats().UpstreamErrors; n != 0 || strings.Contains(log.String(), "for the upstream failed") {
		t.Errorf("%d errors counted, and told: %s", n, log)
	}
}

func TestAnUnsubscribeIsAnsweredWhoeverHasGone(t *testing.T) {
	l := serveEach(t, new(sync.WaitGroup), func(conn net.Conn) {
		pong(conn)
		_, _ = conn.Read(make([]byte, 1<<10))
		_, _ = conn.Write([]byte("$-1\r\n"))
		_ = conn.Close()
	})
	r := newRig(t, Config{Upstream: upstream.New(upstream.Options{Addr: l.Addr().String()}), LockKeys: []string{"lock:*"}})
	c := r.dial()
	if reply := c.ask("GET", "a"); reply != "$-1\r\n" {
		t.Fatal(reply)
	}
	session := r.server.sessions.all()[0]
	<-session.uplink.link.done
	c.send(words("UNSUBSCRIBE news") + words("PING"))
	c.want("*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n:0\r\n+PONG\r\n")
}

func TestAQueueThatIsNeverEmptyDoesNotGrow(t *testing.T) {
	l := &link{expected: []expectation{{n: 1}}}
	for range 100_000 {
		l.expected = append(l.expected, expectation{n: 2})
		l.met()
		if len(l.expected) != 1 || l.expected[0].n != 2 {
			t.Fatal("it holds something else")
		}
	}
	if cap(l.expected) > 100 {
		t.Errorf("room for %d expectations, and there are two at most", cap(l.expected))
	}
}

func TestWhatIsExpectedBehindAReplyStaysWhereItIs(t *testing.T) {
	l := &link{expected: make([]expectation, 3)}
	for len(l.expected) > 1 {
		second := &l.expected[1]
		l.met()
		if second != &l.expected[0] {
			t.Fatal("all that is expected is moved up for each reply")
		}
	}
	if allocs := testing.AllocsPerRun(100, func() {
		l.met()
		l.expected = append(l.expected, expectation{n: 1})
	}); allocs > 0 {
		t.Errorf("%v allocations for a command by itself", allocs)
	}
}

func TestAnIdleLinkKeepsNoLargeBuffers(t *testing.T) {
	large := "$60000\r\n" + strings.Repeat("x", 60_000) + "\r\n"
	answer := func(conn net.Conn) { // a large reply to a large request, and a small one to others
		pong(conn)
		buf, n := make([]byte, 1<<10), 0
		for {
			k, err := conn.Read(buf)
			if err != nil {
				return
			}
			if n += k; !strings.HasSuffix(string(buf[:k]), ".\r\n") {
				continue
			}
			reply := "+OK\r\n"
			if n > len(large) {
				reply = large
			}
			_, _ = io.WriteString(conn, reply)
			n = 0
		}
	}
	l := serveEach(t, new(sync.WaitGroup), answer)
	r := newRig(t, Config{Upstream: upstream.New(upstream.Options{Addr: l.Addr().String()}), LockKeys: []string{"lock:*"}})
	clients := make([]*client, 100)
	for i := range clients {
		clients[i] = r.dial()
		clients[i].send(words("SET k ."))
		clients[i].want("+OK\r\n")
	}
	inUse := func() int64 {
		runtime.GC()
		runtime.GC() // and what pools keep
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	for _, c := range clients {
		c.send(cmdline("SET", "k", large+"."))
		c.want(large)
		c.send(words("SET k ."))
		c.want("+OK\r\n")
	}
	if grown := (inUse() - before) / int64(len(clients)); grown > 10_000 {
		t.Errorf("%d bytes more for each client that has nothing under way", grown)
	}
}

func TestConfirmationsOfManyLongNamesAreNotGathered(t *testing.T) {
	u, _, c := newUpstreamRig(t)
	request, confirmed := []string{"subscribe"}, strings.Builder{}
	for i := range 50 {
		name := fmt.Sprintf("%02d", i) + strings.Repeat("n", 10_000)
		request = append(request, name)
		fmt.Fprintf(&confirmed, "*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:%d\r\n", len(name), name, i+1)
	}
	c.send(cmdline(request...))
	u.wantRequest(t, strings.Join(request, " "))
	u.answers <- confirmed.String()
	c.want(confirmed.String())
}

func TestLargeRequestsWaitBehindALock(t *testing.T) {
	u := newFakeUpstream(t)
	r := newRig(t, Config{Upstream: u.redis, LockKeys: []string{"lock:*"}, Limits: Limits{Input: 4096, Command: 4096, Bulk: 4096}})
	arrived := r.engine.hold()
	c := r.dial()
	value := strings.Repeat("x", 20_000)
	c.send(words("SET lock:x tok NX PX 9000") + words("GET a"))
	<-arrived
	c.send(words("SET b "+value) + words("PING"))
	if c.isAnswered() {
		t.Fatal("there was an answer before the lock's")
	}
	r.engine.release(0)
	c.want("+OK\r\n")
	u.wantRequest(t, "GET a")
	u.wantRequest(t, "SET b "+value)
	u.answers <- "$-1\r\n+OK\r\n"
	c.want("$-1\r\n+OK\r\n+PONG\r\n")
}

// A command that comes behind a SELECT which the upstream refuses would be run in the database that was selected before.
func TestNothingRunsInAnotherDatabaseThanTheClients(t *testing.T) {
	const lacks = "-ERR DB index is out of range\r\n"
	u, _, c := newUpstreamRig(t)
	c.send(words("SET a 0"))
	u.wantRequest(t, "SET a 0")
	u.answers <- "+OK\r\n"
	c.want("+OK\r\n")
	c.send(words("SELECT 9"))
	u.wantRequest(t, "SELECT 9")
	u.answers <- lacks
	c.want(lacks)
	c.send(words("SELECT 3") + words("SET a 3"))
	u.wantRequest(t, "SELECT 3")
	if c.peek("+OK\r\n") || len(u.arrived) > 0 {
		t.Fatal("it went on before the upstream has replied to SELECT")
	}
	u.answers <- "+OK\r\n"
	u.wantRequest(t, "SET a 3")
	u.answers <- "+OK\r\n"
	c.want("+OK\r\n+OK\r\n")
}

// Before Redis 7.2, who publishes in a transaction to a channel of his own gets the message amid the reply of EXEC, in addition to the
// replies that this counts.
func TestAMessageAmidTheReplyOfExecIsNoneOfItsReplies(t *testing.T) {
	const message = ">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nm\r\n"
	for _, reply := range []string{"*2\r\n" + message + ":1\r\n+OK\r\n", "*2\r\n:1\r\n" + message + message + "+OK\r\n"} {
		u, _, c := subscribed(t)
		c.send(words("MULTI") + words("PUBLISH news m") + words("SET a b") + words("EXEC") + words("GET a"))
		for _, request := range []string{"MULTI", "PUBLISH news m", "SET a b"} {
			u.wantRequest(t, request)
		}
		u.answers <- "+OK\r\n+QUEUED\r\n+QUEUED\r\n"
		u.wantRequest(t, "EXEC")
		u.answers <- reply
		u.wantRequest(t, "GET a")
		u.answers <- "_\r\n"
		c.want("+OK\r\n+QUEUED\r\n+QUEUED\r\n" + reply + "_\r\n")
	}
}

// Who sends a command to a Redis that is busy for a while waits, and so does who has just connected.
func TestANewClientWaitsForASilentUpstream(t *testing.T) {
	speak := make(chan struct{})
	var busy atomic.Bool
	l := serveEach(t, new(sync.WaitGroup), func(conn net.Conn) {
		defer conn.Close()
		if busy.Load() {
			select {
			case <-speak:
			case <-t.Context().Done():
				return
			}
		}
		eachRequest(conn, func([]string) bool {
			_, err := io.WriteString(conn, "+v\r\n")
			return err == nil
		})
	})
	up := upstream.New(upstream.Options{Addr: l.Addr().String(), DialTimeout: 20 * time.Millisecond})
	waitFor(t, "it never answers", func() bool {
		conn, err := up.Dial(t.Context(), upstream.Greeting{})
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	busy.Store(true)
	r := newRig(t, Config{Upstream: up, LockKeys: []string{"lock:*"}})
	c, leaves := r.dial(), r.dial()
	c.send(words("GET data"))
	leaves.send(words("GET data"))
	waitFor(t, "nobody connects to the upstream", func() bool { return r.server.Stats().UpstreamLinks == 2 })
	if _, err := up.Dial(t.Context(), upstream.Greeting{}); err == nil || !strings.HasSuffix(err.Error(), upstream.NoAnswer) {
		t.Fatalf("whoever does not wait gives up: %v", err)
	}
	_ = leaves.Close()
	waitFor(t, "who hung up is still there", func() bool { return r.server.Stats().UpstreamLinks == 1 })
	close(speak)
	c.want("+v\r\n")
}

// What a client does to others, it does in the order in which it was sent.
func TestWhatIsDoneToOthersWaitsForWhatCameBefore(t *testing.T) {
	u, r, c := newUpstreamRig(t)
	other := r.dial()
	id := strings.TrimSpace(other.ask("CLIENT", "ID")[1:])
	c.send(words("SET data v") + words("CLIENT KILL ID "+id))
	u.wantRequest(t, "SET data v")
	waitFor(t, "the kill does not wait", func() bool {
		for _, s := range r.server.sessions.all() {
			if s.reader.heldUp.Load() {
				return true
			}
		}
		return false
	})
	if got := other.ask("PING"); got != "+PONG\r\n" {
		t.Errorf("the other got %q", got)
	}
	u.answers <- "+OK\r\n"
	c.want("+OK\r\n:1\r\n")
	other.wantEnd()
}
