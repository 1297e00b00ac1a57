package resp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"lockproxy/quorum"
	"lockproxy/quorum/admission"
	"lockproxy/quorum/pubsub"
	"lockproxy/quorum/vote"
	"lockproxy/resp/wire"
	"lockproxy/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fakeEngine is one Redis in memory with a TTL on every key. While it holds, operations take effect and their
// callbacks are called when the test lets them.
type fakeEngine struct {
	mu    sync.Mutex
	keys  map[quorum.Key]fakeEntry
	locks map[*quorum.Lock]*fakeLock
	fence map[quorum.Key]int64 // the newest
	err   error                // every operation ends with it

	channels int64 // that masters have

	control *admission.Control
	holding bool
	held    []func()
	arrived chan string // one name per operation, if not nil
	telling chan func() // gets what tells the outcome of an Exec or a Run, in place of its being told, if not nil
	async   bool        // operations run on goroutines of their own
	running sync.WaitGroup
	*fakeMessages
	answers map[string]any // of Ask, by command
	slept   atomic.Int64   // how long the machine has, since all that was granted
	insist  func() bool    // of the latest Acquire
	ttlMin  time.Duration
	late    bool // locks and extensions are granted with a validity that has passed

	reply    vote.Value // of Run
	locking  bool       // Run takes a lock
	deleting bool       // Run deletes its first key
	ran      []quorum.RunRequest
	searched []quorum.LocksRequest
}

type fakeEntry struct {
	kind, value string
	expires     time.Time
}

type fakeLock struct {
	until     time.Time
	slept     *atomic.Int64
	abandoned chan struct{}
	once      sync.Once
	keys      []quorum.Key
}

func (l *fakeLock) Until() time.Time { return l.until.Add(-time.Duration(l.slept.Load())) }
func (l *fakeLock) Abandon()         { l.once.Do(func() { close(l.abandoned) }) }

func (l *fakeLock) AppendKeys(to []quorum.Key) []quorum.Key { return append(to, l.keys...) }

func newFakeEngine() *fakeEngine {
	return &fakeEngine{keys: map[quorum.Key]fakeEntry{}, locks: map[*quorum.Lock]*fakeLock{},
		fence:        map[quorum.Key]int64{},
		control:      admission.New(time.Second),
		fakeMessages: &fakeMessages{topics: map[pubsub.Topic]map[pubsub.Subscriber]bool{}}}
}

// do runs an operation now or when the test calls release.
func (e *fakeEngine) do(name string, op func(map[quorum.Key]fakeEntry) func()) {
	run := func() {
		e.mu.Lock()
		now := time.Now()
		for k, v := range e.keys {
			if !now.Before(v.expires) {
				delete(e.keys, k)
			}
		}
		done := op(e.keys)
		e.mu.Unlock()
		done()
	}
	e.mu.Lock()
	holding, arrived := e.holding, e.arrived
	if holding {
		e.held = append(e.held, run)
	}
	e.mu.Unlock()
	switch {
	case holding:
	case e.async:
		e.running.Go(run)
	default:
		run()
	}
	if arrived != nil {
		arrived <- name
	}
}

// hold makes operations wait from here on, and returns a channel that says when they arrive.
func (e *fakeEngine) hold() <-chan string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.holding, e.arrived = true, make(chan string, 1<<16)
	return e.arrived
}

// underWay returns how many operations wait.
func (e *fakeEngine) underWay() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.held)
}

// release ends the i-th operation that waits.
func (e *fakeEngine) release(i int) {
	e.mu.Lock()
	run := e.held[i]
	e.held = append(e.held[:i:i], e.held[i+1:]...)
	e.mu.Unlock()
	run()
}

// releaseAll ends all operations that wait, and makes no others wait.
func (e *fakeEngine) releaseAll() {
	e.mu.Lock()
	held := e.held
	e.holding, e.held = false, nil
	e.mu.Unlock()
	for _, run := range held {
		run()
	}
}

func (e *fakeEngine) grant(ttl time.Duration, keys ...quorum.Key) *quorum.Lock {
	l := &quorum.Lock{}
	until := time.Now().Add(ttl)
	if e.late {
		until = time.Now().Add(-time.Millisecond)
	}
	e.locks[l] = &fakeLock{until: until, slept: &e.slept, abandoned: make(chan struct{}), keys: keys}
	return l
}

func (e *fakeEngine) lockOf(l *quorum.Lock) lock {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.locks[l]
}

// onlyLock is the lock of the only acquire that was granted.
func (e *fakeEngine) onlyLock(t *testing.T) *fakeLock {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.locks) != 1 {
		t.Fatalf("%d locks were granted, want 1", len(e.locks))
	}
	for _, l := range e.locks {
		return l
	}
	return nil
}

func (e *fakeEngine) Acquire(r quorum.AcquireRequest, done func(quorum.Acquired)) {
	e.mu.Lock()
	e.insist = r.Insist
	e.mu.Unlock()
	e.do("acquire "+r.Key.Name, func(keys map[quorum.Key]fakeEntry) func() {
		old, held := keys[r.Key]
		a := quorum.Acquired{Err: e.err}
		switch {
		case e.err != nil:
		case held && !(r.Reentrant && old.value == r.Token):
			a.Refused = true
			left := time.Until(old.expires)
			a.FreeIn = []time.Duration{left, left, left}
			if r.WantHolder {
				a.Holder = old.value
			}
		default:
			keys[r.Key] = fakeEntry{"string", r.Token, time.Now().Add(r.TTL)}
			a.Held = held
			a.Lock = e.grant(r.TTL, r.Key)
			if r.Fenced {
				e.fence[r.Key] += 1 << 50
				a.Fence = e.fence[r.Key]
			}
		}
		return func() { done(a) }
	})
}

func (e *fakeEngine) Fence(key quorum.Key, done func(quorum.FenceView)) {
	e.do("fence "+key.Name, func(map[quorum.Key]fakeEntry) func() {
		v := quorum.FenceView{Err: e.err}
		if e.err == nil {
			v.Fence = e.fence[key]
		}
		return func() { done(v) }
	})
}

func (e *fakeEngine) Write(r quorum.WriteRequest, done func(quorum.Written)) {
	e.do("write "+r.Key.Name, func(keys map[quorum.Key]fakeEntry) func() {
		old, had := keys[r.Key]
		w := quorum.Written{Err: e.err}
		switch {
		case e.err != nil:
		case r.WantOld && had && old.kind != "string":
			w.Err = quorum.ErrWrongType
		default:
			if r.WantOld {
				w.Old, w.HadOld = old.value, had
			}
			if had || !r.IfExists {
				expires := time.Now().Add(r.TTL)
				if r.KeepTTL && had {
					expires = old.expires
				}
				keys[r.Key] = fakeEntry{"string", r.Value, expires}
				w.Done = true
			}
		}
		return func() { done(w) }
	})
}

func (e *fakeEngine) HandOver(h quorum.HandOver, released func(quorum.Released), acquired func(quorum.Acquired)) {
	e.Release(h.Next.Key, h.Token, released)
	e.Acquire(h.Next, acquired)
}

func (e *fakeEngine) Release(key quorum.Key, token string, done func(quorum.Released)) {
	e.do("release "+key.Name, func(keys map[quorum.Key]fakeEntry) func() {
		old, had := keys[key]
		r := quorum.Released{Err: e.err, Held: e.err == nil && had && old.value == token}
		if r.Held {
			delete(keys, key)
		} else {
			r.Absent = !had
		}
		return func() {
			if r.Held {
				e.ring(key.Name)
			}
			done(r)
		}
	})
}

func (e *fakeEngine) Extend(r quorum.ExtendRequest, done func(quorum.Extended)) {
	e.do("extend "+r.Key.Name, func(keys map[quorum.Key]fakeEntry) func() {
		old, had := keys[r.Key]
		x := quorum.Extended{Err: e.err, Held: e.err == nil && had && old.value == r.Token}
		if x.Held {
			base := time.Now()
			if r.Add {
				base = old.expires.Add(20 * time.Millisecond) // masters keep a lock for longer than its client knows
			}
			old.expires = base.Add(r.TTL)
			keys[r.Key] = old
			if r.Add || r.TTL >= e.ttlMin { // less is promised nothing
				x.Until = old.expires
				x.Lock = e.grant(time.Until(old.expires), r.Key) // late: not yet when it was decided
			}
		} else {
			x.Absent = !had
		}
		return func() { done(x) }
	})
}

func (e *fakeEngine) view(key quorum.Key, stringsOnly bool, done func(quorum.View)) func(map[quorum.Key]fakeEntry) func() {
	return func(keys map[quorum.Key]fakeEntry) func() {
		old, had := keys[key]
		v := quorum.View{Err: e.err}
		switch {
		case e.err != nil:
		case !had:
			v.Type = "none"
		case stringsOnly && old.kind != "string":
			v.Err = quorum.ErrWrongType
		default:
			v.Exists, v.Type, v.Value, v.Length = true, old.kind, old.value, len(old.value)
			if !stringsOnly {
				v.TTL = time.Until(old.expires)
			}
		}
		return func() { done(v) }
	}
}

func (e *fakeEngine) Get(key quorum.Key, done func(quorum.View)) {
	e.do("get "+key.Name, e.view(key, true, done))
}

func (e *fakeEngine) Read(key quorum.Key, done func(quorum.View)) {
	e.do("read "+key.Name, e.view(key, false, done))
}

func (e *fakeEngine) Peek(db int, names []string, done func([]quorum.View, error)) {
	e.viewAll("read", db, names, done)
}

func (e *fakeEngine) Present(db int, names []string, done func([]bool, error)) {
	e.viewAll("read", db, names, func(views []quorum.View, err error) {
		present := make([]bool, len(views))
		for i := range views {
			present[i] = views[i].Exists
		}
		done(present, err)
	})
}

func (e *fakeEngine) GetAll(r quorum.GetAllRequest, done func([]quorum.View, error)) {
	e.viewAll("get", r.DB, r.Names, done)
}

func (e *fakeEngine) viewAll(how string, db int, names []string, done func([]quorum.View, error)) {
	e.do(how+" "+strings.Join(names, " "), func(keys map[quorum.Key]fakeEntry) func() {
		views := make([]quorum.View, len(names))
		for i, name := range names {
			e.view(quorum.Key{DB: db, Name: name}, false, func(v quorum.View) { views[i] = v })(keys)()
			views[i].Exists = views[i].Exists && (how == "read" || views[i].Type == "string")
		}
		return func() { done(views, e.err) }
	})
}

func (e *fakeEngine) RemoveAll(db int, names []string, done func(string, quorum.Changed)) {
	for _, name := range names {
		e.Remove(quorum.Key{DB: db, Name: name}, func(c quorum.Changed) { done(name, c) })
	}
}

func (e *fakeEngine) Remove(key quorum.Key, done func(quorum.Changed)) {
	e.do("remove "+key.Name, func(keys map[quorum.Key]fakeEntry) func() {
		was, had := keys[key]
		if e.err == nil {
			delete(keys, key)
		}
		return func() { done(quorum.Changed{Err: e.err, Applied: had && e.err == nil, Token: was.value}) }
	})
}

func (e *fakeEngine) Expire(r quorum.ExpireRequest, done func(quorum.Changed)) {
	e.do("expire "+r.Key.Name, func(keys map[quorum.Key]fakeEntry) func() {
		old, had := keys[r.Key]
		left := time.Until(old.expires)
		ok := e.err == nil && had && r.Condition&quorum.IfNoTTL == 0 &&
			(r.Condition&quorum.IfGreater == 0 || r.TTL > left) && (r.Condition&quorum.IfLess == 0 || r.TTL < left)
		if ok {
			old.expires = time.Now().Add(r.TTL)
			keys[r.Key] = old
		}
		return func() { done(quorum.Changed{Err: e.err, Applied: ok}) }
	})
}

// notLua is what makes the fake's compiler refuse a text.
const notLua = "this is not Lua"

func (e *fakeEngine) Compile(_ int, text string, done func(quorum.Compiled)) {
	e.do("compile", func(map[quorum.Key]fakeEntry) func() {
		compiled := quorum.Compiled{Err: e.err}
		if e.err == nil && strings.Contains(text, notLua) {
			compiled.Refusal = "ERR Error compiling script (new function): user_script:1: " + notLua
		}
		return func() { done(compiled) }
	})
}

// Run answers with e.reply: no script is run here.
func (e *fakeEngine) Run(r quorum.RunRequest, done func(quorum.Ran)) {
	e.do("run", func(keys map[quorum.Key]fakeEntry) func() {
		ran := quorum.Ran{Err: e.err, Reply: e.reply}
		if e.err == nil && e.locking {
			key := quorum.Key{DB: r.DB, Name: r.Keys[0]}
			keys[key] = fakeEntry{"hash", "", time.Now().Add(time.Minute)}
			ran.Lock = e.grant(time.Minute, key)
		}
		if e.err == nil && e.deleting {
			delete(keys, quorum.Key{DB: r.DB, Name: r.Keys[0]})
			ran.Replaced = r.Keys
		}
		e.ran = append(e.ran, r)
		return e.tell(func() { done(ran) })
	})
}

// tell returns done, or what hands it to the test.
func (e *fakeEngine) tell(done func()) func() {
	if telling := e.telling; telling != nil {
		return func() { telling <- done }
	}
	return done
}

func (e *fakeEngine) Notice(quorum.Key) *quorum.Notice { return new(quorum.Notice) }

func (e *fakeEngine) Exec(r quorum.ExecRequest, done func(quorum.Executed)) {
	e.do("exec "+r.Keys[0], func(keys map[quorum.Key]fakeEntry) func() {
		x := quorum.Executed{Err: e.err}
		if e.err == nil {
			x.Done = e.exec(r, keys, &x)
		}
		return e.tell(func() { done(x) })
	})
}

func (e *fakeEngine) exec(r quorum.ExecRequest, keys map[quorum.Key]fakeEntry, x *quorum.Executed) bool {
	now := make([]quorum.View, len(r.Keys))
	for i, name := range r.Keys {
		now[i].Type = "none"
		if old, had := keys[quorum.Key{DB: r.DB, Name: name}]; had {
			now[i] = quorum.View{Exists: true, Type: old.kind, Value: old.value, Length: len(old.value), TTL: time.Until(old.expires), TTLMost: time.Until(old.expires)}
		}
	}
	for i, m := range r.Watched {
		if !m.Same(now[i]) {
			return false
		}
	}
	for i, edit := range r.Plan(now) {
		key := quorum.Key{DB: r.DB, Name: r.Keys[i]}
		old := keys[key]
		switch edit.Kind {
		case quorum.Put:
			entry := fakeEntry{"string", edit.Value, time.Now().Add(edit.TTL)}
			if edit.KeepTTL {
				entry.expires = old.expires
			}
			keys[key] = entry
			if x.Lock == nil {
				x.Lock = e.grant(time.Until(entry.expires), key)
			}
		case quorum.Expire:
			old.expires = time.Now().Add(edit.TTL)
			keys[key] = old
		case quorum.Delete, quorum.Claim:
			delete(keys, key)
		}
	}
	return true
}

// Views has a master that tells what is there, one that is down, and one in quarantine.
func (e *fakeEngine) Views(key quorum.Key, done func(quorum.Viewed)) {
	e.do("views "+key.Name, func(keys map[quorum.Key]fakeEntry) func() {
		v := quorum.Viewed{Err: e.err, View: quorum.View{Type: "none"}}
		one := quorum.MasterView{Addr: "10.0.0.1:6379", Answered: true, Type: "none", Counts: true}
		if old, had := keys[key]; had {
			v.State, v.View = quorum.LockHeld, quorum.View{Exists: true, Type: old.kind, Value: old.value, TTL: time.Until(old.expires)}
			one.Type, one.Value, one.TTL = old.kind, old.value, v.View.TTL
		}
		v.Masters = []quorum.MasterView{one,
			{Addr: "10.0.0.2:6379", State: quorum.Disconnected, Reason: "connection refused"},
			{Addr: "10.0.0.3:6379", State: quorum.Quarantined, Left: 3 * time.Second, Answered: true, Type: "none", Reason: "quarantined 3s more"}}
		return func() { done(v) }
	})
}

func (e *fakeEngine) Locks(r quorum.LocksRequest, done func(quorum.FoundLocks)) {
	e.do("locks", func(keys map[quorum.Key]fakeEntry) func() {
		f := quorum.FoundLocks{Err: e.err}
		for key, is := range keys {
			wanted := key.DB == r.DB && r.Matches(key.Name) && (r.Names == nil || slices.Contains(r.Names, key.Name))
			if wanted && len(f.Locks) < r.Most {
				f.Locks = append(f.Locks, quorum.FoundLock{Name: key.Name, Type: is.kind, Token: is.value, TTL: time.Until(is.expires), Fence: e.fence[key]})
			} else if wanted {
				f.Stop = quorum.StopCount
			}
		}
		e.searched = append(e.searched, r)
		return func() { done(f) }
	})
}

func (e *fakeEngine) Break(key quorum.Key, done func(quorum.Changed)) {
	e.Remove(key, func(c quorum.Changed) {
		if c.Applied {
			e.ring(key.Name)
		}
		done(c)
	})
}

// Ask gives the answer that the test has for the command.
func (e *fakeEngine) Ask(r quorum.AskRequest, done func(quorum.Asked)) {
	e.do("ask "+r.Key.Name, func(map[quorum.Key]fakeEntry) func() {
		a := quorum.Asked{Err: e.err}
		if e.err == nil && e.answers != nil {
			a.Reply, a.Exists = e.answers[wire.Lower(r.Command[0])]
		}
		return func() { done(a) }
	})
}

func (e *fakeEngine) Admission() *admission.Control { return e.control }

func (e *fakeEngine) Masters() []quorum.MasterStatus {
	return []quorum.MasterStatus{
		{Addr: "10.0.0.1:6379", Server: "redis", Version: "7.0.15", Role: "master", Channels: e.channels},
		{Addr: "10.0.0.2:6379", State: quorum.Disconnected, Cause: "connection refused, twice"},
		{Addr: "10.0.0.3:6379"},
	}
}

// Databases has a master in quarantine in database 8.
func (e *fakeEngine) Databases() []quorum.DatabaseStatus {
	all := e.Masters()
	all[2].State, all[2].Cause, all[2].Since, all[2].Left = quorum.Quarantined, "quarantined 3s more (it is new, or empty)", time.Second, 3*time.Second
	return []quorum.DatabaseStatus{{DB: 0, Masters: e.Masters()}, {DB: 8, Masters: all}}
}

func (e *fakeEngine) Stats() quorum.Stats { return quorum.Stats{Attempts: 3, Acquired: 2} }

// A rig is a server on loopback with a fake engine.
type rig struct {
	t      testing.TB
	server *Server
	engine *fakeEngine
	addr   string
}

// listen opens a port until the test ends.
func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// password is one that stays.
func password(text string) func() string { return func() string { return text } }

func newRig(t testing.TB, cfg Config) *rig {
	t.Helper()
	r := &rig{t: t, engine: newFakeEngine()}
	r.server = New(cfg, r.engine, script.NewCache(100), r.engine.fakeMessages)
	r.server.lockOf = r.engine.lockOf
	r.engine.ttlMin = r.server.cfg.TTLMin
	l := listen(t)
	r.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		if err := r.server.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, ErrServerClosed) {
			t.Errorf("Serve returned %v", err)
		}
	})
	return r
}

// shutDown shuts the server down, and returns what tells when it has.
func (r *rig) shutDown() <-chan error {
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patienceMax)
		defer cancel()
		done <- r.server.Shutdown(ctx)
	}()
	return done
}

// inBubble runs f with a server in a bubble of testing/synctest, where no time passes while anybody can go on. dial returns a client's
// end of a connection, which is a pipe. f hangs up.
func inBubble(t *testing.T, cfg Config, f func(t *testing.T, e *fakeEngine, srv *Server, dial func() net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		srv := New(cfg, e, script.NewCache(100), e.fakeMessages)
		srv.lockOf = e.lockOf
		defer func() {
			if err := srv.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		f(t, e, srv, func() net.Conn {
			c, conn := net.Pipe()
			srv.admit(conn)
			return c
		})
	})
}

// A client speaks to a rig in raw bytes.
type client struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func (r *rig) dial() *client {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patienceMax))
	return &client{r.t, conn, bufio.NewReader(conn)}
}

// cmdline encodes words as a client library does.
func cmdline(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

func (c *client) send(raw string) {
	c.t.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// want reads exactly these bytes.
func (c *client) want(raw string) {
	c.t.Helper()
	got := make([]byte, len(raw))
	n, err := io.ReadFull(c.r, got)
	if err != nil || string(got) != raw {
		more, _ := c.r.Peek(c.r.Buffered())
		c.t.Fatalf("got %q%q (%v), want %q", got[:n], more, err, raw)
	}
}

// wantEnd reads the end of the stream.
func (c *client) wantEnd() {
	c.t.Helper()
	rest, err := io.ReadAll(c.r)
	if err != nil || len(rest) > 0 {
		c.t.Fatalf("got %q (%v), want the end", rest, err)
	}
}

// ask sends one command and returns the raw reply.
func (c *client) ask(words ...string) string {
	c.t.Helper()
	c.send(cmdline(words...))
	return c.reply()
}

// reply reads one reply of any shape.
func (c *client) reply() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatalf("reply: %q, %v", line, err)
	}
	var n int
	_, _ = fmt.Sscanf(line[1:], "%d", &n)
	switch line[0] {
	case '$', '=':
		if n >= 0 {
			body := make([]byte, n+2)
			if _, err := io.ReadFull(c.r, body); err != nil {
				c.t.Fatal(err)
			}
			line += string(body)
		}
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		for range n {
			line += c.reply()
		}
	}
	return line
}
