package upstream

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

const patienceMax = 20 * time.Second

// A heap gathers what a trunk gives one push.
type heap struct {
	mu      sync.Mutex // guards what follows
	text    strings.Builder
	replies int
	lost    error
	change  chan struct{}
}

func newHeap() *heap { return &heap{change: make(chan struct{}, 1)} }

func (h *heap) changed() {
	select {
	case h.change <- struct{}{}:
	default:
	}
}

func (h *heap) Replies(b []byte, n int) {
	h.mu.Lock()
	h.text.Write(b)
	h.replies += n
	h.mu.Unlock()
	h.changed()
}

func (h *heap) Lost(cause error) {
	h.mu.Lock()
	h.lost = errors.Join(h.lost, cause)
	h.mu.Unlock()
	h.changed()
}

func (h *heap) wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.After(patienceMax); ; {
		h.mu.Lock()
		ok := done()
		h.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-h.change:
		case <-deadline:
			t.Fatalf("never %s: %d replies, %q, lost %v", what, h.replies, h.text.String(), h.lost)
		}
	}
}

func (h *heap) want(t *testing.T, text string, n int) {
	t.Helper()
	h.wait(t, text, func() bool { return h.lost != nil || h.replies == n && h.text.Len() >= len(text) })
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.text.String() != text || h.lost != nil {
		t.Fatalf("got %q, lost %v, want %q", h.text.String(), h.lost, text)
	}
}

// newTrunk returns a trunk and the server's end of its connection.
func newTrunk(t *testing.T, log *slog.Logger) (*Trunk, net.Conn) {
	t.Helper()
	return newTrunkFor(t, log, time.Minute)
}

func newTrunkFor(t *testing.T, log *slog.Logger, writeMax time.Duration) (*Trunk, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newTrunkAt(t, l, Options{}, log, writeMax)
}

// newTrunkAt accepts the trunk's connection at l, and closes that.
func newTrunkAt(t *testing.T, l net.Listener, opt Options, log *slog.Logger, writeMax time.Duration) (*Trunk, net.Conn) {
	t.Helper()
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			greeted(conn)
		}
		accepted <- conn
	}()
	opt.Addr = l.Addr().String()
	trunk, err := New(opt).newTrunk(Greeting{}, writeMax, log)
	if err != nil {
		t.Fatal(err)
	}
	conn := <-accepted
	t.Cleanup(func() {
		_ = conn.Close()
		trunk.Close()
	})
	_ = conn.SetDeadline(time.Now().Add(patienceMax))
	return trunk, conn
}

// greeted answers the greeting of a client that has nothing else to greet with.
func greeted(conn net.Conn) {
	_, _ = io.ReadFull(conn, make([]byte, len(AppendCommand(nil, "PING"))))
	_, _ = io.WriteString(conn, "+PONG\r\n")
}

func TestEachPushGetsItsReplies(t *testing.T) {
	kinds := []string{"+OK\r\n", "-ERR no\r\n", ":7\r\n", "$-1\r\n", "$0\r\n\r\n", "$5\r\n\r\n>+-\r\n", "*2\r\n$1\r\na\r\n*1\r\n:1\r\n", "_\r\n", "%1\r\n+a\r\n+b\r\n"}
	const message = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"
	for seed := range uint64(20) {
		dice := rand.New(rand.NewPCG(seed, 1))
		trunk, conn := newTrunk(t, slog.New(slog.DiscardHandler))
		var wire strings.Builder
		var heaps []*heap
		var wants []string
		var counts []int
		for i := range 200 {
			h, n, want := newHeap(), 1+dice.IntN(5), ""
			for range n {
				reply := kinds[dice.IntN(len(kinds))]
				if dice.IntN(10) == 0 {
					wire.WriteString(message)
				}
				wire.WriteString(reply)
				want += reply
			}
			heaps, wants, counts = append(heaps, h), append(wants, want), append(counts, n)
			if !trunk.Push(fmt.Append(nil, i, ";"), n, h) {
				t.Fatal("it has ended")
			}
		}
		var pushed strings.Builder
		for i := range 200 {
			fmt.Fprint(&pushed, i, ";")
		}
		got := make([]byte, pushed.Len())
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != pushed.String() {
			t.Fatalf("the server got %q, %v", got, err)
		}
		for text := wire.String(); len(text) > 0; {
			n := min(1+dice.IntN(40), len(text))
			if _, err := io.WriteString(conn, text[:n]); err != nil {
				t.Fatal(err)
			}
			text = text[n:]
		}
		for i, h := range heaps {
			h.want(t, wants[i], counts[i])
		}
	}
}

func TestATrunkThatBreaksTellsAllWhoWaitForReplies(t *testing.T) {
	trunk, conn := newTrunk(t, slog.New(slog.DiscardHandler))
	done, half, none := newHeap(), newHeap(), newHeap()
	for i, h := range []*heap{done, half, none} {
		if !trunk.Push([]byte("x"), i+1, h) {
			t.Fatal("it has ended")
		}
	}
	if _, err := io.WriteString(conn, "+done\r\n+half\r\n"); err != nil {
		t.Fatal(err)
	}
	done.want(t, "+done\r\n", 1)
	half.want(t, "+half\r\n", 1)
	_ = conn.Close()
	half.wait(t, "lost", func() bool { return half.lost != nil })
	none.wait(t, "lost", func() bool { return none.lost != nil })
	done.mu.Lock()
	defer done.mu.Unlock()
	if done.lost != nil || !trunk.dead.Load() || trunk.Push([]byte("x"), 1, none) || trunk.Full(nil) {
		t.Errorf("lost %v, dead %v", done.lost, trunk.dead.Load())
	}
}

func TestAServerThatDoesNotReadEndsATrunk(t *testing.T) {
	trunk, _ := newTrunkFor(t, slog.New(slog.DiscardHandler), 10*time.Millisecond)
	h, room := newHeap(), make(kicks, 1)
	for trunk.Push(make([]byte, trunkOutMax), 1, h) {
		if trunk.Full(room) {
			<-room // or it has ended
		}
	}
	h.wait(t, "lost", func() bool { return h.lost != nil })
	h.mu.Lock()
	defer h.mu.Unlock()
	if !errors.Is(h.lost, errDeaf) {
		t.Error(h.lost)
	}
}

func TestAReplyThatNobodyAskedForEndsATrunk(t *testing.T) {
	trunk, conn := newTrunk(t, slog.New(slog.DiscardHandler))
	if _, err := io.WriteString(conn, "-ERR max number of clients reached\r\n"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patienceMax); !trunk.dead.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it goes on")
		}
	}
}

type kicks chan struct{}

func (k kicks) Kick() {
	select {
	case k <- struct{}{}:
	default:
	}
}

func TestAFullTrunkTellsWhenThereIsRoom(t *testing.T) {
	for name, requests := range map[string]string{"replies": "x", "bytes": strings.Repeat("x", trunkOutMax)} {
		t.Run(name, func(t *testing.T) {
			trunk, conn := newTrunk(t, slog.New(slog.DiscardHandler))
			room, h, pushed := make(kicks, 1), newHeap(), 0
			for !trunk.Full(room) {
				pushed++
				if !trunk.Push([]byte(requests), 16, h) {
					t.Fatal("it has ended")
				}
			}
			if most := trunkRepliesMax / 16; pushed > most || name == "bytes" && pushed > most/2 {
				t.Fatalf("%d requests before it was full", pushed)
			}
			select {
			case <-room:
				if name == "replies" {
					t.Fatal("there is room, and nothing was answered")
				}
				return // the writer has taken the bytes in the meantime
			default:
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			if _, err := io.WriteString(conn, strings.Repeat("+OK\r\n", 16*pushed)); err != nil {
				t.Fatal(err)
			}
			select {
			case <-room:
			case <-time.After(patienceMax):
				t.Fatal("nobody said that there is room")
			}
		})
	}
}

func TestABugOfWhoGetsRepliesEndsTheTrunkAlone(t *testing.T) {
	log := &journal{}
	trunk, conn := newTrunk(t, slog.New(slog.NewTextHandler(log, nil)))
	next := newHeap()
	if !trunk.Push([]byte("x"), 1, buggy{}) || !trunk.Push([]byte("x"), 1, next) {
		t.Fatal("it has ended")
	}
	if _, err := io.WriteString(conn, "+OK\r\n"); err != nil {
		t.Fatal(err)
	}
	next.wait(t, "lost", func() bool { return next.lost != nil })
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "a bug") {
		t.Errorf("%q", lines)
	}
}

type buggy struct{}

func (buggy) Replies([]byte, int) { panic("a bug") }
func (buggy) Lost(error)          {}

func TestWhichCommandsLeaveNoState(t *testing.T) {
	row := func(name string, first int64, flags ...any) []any {
		return []any{name, int64(2), flags, first, first, int64(1), []any{}, []any{}, []any{}, []any{}}
	}
	config := row("config", 0)
	config[9] = []any{row("config|get", 0, "admin", "noscript")}
	object := row("object", 0)
	object[9] = []any{row("object|encoding", 2, "readonly")}
	commands := parseCommands([]any{row("get", 1, "readonly"), row("blpop", 1, "write", "noscript"), row("xread", 0, "readonly", "movablekeys"),
		row("sort", 1, "movablekeys"), row("bzmpop", 1, "blocking"), row("ft.search", 1, "module"), row("dbsize", 0, "readonly"),
		row("select", 0), row("spublish", 1, "pubsub"), row("ssubscribe", 1, "pubsub", "noscript"), row("time", 0), config, object})
	for command, want := range map[string]bool{"get k": true, "GET k": true, "GET": true, "blpop q 0": false, "XREAD STREAMS a 0": false, "SORT a": false,
		"BZMPOP 0 1 a MIN": false, "FT.SEARCH a": false, "DBSIZE": true, "SELECT 1": false, "SPUBLISH a b": true, "SSUBSCRIBE a": false, "TIME": false,
		"CONFIG GET x": true, "config": true, "OBJECT ENCODING k": true, "OBJECT HELP": false, "NOSUCH": false, strings.Repeat("x", 100): false} {
		if got := commands.Stateless(strings.Fields(command)); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}

func TestHowManyArgumentsACommandMayHave(t *testing.T) {
	row := func(name string, arity int64, subs ...any) []any {
		return []any{name, arity, []any{}, int64(0), int64(0), int64(0), []any{}, []any{}, []any{}, subs}
	}
	commands := parseCommands([]any{row("get", 2), row("del", -2), row("object", -2, row("object|encoding", 3))})
	for command, want := range map[string]bool{"GET": false, "get k": true, "get k k": false, "DEL": false, "del k": true, "del k k": true,
		"object": false, "object encoding k": true, "OBJECT ENCODING": false, "object nosuch k": false, "nosuch": false} {
		if got := commands.Accepts(strings.Fields(command)); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}

func TestWhichCommandsMayWait(t *testing.T) {
	commands := parseCommands([]any{ // six fields, as servers older than Redis 7 have them, and newer ones
		[]any{"get", int64(2), []any{"readonly", "fast"}, int64(1), int64(1), int64(1)},
		[]any{"blpop", int64(-3), []any{"write", "noscript"}, int64(1), int64(-2), int64(1)},
		[]any{"xread", int64(-4), []any{"readonly", "movablekeys"}, int64(0), int64(0), int64(0)},
		[]any{"bzmpop", int64(-5), []any{"write", "blocking", "movablekeys"}, int64(0), int64(0), int64(0), []any{}, []any{}, []any{}, []any{}},
		[]any{"ft.search", int64(-2), []any{"readonly", "module"}, int64(1), int64(1), int64(1)},
	})
	for command, want := range map[string]bool{"GET k": false, "BLPOP q 0": true, "xread BLOCK 0 STREAMS s $": true, "BZMPOP 0 1 a MIN": true,
		"FT.SEARCH a": true, "NOSUCH": true} {
		if got := commands.MayWait(strings.Fields(command)); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}

func TestWhichCommandsMayChange(t *testing.T) {
	commands := parseCommands([]any{
		[]any{"get", int64(2), []any{"readonly", "fast"}, int64(1), int64(1), int64(1)},
		[]any{"incr", int64(2), []any{"write", "denyoom", "fast"}, int64(1), int64(1), int64(1)},
		[]any{"publish", int64(3), []any{"pubsub", "may_replicate"}, int64(0), int64(0), int64(0)},
		[]any{"json.set", int64(-4), []any{"write", "module"}, int64(1), int64(1), int64(1)},
		[]any{"json.get", int64(-2), []any{"readonly", "module"}, int64(1), int64(1), int64(1)},
	})
	for command, want := range map[string]bool{"GET k": false, "INCR k": true, "publish a b": true, "JSON.SET k $ 1": true, "JSON.GET k": false,
		"BF.ADD k x": true} { // of a module that was loaded since
		if got := commands.MayChange(strings.Fields(command)); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
	if !(*Commands)(nil).MayChange([]string{"GET", "k"}) {
		t.Error("a server that could not be asked has commands that change nothing")
	}
}

// A server that refuses writes as a replica answers what it has been sent, and is sent no more.
func TestATrunkToAReplicaIsGivenUp(t *testing.T) {
	trunk, conn := newTrunk(t, slog.New(slog.DiscardHandler))
	first, later := newHeap(), newHeap()
	push := func(h *heap, n int) {
		t.Helper()
		if !trunk.Push([]byte("x"), n, h) {
			t.Fatal("it has ended")
		}
	}
	reply := func(text string) {
		t.Helper()
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
	}
	const refusal = "-READONLY You can't write against a read only replica.\r\n"
	push(first, 1)
	reply(refusal)
	first.want(t, refusal, 1)
	if !trunk.Fit() {
		t.Fatal("one that is new would be made anew for each refusal")
	}
	trunk.born = trunk.born.Add(-demotedAfter)
	first = newHeap()
	push(first, 2)
	push(later, 1)
	reply(refusal)
	first.want(t, refusal, 1)
	if trunk.Fit() || trunk.dead.Load() {
		t.Fatalf("fit %v, dead %v", trunk.Fit(), trunk.dead.Load())
	}
	push(later, 1) // from who had gathered it before
	reply("$1\r\n1\r\n+OK\r\n:1\r\n")
	first.want(t, refusal+"$1\r\n1\r\n", 2)
	later.want(t, "+OK\r\n:1\r\n", 2)
	if _, err := conn.Read(make([]byte, 9)); !errors.Is(err, io.EOF) {
		for err == nil {
			_, err = conn.Read(make([]byte, 9))
		}
		if !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
	trunk.running.Wait()
	if trunk.Push([]byte("x"), 1, later) || later.lost != nil {
		t.Errorf("lost %v", later.lost)
	}
}
