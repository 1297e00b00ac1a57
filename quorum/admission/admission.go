// Package admission holds clients back when they ask for more than can be answered in time.
//
// The masters, and the processors of this proxy, can answer only a limited number of rounds a second. If clients ask
// for more, each round waits behind the others. Once the wait takes an instance_timeout, all rounds fail, though every
// master works. Then their keys must be undone, which is still more work. So only as many rounds begin as can be
// answered in three tenths of an instance_timeout. Any other client waits in line, before T1 is read. Waiting costs no
// validity, and fails nobody.
//
// A round on many keys is as much work for masters as many rounds on one key. So a round counts once for each of its
// keys, and a round that only reads counts once for each eight keys.
//
// The limit follows from the number of rounds answered lately (Little's law): if n rounds are answered within three
// tenths of an instance_timeout, n may be under way, and each takes about that time. Answers are counted in windows of
// that length. The lower count of the latest two windows holds, because answers come in bursts. The rest of the
// instance_timeout is for the pauses of a busy machine.
//
// A round takes one and a half round trips on average, because the round waits for the batch before its own. So where
// instance_timeout is less than five round trips, each round takes longer than three tenths of instance_timeout at any
// load. Then only Least rounds are under way: with a round trip of 30 ms some 5,000 rounds a second. A longer
// instance_timeout is the remedy.
//
// Masters that do not answer hold nobody up. Rounds under way fail at their deadline, and rounds that begin then fail
// at once.
package admission

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// Least is the number of rounds that may always be under way: enough to keep near masters busy. From Least on, the
// limit can more than double within one window.
const Least = 256

// A Control has the number of rounds under way, the limit, and the line of waiting clients. Everywhere, a round counts
// as often as it has keys.
type Control struct {
	window time.Duration

	running  atomic.Int64 // rounds under way
	limit    atomic.Int64 // how many rounds may be under way
	granted  atomic.Int64 // rounds that clients who left the line may begin, and have not begun
	waiting  atomic.Int64 // in line
	answered atomic.Int64 // rounds answered in the current window
	since    atomic.Int64 // when the window began
	before   atomic.Int64 // the limit by the window before

	mu   sync.Mutex // guards the line, and the places' fields below inLine
	line list.List  // of *Place
}

// New returns a Control for rounds that must be answered within instanceTimeout.
func New(instanceTimeout time.Duration) *Control {
	c := &Control{window: max(instanceTimeout*3/10, 1)}
	c.limit.Store(Least)
	c.before.Store(Least)
	return c
}

// Begin counts a round on keys keys as begun. Begin never waits: the further rounds of an admitted operation, and the
// proxy's own rounds, are not held back.
func (c *Control) Begin(keys int) { c.running.Add(int64(keys)) }

// Answered counts a round that ended at now with the answers of a quorum. now is by the clock that measures rounds.
func (c *Control) Answered(keys int, now time.Duration) {
	n := c.answered.Add(int64(keys))
	if since := c.since.Load(); int64(now)-since >= int64(c.window) && c.since.CompareAndSwap(since, int64(now)) {
		c.answered.Add(-n)
		latest := limit(n, now-time.Duration(since), c.window)
		c.limit.Store(min(latest, c.before.Swap(latest)))
	}
	c.Failed(keys)
}

// Failed counts a round that ended without the answers of a quorum. Such a round does not change the limit.
func (c *Control) Failed(keys int) {
	c.running.Add(-int64(keys))
	c.look()
}

// look lets clients in line go on, if there is room for a group of them. look must be called after each change that
// makes room.
func (c *Control) look() {
	if c.waiting.Load() > 0 && c.room() >= c.limit.Load()/4 {
		c.advance()
	}
}

// limit returns how many rounds may be under way if n rounds were answered in the time took.
func limit(n int64, took, window time.Duration) int64 {
	return max(Least, int64(float64(n)*float64(window)/float64(took)))
}

// room returns how many more rounds may begin. If room is positive, an operation on more keys than room may begin, too:
// otherwise that operation would wait for ever.
func (c *Control) room() int64 { return c.limit.Load() - c.running.Load() - c.granted.Load() }

// advance lets the clients go on that have waited longest, as many as there is room for. If few clients wait, each may
// begin several rounds.
func (c *Control) advance() {
	var woken []*Place
	c.mu.Lock()
	room := c.room()
	each := max(1, room/int64(max(1, c.line.Len())))
	for room > 0 && c.line.Len() > 0 {
		p := c.line.Front().Value.(*Place)
		c.remove(p)
		p.granted = max(each, p.keys)
		room -= p.granted
		c.granted.Add(p.granted)
		woken = append(woken, p)
	}
	c.mu.Unlock()
	for _, p := range woken {
		p.wake()
	}
}

// remove takes p out of the line. c.mu is held.
func (c *Control) remove(p *Place) {
	c.line.Remove(p.inLine)
	p.inLine = nil
	c.waiting.Add(-1)
}

// Waiting returns how many wait in line.
func (c *Control) Waiting() int { return int(c.waiting.Load()) }

// Rounds returns the number of rounds under way, and the limit.
func (c *Control) Rounds() (running, limit int) { return int(c.running.Load()), int(c.limit.Load()) }

// A Place is one client's place in line. The client begins one operation after the other, and calls Admit before each.
// Only one goroutine may call the methods.
type Place struct {
	control *Control
	wake    func()
	lined   bool // the client was in line since the latest Yield
	refused bool // the latest Admit since then said no

	inLine  *list.Element // nil: not in line; control.mu guards inLine and the fields below
	keys    int64         // of the waiting operation
	granted int64         // how many rounds may begin without waiting again
}

// Place returns a place that is not in line. wake is called, without any lock of the Control, when a waiting client may
// go on. wake must not block. The client then calls Admit again.
func (c *Control) Place(wake func()) *Place { return &Place{control: c, wake: wake} }

// Admit says whether an operation on keys keys may begin now. If not, p is in line, and wake is called once when the
// client's turn has come.
func (p *Place) Admit(keys int) bool {
	c := p.control
	p.refused = c.Waiting() > 0 || c.room() <= 0
	if !p.refused {
		return true
	}
	p.lined = true
	p.enter(int64(keys))
	c.look() // a round that ended before p was in line has woken nobody
	p.enter(int64(keys))
	return !p.refused
}

// enter takes keys from p's granted rounds, or gives p a place in line.
func (p *Place) enter(keys int64) {
	c := p.control
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p.granted >= keys:
		p.granted -= keys
		c.granted.Add(-keys)
		p.refused = false
	case p.inLine == nil:
		c.granted.Add(-p.granted) // too few for the operation
		p.keys, p.granted, p.inLine = keys, 0, c.line.PushBack(p)
		c.waiting.Add(1)
	}
}

// Yield is called when the client begins no more operations for now. Other clients get the unused part of p's granted
// rounds. If the client has not called Admit since the Yield before, another command holds it up. Then p leaves the
// line, because p could not use its turn.
func (p *Place) Yield() {
	refused := p.refused
	p.refused = false
	if !p.lined || refused {
		return
	}
	p.lined = false
	p.giveBack()
}

// Leave takes p out of the line, and gives p's granted rounds to other clients. Leave is for a client that has gone, or
// waits for something else.
func (p *Place) Leave() {
	if p.lined {
		p.giveBack()
	}
}

func (p *Place) giveBack() {
	c := p.control
	c.mu.Lock()
	if p.inLine != nil {
		c.remove(p)
	}
	c.granted.Add(-p.granted)
	p.granted = 0
	c.mu.Unlock()
	c.look()
}
