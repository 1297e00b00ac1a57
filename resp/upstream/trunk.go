package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// A Trunk is a connection to the upstream that many clients share, for commands after which the server knows no more of
// the connection than before. What clients push while the write before is under way goes out in the next one, and the
// server answers it in one go, too: so a request costs the server, and us, a fraction of what it would by itself.
//
// The replies come in the order of the pushes, and each goes to the Waiter that pushed. A Waiter that is slow to take them holds up
// everybody, so a Waiter should not wait for its client.
type Trunk struct {
	Greeting Greeting // how the connection began

	conn     net.Conn
	wake     chan struct{}
	ended    chan struct{} // closed when the connection has ended
	running  sync.WaitGroup
	writeMax time.Duration
	dead     atomic.Bool // the connection has ended
	demoted  atomic.Bool // it leads to a replica
	born     time.Time
	heard    atomic.Int64 // reads that brought something

	mu      sync.Mutex    // guards what follows
	out     []byte        // requests to be written
	sent    []expectation // whose replies come after those in owed
	replies int           // that are owed for all of them
	waiting map[Kicker]struct{}
	cause   error // not nil: why it was ended from here

	// Only the reader uses these.
	owed   []expectation
	head   int // of owed
	framer Framer
	aside  bool // the frame under way answers nothing
}

// A Waiter has pushed requests and gets the replies.
type Waiter interface {
	// Replies takes what has come of the replies, which may end in the midst of one. n replies end in b. It must not
	// keep b.
	Replies(b []byte, n int)
	// Lost says that the rest of the replies will not come.
	Lost(cause error)
}

// A Kicker wants to know when there is room again. Kick must not block.
type Kicker interface{ Kick() }

// An expectation is of the replies that the server owes for one push.
type expectation struct {
	waiter  Waiter
	replies int
}

// demotedAfter is how old a Trunk must be to end because it leads to a replica. If the upstream's address is that of a replica,
// this keeps connections from being made anew for every reply.
const demotedAfter = time.Second

// What may wait on one Trunk: beyond it clients wait with what they want to send.
const (
	trunkOutMax     = 1 << 20
	trunkRepliesMax = 16 << 10
	trunkRead       = 64 << 10 // read at once
	trunkKeep       = 256 << 10
)

// readOnly is how a replica's refusal of a write begins. If the word comes in two parts, it is overlooked: more refusals follow.
var readOnly = []byte("-READONLY ")

var (
	errUnasked = errors.New("it answers what was not asked")
	errDeaf    = errors.New("the upstream does not read")
	errSilent  = errors.New("the upstream answers on new connections, and not on this one")
	errDemoted = errors.New("the upstream became a replica")
)

// newTrunk connects.
func (u *Redis) newTrunk(g Greeting, writeMax time.Duration, log *slog.Logger) (*Trunk, error) {
	conn, err := u.Dial(context.Background(), g)
	if err != nil {
		return nil, err
	}
	t := &Trunk{Greeting: g, conn: conn, wake: make(chan struct{}, 1), ended: make(chan struct{}),
		writeMax: writeMax, born: time.Now(), waiting: map[Kicker]struct{}{}}
	u.mu.Lock()
	u.trunks[t] = struct{}{}
	u.mu.Unlock()
	t.running.Go(t.writeLoop)
	t.running.Go(func() {
		t.lost(t.readLoop(log))
		u.mu.Lock()
		delete(u.trunks, t)
		u.mu.Unlock()
		u.another.Store(true)
	})
	return t, nil
}

// Fit says whether the connection may be given more requests. After a reply of READONLY it may not, though the server still answers
// what it has been sent: a client that is told READONLY connects anew, and the address may lead to the new master by then.
func (t *Trunk) Fit() bool { return !t.dead.Load() && !t.demoted.Load() }

// Close ends the connection, and returns when nothing of it runs any more.
func (t *Trunk) Close() {
	BreakOff(t.conn)
	t.running.Wait()
}

// progress returns a number that grows with what comes, and whether replies are owed.
func (t *Trunk) progress() (heard int64, owes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heard.Load(), t.replies > 0
}

// end ends the connection. The reader finds out, and tells the cause.
func (t *Trunk) end(cause error) {
	t.mu.Lock()
	t.cause = cause
	t.mu.Unlock()
	BreakOff(t.conn)
}

// Full says whether there is no room for more. If so, k is kicked when there is.
func (t *Trunk) Full(k Kicker) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	full := len(t.out) >= trunkOutMax || t.replies >= trunkRepliesMax
	if full && !t.dead.Load() {
		t.waiting[k] = struct{}{}
		return true
	}
	return false
}

// Push sends requests, to which there will be n replies. It returns false if the connection has ended: then nothing was
// sent, and w hears nothing.
func (t *Trunk) Push(requests []byte, n int, w Waiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead.Load() {
		return false
	}
	if len(t.out) == 0 {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
	t.out = append(t.out, requests...)
	t.sent = append(t.sent, expectation{w, n})
	t.replies += n
	return true
}

// writeLoop writes what was pushed.
func (t *Trunk) writeLoop() {
	var b []byte
	for {
		select {
		case <-t.wake:
		case <-t.ended:
			return
		}
		runtime.Gosched() // others that are about to push go first: one write for all
		t.mu.Lock()
		b, t.out = t.out, b[:0]
		t.kick()
		t.mu.Unlock()
		_ = t.conn.SetWriteDeadline(time.Now().Add(t.writeMax))
		if _, err := t.conn.Write(b); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.end(errDeaf)
			}
			BreakOff(t.conn) // the reader finds out what that means
			return
		}
		if cap(b) > trunkKeep {
			b = nil
		}
	}
}

// kick tells those who wait if there is room again. t.mu is held.
func (t *Trunk) kick() {
	if len(t.waiting) == 0 || len(t.out) > trunkOutMax/2 || t.replies > trunkRepliesMax/2 {
		return
	}
	for k := range t.waiting {
		k.Kick()
	}
	clear(t.waiting)
}

// readLoop hands out replies, and returns why it cannot go on. A panic of a Waiter ends the connection, not the process.
func (t *Trunk) readLoop(log *slog.Logger) (cause error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("connection to the upstream ended by a panic", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			cause = errors.New("panic")
		}
	}()
	buf := make([]byte, trunkRead)
	for {
		n, err := t.conn.Read(buf)
		if n > 0 {
			t.heard.Add(1)
		}
		if bad := t.handOut(buf[:n]); bad != nil {
			return bad
		}
		if err != nil {
			return err
		}
	}
}

// handOut gives each waiter its part of what came.
func (t *Trunk) handOut(b []byte) error {
	answered := 0
	for len(b) > 0 {
		if t.framer.Between() {
			t.aside = b[0] == '>'
		}
		if t.aside {
			n, _, err := t.framer.Next(b)
			if err != nil {
				return err
			}
			b = b[n:]
			continue
		}
		x, err := t.expected()
		if err != nil {
			return err
		}
		n, replies, err := t.frames(b, x.replies)
		if err != nil {
			return err
		}
		x.waiter.Replies(b[:n], replies)
		x.replies -= replies
		answered += replies
		b = b[n:]
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.replies -= answered
	t.kick()
	if t.demoted.Load() && t.replies == 0 {
		t.dead.Store(true)
		return errDemoted
	}
	return nil
}

// frames returns how much of b belongs to the next most replies, and how many end in it.
func (t *Trunk) frames(b []byte, most int) (n, replies int, err error) {
	for n < len(b) && replies < most && (n == 0 || !t.framer.Between() || b[n] != '>') {
		if b[n] == '-' && t.framer.Between() && bytes.HasPrefix(b[n:], readOnly) && time.Since(t.born) >= demotedAfter {
			t.demoted.Store(true)
		}
		k, ends, err := t.framer.Next(b[n:])
		n += k
		if err != nil {
			return n, replies, err
		}
		if ends {
			replies++
		}
	}
	return n, replies, nil
}

// expected returns what is owed next.
func (t *Trunk) expected() (*expectation, error) {
	for ; t.head < len(t.owed); t.head++ {
		if x := &t.owed[t.head]; x.replies > 0 {
			return x, nil
		}
		t.owed[t.head] = expectation{}
	}
	t.mu.Lock()
	t.owed, t.sent, t.head = t.sent, t.owed[:0], 0
	t.mu.Unlock()
	if len(t.owed) == 0 {
		return nil, errUnasked
	}
	return &t.owed[0], nil
}

// lost ends the connection and tells all who wait for replies.
func (t *Trunk) lost(cause error) {
	t.mu.Lock()
	cause = cmp.Or(t.cause, Innermost(cause))
	t.dead.Store(true)
	all := append(t.owed[t.head:], t.sent...)
	t.out, t.sent, t.owed, t.head = nil, nil, nil, 0
	for k := range t.waiting {
		k.Kick()
	}
	clear(t.waiting)
	t.mu.Unlock()
	BreakOff(t.conn)
	close(t.ended)
	for _, x := range all {
		if x.replies > 0 {
			x.waiter.Lost(cause)
		}
	}
}
