package quorum

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"lockproxy/quorum/masters"
)

// A fake is a master whose time and fate a test steers. It runs the commands of this package as Redis would, one batch
// at a time, after a network delay each way. While it is stalled it takes commands and does nothing; a connection that
// is closed meanwhile leaves them behind, to be run later, as a real socket does.
type fake struct {
	addr string

	mu      sync.Mutex    // guards all below
	lag     time.Duration // each way
	stalled chan struct{} // closed by resume
	refuse  bool          // dials are refused
	refusal []error       // with these in turn, else with ECONNREFUSED
	noKill  bool          // CLIENT KILL is not permitted
	noID    bool          // CLIENT ID is not permitted
	breaks  string        // the beginning of a command after which the connection breaks, once
	runID   int
	skew    time.Duration // of its clock
	lineage string
	alias   string // see process
	memory  string // what INFO says of it
	faster  func() // another proxy: what it does before a canary is written, once, with mu held
	marks   map[string]value
	nextID  int64
	keys    map[string]value
	conns   map[int64]*fakeConn
	log     []string // the commands run, without the handshake
	fail    map[string]string
	loaded  map[string]*lua
	hashes  map[string]any // the replies to commands on hashes
	voted   map[string]any // the replies to scripts of clients, by the text that is sent
	scans   int            // how often it was asked for names
}

type value struct {
	text    string
	kind    string
	expires time.Time
}

func newFake(i int) *fake {
	return &fake{
		addr: fmt.Sprintf("m%d", i+1), lag: time.Millisecond, keys: make(map[string]value),
		marks: make(map[string]value), conns: make(map[int64]*fakeConn), fail: make(map[string]string), loaded: make(map[string]*lua),
	}
}

// newFakes returns so many, and the same as masters.
func newFakes(n int) (fakes []*fake, ms []masters.Master) {
	for i := range n {
		f := newFake(i)
		fakes, ms = append(fakes, f), append(ms, f)
	}
	return fakes, ms
}

func (f *fake) Addr() string { return f.addr }

func (f *fake) Dial(_ context.Context, db int) (masters.Conn, error) {
	time.Sleep(f.delay())
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse && len(f.refusal) > 0 {
		f.refusal = append(f.refusal[1:], f.refusal[0])
		return nil, f.refusal[0]
	}
	if f.refuse {
		return nil, syscall.ECONNREFUSED
	}
	f.nextID++
	c := &fakeConn{fake: f, id: f.nextID, db: db, closed: make(chan struct{})}
	f.conns[c.id] = c
	return c, nil
}

type fakeConn struct {
	fake   *fake
	id     int64
	db     int
	once   sync.Once
	closed chan struct{}
	killed bool // guarded by fake.mu: what is still buffered never runs

	sent  []*fakeBatch  // not received
	order chan struct{} // closed when the batch sent last has been run
}

// A fakeBatch is what was sent at once. What runs are copies: a caller that gave up must not see a reply.
type fakeBatch struct {
	copies []*masters.Call
	done   chan bool
	due    time.Time
}

func (c *fakeConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (c *fakeConn) Exec(calls []*masters.Call) error {
	if err := c.Send(calls); err != nil {
		return err
	}
	return c.Receive(calls)
}

func (c *fakeConn) Send(calls []*masters.Call) error {
	b := &fakeBatch{copies: make([]*masters.Call, len(calls)), done: make(chan bool, 1)}
	for i, call := range calls {
		b.copies[i] = &masters.Call{Args: plain(call.Args)}
	}
	before, now := c.order, make(chan struct{})
	c.order = now
	arrived := time.Now().Add(c.fake.delay())
	go func() {
		time.Sleep(time.Until(arrived))
		if before != nil {
			<-before
		}
		ok := c.serve(b.copies)
		b.due = time.Now().Add(c.fake.delay())
		b.done <- ok
		close(now)
	}()
	c.fake.mu.Lock()
	defer c.fake.mu.Unlock()
	c.sent = append(c.sent, b)
	return nil
}

func (c *fakeConn) Receive(calls []*masters.Call) error {
	f := c.fake
	f.mu.Lock()
	b := c.sent[0]
	c.sent = c.sent[1:]
	f.mu.Unlock()
	select {
	case ok := <-b.done:
		if !ok {
			return io.EOF
		}
		select {
		case <-c.closed:
			return io.EOF
		case <-time.After(time.Until(b.due)):
		}
		for i := range calls {
			calls[i].Answered, calls[i].Reply, calls[i].Err = b.copies[i].Answered, b.copies[i].Reply, b.copies[i].Err
		}
		return nil
	case <-c.closed:
		return io.EOF
	}
}

// serve runs the batch when it has arrived and the master is not stalled.
func (c *fakeConn) serve(calls []*masters.Call) bool {
	f := c.fake
	for {
		f.mu.Lock()
		stalled := f.stalled
		if stalled == nil {
			break
		}
		f.mu.Unlock()
		<-stalled
	}
	defer f.mu.Unlock()
	if c.killed {
		return false
	}
	for _, call := range calls {
		f.run(c, call)
		if f.breaks != "" && strings.HasPrefix(fmt.Sprintln(call.Args...), f.breaks) {
			f.breaks, c.killed = "", true
			return false
		}
	}
	return true
}

func (f *fake) delay() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lag
}

func (f *fake) setDelay(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lag = d
}

func (f *fake) stall() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stalled == nil {
		f.stalled = make(chan struct{})
	}
}

func (f *fake) resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stalled != nil {
		close(f.stalled)
		f.stalled = nil
	}
}

// cut breaks all connections, and both ends know: what was on its way is gone.
func (f *fake) cut() {
	f.mu.Lock()
	for _, c := range f.conns {
		c.killed = true
	}
	f.mu.Unlock()
	f.hangUp()
}

// hangUp ends all connections at our end. The master has not noticed, and will run what it was sent.
func (f *fake) hangUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		_ = c.Close()
	}
}

// die is kill -9, and a restart without data that refuses connections until comeBack.
func (f *fake) die() {
	f.mu.Lock()
	f.refuse = true
	f.runID++
	clear(f.keys)
	clear(f.marks)
	clear(f.loaded)
	f.mu.Unlock()
	f.cut()
}

// leave is a network that is gone: the master forgets nothing.
func (f *fake) leave() {
	f.mu.Lock()
	f.refuse = true
	f.mu.Unlock()
	f.cut()
}

func (f *fake) comeBack() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = false
}

// vote lets clients' scripts be answered, by the text that is sent.
func (f *fake) vote(replies map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.voted = replies
}

func (f *fake) set(key, text string, ttl time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keys[key] = value{text, "string", f.now().Add(ttl)}
}

func (f *fake) get(key string) (value, bool) {
	v, ok := f.keys[key]
	if ok && !f.now().Before(v.expires) {
		delete(f.keys, key)
		return value{}, false
	}
	return v, ok
}

func (f *fake) has(key string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, _ := f.get(key)
	return v.text
}

func (f *fake) ran(prefix string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.log {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

// flushScripts is SCRIPT FLUSH.
func (f *fake) flushScripts() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.loaded)
}

// first returns the place in the log of the first command with this prefix, or -1.
func (f *fake) first(prefix string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.IndexFunc(f.log, func(c string) bool { return strings.HasPrefix(c, prefix) })
}

// plain copies the words of a command, whether they are there or pointed to.
func plain(args []any) []any {
	list := slices.Clone(args)
	for i, a := range list {
		switch a := a.(type) {
		case *string:
			list[i] = *a
		case *int64:
			list[i] = *a
		}
	}
	return list
}

// run executes one command. It is called with mu held.
func (f *fake) run(c *fakeConn, call *masters.Call) {
	call.Answered = true
	arg := func(i int) string { return fmt.Sprint(call.Args[i]) }
	name := arg(0)
	if text, ok := f.fail[name]; ok && slices.Contains([]string{"DBSIZE", "MGET", "TIME"}, name) {
		call.Err = errors.New(text)
		return
	}
	switch name {
	case "CLIENT":
		f.client(c, call, arg)
		return
	case "INFO":
		call.Reply = f.info()
		return
	case "CONFIG":
		call.Reply = []any{}
		return
	case "DBSIZE":
		call.Reply = int64(len(f.keys) + len(f.marks))
		return
	case "EXISTS":
		n := int64(0)
		for _, k := range call.Args[1:] {
			if f.mark(k.(string)) != nil {
				n++
			}
		}
		call.Reply = n
		return
	case "MGET":
		var all []any
		for _, k := range call.Args[1:] {
			if v, ok := f.get(k.(string)); ok {
				all = append(all, v.text)
			} else {
				all = append(all, f.mark(k.(string)))
			}
		}
		call.Reply = all
		return
	case "PTTL":
		call.Reply = f.horizonLeft()
		return
	case "PEXPIRETIME": // of what the handshake asks about
		call.Reply = int64(-2)
		return
	case "ROLE":
		call.Reply = []any{"master", int64(0), []any{}}
		return
	case "SCRIPT":
		for _, s := range loadedScripts {
			if s.text == arg(2) {
				f.loaded[s.sha] = s
				call.Reply = s.sha
			}
		}
		return
	case "PING":
		call.Reply = "PONG"
		return
	case "SELECT":
		n, _ := call.Args[1].(int64)
		c.db, call.Reply = int(n), "OK"
		return
	case "TIME":
		now := f.now().UnixMicro()
		call.Reply = []any{strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10)}
		return
	}
	if name == "EVAL" && f.runMarks(call) {
		return
	}
	f.log = append(f.log, strings.TrimSpace(fmt.Sprintln(call.Args...)))
	if text, ok := f.fail[name]; ok {
		call.Err = errors.New(text)
		return
	}
	switch name {
	case "PUBLISH":
		call.Reply = int64(len(arg(1)))
	case "SET":
		f.runSet(call, arg)
	case "GET":
		if arg(1) == endKey {
			call.Reply = f.mark(endKey)
			return
		}
		if v, ok := f.get(arg(1)); ok && v.kind != "string" {
			call.Err = errors.New("WRONGTYPE Operation against a key holding the wrong kind of value")
		} else if ok {
			call.Reply = v.text
		}
	case "EVALSHA":
		s := f.loaded[arg(1)]
		if s == nil {
			call.Err = errors.New("NOSCRIPT No matching script. Please use EVAL.")
			return
		}
		if s == luaLook || s == luaPresent || s == luaEdit || s == luaGetAll {
			f.exec(s, call)
			return
		}
		call.Reply, call.Err = f.script(s, arg(3), call.Args[4:])
	case "EVAL":
		n, _ := call.Args[2].(int64)
		own := []*lua{luaUndo, luaHandOver, luaReenter, luaTakeOrHolder, luaTakeOrLeft, luaPutBack, luaRestore, luaAdd, luaBreak}
		for _, s := range append(own, loadedScripts...) {
			if s.text == arg(1) {
				call.Reply, call.Err = f.script(s, arg(3), call.Args[3+n:])
			}
		}
		for _, s := range []*lua{luaLook, luaPresent, luaEdit, luaGetAll} {
			if s.text == arg(1) {
				f.loaded[s.sha] = s
				f.exec(s, call)
			}
		}
		switch reply, ok := f.voted[arg(1)]; {
		case ok:
			call.Reply = reply
		case arg(1) == luaScan.text:
			call.Reply = f.scan(arg)
		case arg(1) == luaNewestFences.text:
			call.Reply = f.fences(call.Args[3:])
		}
	default:
		reply, ok := f.hashes[name]
		if !ok {
			panic("the fake does not know " + name)
		}
		call.Reply = reply
	}
}

// exec runs one of the scripts of an Exec.
func (f *fake) exec(s *lua, call *masters.Call) {
	n, _ := call.Args[2].(int64)
	keys, argv := call.Args[3:3+n], call.Args[3+n:]
	switch s {
	case luaLook:
		call.Reply = f.look(keys, argv)
	case luaPresent:
		call.Reply = f.present(keys, argv)
	case luaGetAll:
		call.Reply = f.getAll(keys, argv)
	default:
		call.Reply = f.edit(keys, argv)
	}
}

func (f *fake) client(c *fakeConn, call *masters.Call, arg func(int) string) {
	if arg(1) == "ID" {
		if call.Reply = c.id; f.noID {
			call.Reply, call.Err = nil, errors.New("NOPERM no permission to run CLIENT ID")
		}
		return
	}
	f.log = append(f.log, "CLIENT KILL")
	if f.noKill {
		call.Err = errors.New("NOPERM no permission to run CLIENT KILL")
		return
	}
	id, _ := strconv.ParseInt(arg(3), 10, 64)
	call.Reply = int64(0)
	if old := f.conns[id]; old != nil {
		old.killed = true
		call.Reply = int64(1)
	}
}

func (f *fake) runSet(call *masters.Call, arg func(int) string) {
	if len(call.Args) == 6 && arg(5) == "GET" {
		if was, ok := f.get(arg(1)); ok {
			call.Reply = was.text
		}
		f.put(arg(1), arg(2), arg(4))
		return
	}
	if arg(3) == "NX" {
		if _, ok := f.get(arg(1)); ok {
			return
		}
		call.Args = append(call.Args[:3:3], call.Args[4:]...)
	}
	if arg(3) == "PXAT" {
		f.putUntil(arg(1), arg(2), arg(4))
	} else {
		f.put(arg(1), arg(2), arg(4))
	}
	call.Reply = "OK"
}

func (f *fake) put(key, text, ms string) {
	n, _ := strconv.ParseInt(ms, 10, 64)
	f.keys[key] = value{text, "string", f.now().Add(time.Duration(n) * time.Millisecond)}
}

// putUntil is put until an instant.
func (f *fake) putUntil(key, text, at string) {
	ms, _ := strconv.ParseInt(at, 10, 64)
	f.keys[key] = value{text, "string", time.UnixMilli(ms)}
}

// script does what the Lua text of s says.
func (f *fake) script(s *lua, key string, argv []any) (any, error) {
	arg := func(i int) string { return fmt.Sprint(argv[i]) }
	v, ok := f.get(key)
	left := v.expires.Sub(f.now()).Milliseconds()
	if ok && v.kind != "string" && s != luaDeleteSeen && s != luaExpireSeen && s != luaUndo && s != luaBreak {
		return nil, errors.New("WRONGTYPE Operation against a key holding the wrong kind of value script: x")
	}
	expire := func(ms string) { f.put(key, v.text, ms) }
	miss := func() (any, error) {
		if ok {
			return int64(0), nil
		}
		return int64(-1), nil
	}
	switch s {
	case luaBreak:
		if !ok {
			return int64(-1), nil
		}
		delete(f.keys, key)
		return []any{v.text}, nil
	case luaTakeOrLeft:
		if ok {
			return []any{int64(0), left}, nil
		}
		f.putUntil(key, arg(0), arg(1))
		return []any{int64(1)}, nil
	case luaTakeOrHolder:
		if ok {
			return []any{int64(0), v.text}, nil
		}
		f.putUntil(key, arg(0), arg(1))
		return []any{int64(1)}, nil
	case luaReplace:
		f.put(key, arg(0), arg(1))
		if ok {
			return []any{int64(1), v.text}, nil
		}
		return []any{int64(1)}, nil
	case luaReenter:
		switch {
		case !ok:
			f.putUntil(key, arg(0), arg(1))
			return int64(1), nil
		case v.text == arg(0):
			if at, _ := strconv.ParseInt(arg(1), 10, 64); v.expires.UnixMilli() < at {
				f.putUntil(key, v.text, arg(1))
			} else if at = v.expires.UnixMilli(); at%4 != 3 {
				f.putUntil(key, v.text, fmt.Sprint(at-at%4+3))
			}
			return int64(2), nil
		}
		return int64(0), nil
	case luaRestore:
		if ok {
			return int64(0), nil
		}
		f.putUntil(key, arg(0), arg(1))
		return int64(1), nil
	case luaDeleteSeen, luaExpireSeen:
		if kind, seen := v.seen(digest); !ok || kind != arg(0) || seen != arg(1) {
			return miss()
		}
		if s == luaDeleteSeen {
			delete(f.keys, key)
		} else {
			expire(arg(2))
		}
		return int64(1), nil
	}
	if !ok || v.text != arg(0) {
		if s == luaUndo || s == luaPutBack {
			return int64(0), nil
		}
		return miss()
	}
	switch s {
	case luaRelease, luaHandOver:
		delete(f.keys, key)
	case luaExtend:
		expire(arg(1))
		if ms, _ := strconv.ParseInt(arg(1), 10, 64); ms < left {
			return int64(sooner), nil
		}
	case luaAdd:
		more, _ := strconv.ParseInt(arg(1), 10, 64)
		most, _ := strconv.ParseInt(arg(2), 10, 64)
		until, _ := strconv.ParseInt(arg(3), 10, 64)
		left = max(left+more, min(left+until-v.expires.UnixMilli(), most))
		if left > most {
			return int64(-2), nil
		}
		expire(strconv.FormatInt(left, 10))
		if f.horizonLeft() < left {
			f.outlast(left * 5 / 4)
		}
		return []any{left, int64(1), f.now().UnixMilli() + left}, nil
	case luaUndo, luaPutBack:
		if strconv.FormatInt(v.expires.UnixMilli(), 10) != arg(1) {
			return int64(0), nil
		}
		if s == luaPutBack {
			f.putUntil(key, arg(2), arg(3))
		} else {
			delete(f.keys, key)
		}
	}
	return int64(1), nil
}

// seen is what luaSight tells of a key that is looked at in this way.
func (v value) seen(how string) (kind, seen string) {
	switch n := len(v.text); {
	case v.kind != "string" || how == whole || n <= shortMax:
		return v.kind, v.text
	case n > longMax && (how == sampled || how == headed):
		return sampledKind, fmt.Sprintf("%s:%d", shaOf(v.text[:256]), n)
	default:
		return digestedKind, fmt.Sprintf("%s:%d", shaOf(v.text), n)
	}
}

func (f *fake) look(names, argv []any) any {
	all, took, room := []any{}, int64(0), argv[len(names)].(int64)
	for i, name := range names {
		v, ok := f.get(name.(string))
		if !ok {
			all = append(all, []any{"none"})
			continue
		}
		kind, seen := v.seen(argv[i].(string))
		if kind == digestedKind || len(seen) > shortMax {
			took += int64(len(v.text))
		}
		if took > room && i > 0 {
			if argv[len(names)+1] == "part" {
				return all
			}
			return took
		}
		sight := []any{kind, seen, int64(len(v.text)), v.expires.Sub(f.now()).Milliseconds(), v.expires.UnixMilli(), int64(0)}
		if argv[i] == headed && len(v.text) > shortMax {
			sight = append(sight, v.text[:headMax])
		}
		all = append(all, sight)
	}
	return all
}

// present tells what luaPresent tells: less of what look tells.
func (f *fake) present(names, argv []any) any {
	all := f.look(names, argv).([]any)
	for i := range all {
		switch sight := all[i].([]any); {
		case sight[0] == "none":
			all[i] = nil
		case sight[0] == "string" && sight[1] != "":
			all[i] = sight[1]
		default:
			all[i] = sight[:3:3]
		}
	}
	return all
}

func (f *fake) getAll(names, argv []any) any {
	var values, sizes []any
	all := int64(0)
	for _, name := range names {
		v, ok := f.get(name.(string))
		if ok && v.kind == "string" {
			values = append(values, v.text)
		} else {
			values, v.text = append(values, nil), ""
		}
		sizes = append(sizes, int64(len(v.text)))
		all += int64(len(v.text))
	}
	if all > argv[0].(int64) {
		return sizes
	}
	return values
}

func (f *fake) edit(names, argv []any) any {
	arg := func(i int) string { return fmt.Sprint(argv[i]) }
	for i, name := range names {
		v, ok := f.get(name.(string))
		if !ok {
			v = value{kind: "none"}
		}
		if kind, seen := v.seen(digest); kind != arg(5*i) || seen != arg(5*i+1) {
			return int64(0)
		}
	}
	reply := []any{int64(1)}
	for i, n := range names {
		name := n.(string)
		v, ok := f.get(name)
		ends := int64(0)
		if ok {
			ends = v.expires.UnixMilli()
		}
		reply = append(reply, ends)
		text, at := arg(5*i+3), arg(5*i+4)
		switch arg(5*i + 2) {
		case "replace":
			least, _ := strconv.ParseInt(at, 10, 64)
			f.putUntil(name, text, fmt.Sprint(max(ends, least)))
		case "put":
			f.putUntil(name, text, at)
		case "expire":
			f.putUntil(name, v.text, at)
			v.expires = f.keys[name].expires
			f.keys[name] = v
		case "delete":
			delete(f.keys, name)
		}
	}
	return reply
}
