// Package admission holds clients back that ask for more than can be answered in time.
//
// The masters, and the processors that this proxy runs on, can answer only so many rounds a second. If clients ask for more, each
// round waits behind the others. Once the wait takes an instance_timeout, all of them fail, though every master works, and what
// they have set must be undone, which is still more work. So only as many rounds are begun as can be answered in three tenths of
// that time. A client that would begin another waits in line, before T1 is read: waiting costs no validity, and fails nobody.
//
// A round on many keys is as much work for masters as many on one: it counts as a round for each of its keys, and one that only reads
// for each eighth.
//
// How many that is follows from how many were answered lately (Little's law): if n rounds are answered within three tenths of an
// instance_timeout, n may be under way, and each takes about that time. Answers are counted in windows of that length. The lower
// count of the latest two holds, because answers come in bursts. The rest of the instance_timeout is for the pauses of a busy
// machine.
//
// A round takes one and a half round trips on average, as it waits for the batch before its own. So where instance_timeout is less
// than five round trips, each takes longer than three tenths of it whatever is asked, and only Least are under way: with a round
// trip of 30 ms some 5,000 rounds a second. A longer instance_timeout is the remedy.
//
// Masters that do not answer hold nobody up: rounds under way fail at their deadline, and those that begin then at once.
package admission

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// Least is how many rounds may always be under way: enough to keep near masters busy. From there the limit can more than double
// within one window.
const Least = 256

// A Control knows how many rounds are under way and how many may be, and has the line of those who wait. Everywhere, a round counts
// as often as it has keys.
type Control struct {
	window time.Duration

	running  atomic.Int64 // rounds under way
	limit    atomic.Int64 // how many rounds may be under way
	granted  atomic.Int64 // rounds that those who left the line may begin, and have not begun
	waiting  atomic.Int64 // in line
	answered atomic.Int64 // rounds, in this window
	since    atomic.Int64 // when the window began
	before   atomic.Int64 // the limit that the window before came to

	mu   sync.Mutex // guards the line, and the fields of places
	line list.List  // of *Place
}

// New returns a Control for rounds that have instanceTimeout to be answered.
func New(instanceTimeout time.Duration) *Control {
	c := &Control{window: max(instanceTimeout*3/10, 1)}
	c.limit.Store(Least)
	c.before.Store(Least)
	return c
}

// Begin counts a round on so many keys that begins. It never waits: what an operation that was admitted needs further, and what the
// proxy does by itself, is not held back.
func (c *Control) Begin(keys int) { c.running.Add(int64(keys)) }

// Answered counts a round that ends at now, by the clock that rounds are measured with, with the answers of a quorum.
func (c *Control) Answered(keys int, now time.Duration) {
	n := c.answered.Add(int64(keys))
	if since := c.since.Load(); int64(now)-since >= int64(c.window) && c.since.CompareAndSwap(since, int64(now)) {
		c.answered.Add(-n)
		latest := limit(n, now-time.Duration(since), c.window)
		c.limit.Store(min(latest, c.before.Swap(latest)))
	}
	c.Failed(keys)
}

// Failed counts a round that ends without the answers of a quorum: it says nothing of how many rounds can be answered.
func (c *Control) Failed(keys int) {
	c.running.Add(-int64(keys))
	c.look()
}

// look lets clients in line go on, if there is room for enough of them: they are woken in groups. It is called after all that
// makes room.
func (c *Control) look() {
	if c.waiting.Load() > 0 && c.room() >= c.limit.Load()/4 {
		c.advance()
	}
}

// limit is how many rounds may be under way where n were answered in that time.
func limit(n int64, took, window time.Duration) int64 {
	return max(Least, int64(float64(n)*float64(window)/float64(took)))
}

// room is how many more rounds may begin. One that may begin may have more keys than that: else it would wait for ever.
func (c *Control) room() int64 { return c.limit.Load() - c.running.Load() - c.granted.Load() }

// advance lets those go on who have waited longest, as many as there is room for. If they are few, each may begin several
// rounds.
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

// Rounds returns how many rounds are under way, and how many are to be at most.
func (c *Control) Rounds() (running, limit int) { return int(c.running.Load()), int(c.limit.Load()) }
