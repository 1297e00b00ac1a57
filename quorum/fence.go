package quorum

import (
	"strconv"
	"sync/atomic"
	"time"

	"lockproxy/quorum/rules"
)

// A fence is a number that grows with every fenced lock: a new fence is larger than every fence that was given out, in this database,
// before the attempt began (rule 14). Every master keeps the largest fence that the master has seen, over all resources, and beside the
// fence an epoch of the master's canary in which the master has missed no fence. While this epoch is the present epoch, the master is
// seeded. A master that forgets comes to a new epoch, and is seeded no more.
//
// Fences keep growing because at most N − q masters are ever seeded with less than a fence that was given out:
//
//	take       each master that grants answers its largest fence plus one, or the proposal of this proxy's clock, if that is more.
//	           Of any N − q + 1 seeded masters, at least one knows every fence: so the largest answer is new
//	raise      if no quorum has kept the very number, a second round raises masters to the fence before the client is told
//	look       if fewer than a quorum of masters granted and are seeded, all masters are asked for their fences first. The masters
//	           are also told the epochs of the masters that are to be seeded: earlier votes of these are then void for every
//	           proxy that keeps a fence on the masters afterwards (as for horizons: vouch.Quarantine)
//
// A quarantined master is seeded when its quarantine ends, with the fences of the masters that tell their horizons. If too few masters are
// seeded to ask, as in a new deployment, a fence is more than every fence that a quorum of masters, or more, knows, and no less than the
// clock's proposal. Such a fence is Unfounded.
//
// On a seeded master, a record of the fence lies beside the lock's key, and lives as long: so a quorum knows the newest fence of
// a resource. A record names its epoch: a record of an earlier epoch, which comes back with old data, does not count.

// fenceOf reads the fence in a record; 0 if there is no record.
func fenceOf(text string) int64 {
	fence, _ := strconv.ParseInt(text, 10, 64) // no fence is below 1
	return fence
}

// A FenceView is a quorum's view of the fence of a resource.
type FenceView struct {
	Err   error // *NoQuorum, ErrClosed
	Fence int64 // 0 if unknown: the last lock has run out, was taken without a fence, or masters have forgotten the fence
}

// fence is the answer to luaNewestFence.
func (a Asked) fence() FenceView {
	text, _ := a.Reply.(string)
	return FenceView{Err: a.Err, Fence: fenceOf(text)}
}

// A fencing is the work of an attempt for its fence.
type fencing struct {
	attempt  *acquireRound
	record   string // the name of the key beside the lock's
	proposed int64
	fence    int64
	epochs   []any // if masters that granted are to be seeded: the epochs that all masters have been told, by slot
	founded  bool  // enough masters knew the fences before this fence
	raises   int   // how many rounds have raised the fence
}

// take returns the command for one master. acquireRound.compose has chosen when the lock expires there.
func (f *fencing) take(en *entry) []any {
	req := &f.attempt.req
	return en.lane.batch.lay("EVALSHA", &f.attempt.program.sha, int64(2), &req.Key.Name, &f.record, &req.Token, &en.expires, &f.proposed)
}

// won goes on when the lock is won.
func (f *fencing) won() {
	a := f.attempt
	kept, seeded := 0, 0
	a.mu.Lock()
	a.checkEpochs() // also of masters that have answered since
	for i := range a.entries {
		fence, sure, ok := a.entries[i].fence()
		if !ok {
			continue
		}
		if fence > f.fence {
			f.fence, kept = fence, 0
		}
		if sure {
			seeded++
		}
		if sure && fence == f.fence {
			kept++
		}
	}
	a.mu.Unlock()
	a.engine.fences.learn(f.fence, a.engine.now())
	switch q := rules.Quorum(len(a.entries)); {
	//mutant: what an unseeded master knows counts
	//mutant: a quorum need not be seeded
	case seeded < q || a.engine.fences.mayReseed(a.engine.now()): // only a seeded master can keep the fence
		f.look()
	//mutant: a fence is not written back to a quorum
	case kept < q:
		f.founded = true
		f.raise()
	default:
		f.founded = true
		f.keep()
	}
}

// keep gives the fence out, with the lock.
func (f *fencing) keep() { f.attempt.won(Acquired{Fence: f.fence, Unfounded: !f.founded}) }

// fail undoes the lock: too few masters have answered about its fence.
func (f *fencing) fail(err error) {
	f.attempt.engine.stats.noQuorum.Add(1)
	f.attempt.undo(func() { f.attempt.done(Acquired{Err: err}) })
}

// fence reads the reply of a master that granted: the master's largest fence, this attempt's included, and whether the master is
// seeded. fence is called with the round's mu held.
func (en *entry) fence() (fence int64, seeded, ok bool) {
	if en.vote != rules.Granted {
		return 0, false, false
	}
	return fenceReply(en.Reply, 1)
}

// fenceReply reads the two integers of fences in a script's reply: the last two, from index from on.
func fenceReply(reply any, from int) (fence int64, seeded, ok bool) {
	list, _ := reply.([]any)
	if len(list) != from+2 {
		return 0, false, false
	}
	fence, ok1 := list[from].(int64)
	sure, ok2 := list[from+1].(int64)
	return fence, sure == 1, ok1 && ok2
}

// look asks all masters for their fences, and tells the masters the epochs.
func (f *fencing) look() {
	e, key := f.attempt.engine, f.attempt.req.Key
	f.epochs = e.databases.lanes(key.DB)[0].epochs.roster.args()
	l := &fenceLookRound{of: f}
	//mutant: who has forgotten tells what it knew
	l.lasting = true // a master that has forgotten does not know its fences
	begin(e, l, key, luaHearFences.whole([]string{rosterKey}, f.epochs...))
}

// A fenceLookRound is a round that asks for fences. Granted is a seeded master, Refused an unseeded master.
type fenceLookRound struct {
	round
	of   *fencing
	most int64 // guarded by round.mu
}

func (l *fenceLookRound) read(en *entry) ballot {
	if en.Err != nil {
		return failed(failureText(en.Err))
	}
	fence, seeded, ok := fenceReply(en.Reply, 0)
	if !ok {
		return unexpected
	}
	is := refused
	if seeded {
		is = granted
	}
	if en.counts(is) {
		l.most = max(l.most, fence)
	}
	return is
}

func (*fenceLookRound) reads() bool { return true }

func (l *fenceLookRound) decide(t rules.Tally) rules.Decision {
	switch {
	//mutant: one seeded master is asked
	case t.Granted > t.Spare():
		return rules.Won
	case t.Pending() > 0:
		return rules.Undecided
	case t.Answered() >= rules.Quorum(t.Masters):
		return rules.Lost
	}
	return rules.Unanswered
}

func (l *fenceLookRound) ended(d rules.Decision) {
	f := l.of
	if d == rules.Unanswered {
		f.fail(l.failure())
		return
	}
	l.mu.Lock()
	//mutant: what is asked is not heeded
	f.fence = max(f.fence, l.most+1)
	l.mu.Unlock()
	if f.founded = d == rules.Won; !f.founded {
		l.engine.cfg.Logger.Warn("a fence rests on the clock: too few masters know the fences before it, as in a new deployment", "db", f.attempt.req.Key.DB)
	}
	f.raise()
}

// raisesMost bounds the rounds of one attempt, should others raise the fences on its masters at the same time.
const raisesMost = 4

// raise has the masters keep the fence.
func (f *fencing) raise() {
	f.raises++
	r := &fenceRaiseRound{of: f}
	//mutant: a kept fence is not voided by a new epoch
	r.lasting = true
	begin(f.attempt.engine, r, f.attempt.req.Key, nil) // see compose
}

// A fenceRaiseRound is a round that raises masters to a fence. Granted is a master that holds the lock and has kept the fence beside
// the lock. Refused is a master that has no lock, or is not seeded.
type fenceRaiseRound struct {
	round
	of   *fencing
	more int64 // the largest fence that a master has kept beside the lock and does not lower; guarded by round.mu
}

// compose makes a command that a master grants only if the master is known to have granted the lock, and is still in the same epoch.
func (r *fenceRaiseRound) compose(en *entry, _ int64) {
	f, a := r.of, r.of.attempt
	was := &a.entries[en.master]
	epoch, seeds := int64(-1), int64(0)
	a.mu.Lock() // after this round's
	if was.vote == rules.Granted {
		epoch = was.epoch
	}
	expires := was.expires
	a.mu.Unlock()
	if f.epochs != nil && f.epochs[en.lane.master.slot].(int64) >= epoch {
		seeds = 1
	}
	en.Args = luaRaiseFence.whole([]string{a.req.Key.Name, f.record}, a.req.Token, expires, f.fence, epoch, seeds)
}

func (r *fenceRaiseRound) read(en *entry) ballot {
	switch {
	case en.Err != nil:
		return failed(failureText(en.Err))
	case en.Reply == int64(1):
		return granted
	case en.Reply == int64(0):
		return refused
	}
	if more, ok := en.Reply.(int64); ok {
		r.more = max(r.more, more)
		return refused
	}
	return unexpected
}

func (r *fenceRaiseRound) decide(t rules.Tally) rules.Decision {
	//mutant: one master keeps the fence
	return rules.DecideAcquire(t)
}
func (r *fenceRaiseRound) ended(d rules.Decision) {
	f, a := r.of, r.of.attempt
	r.mu.Lock()
	more := r.more
	r.mu.Unlock()
	switch {
	case d == rules.Won:
		r.engine.fences.learn(f.fence, r.engine.now())
		f.keep()
	//mutant: a fence that a master has exceeded is not raised further
	case more > f.fence && f.raises < raisesMost: // for example because the master that told the fence has gone meanwhile
		f.fence = more
		f.raise()
	case d == rules.Lost: // the lock was taken away, or has expired
		a.engine.stats.refused.Add(1)
		a.undo(func() { a.done(Acquired{Refused: true}) })
	default:
		r.of.fail(r.failure())
	}
}

// A fenceClock proposes fences: microseconds of the wall clock since 1970, or more if masters are known to have seen more. So
// proxies need no second round because their clocks differ.
type fenceClock struct {
	wall func() time.Time
	last atomic.Int64 // the largest proposal so far
	seen atomic.Int64 // the largest fence seen, less the time of the engine's clock then, in µs

	unseeded   atomic.Bool  // a master that could be seeded is not
	nextReseed atomic.Int64 // instant
}

// fenceMost bounds proposals, so that fences stay well below 2^53, the limit of exact doubles. The bound lies in the year 2112.
const fenceMost = 1 << 52

// reseedEvery bounds how often locks take the time to seed masters that the locks do not need.
const reseedEvery = time.Second

// reseed notes that an unseeded master has granted, though not among the first to answer.
func (c *fenceClock) reseed() { c.unseeded.Store(true) }

// mayReseed says, once, whether there is an unseeded master, and the time for seeding has come.
func (c *fenceClock) mayReseed(now instant) bool {
	next := c.nextReseed.Load()
	if !c.unseeded.Load() || int64(now) < next || !c.nextReseed.CompareAndSwap(next, int64(now+reseedEvery)) {
		return false
	}
	c.unseeded.Store(false)
	return true
}

// next returns a number that was not proposed before.
func (c *fenceClock) next(now instant) int64 {
	n := min(max(c.wall().UnixMicro(), c.seen.Load()+now.Microseconds()), fenceMost)
	for {
		last := c.last.Load()
		if n = max(n, last+1); c.last.CompareAndSwap(last, n) {
			return n
		}
	}
}

// learn takes a fence that a master has.
func (c *fenceClock) learn(fence int64, now instant) { raise(&c.seen, fence-now.Microseconds()) }
