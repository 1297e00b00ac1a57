package quorum

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"lockproxy/quorum/admission"
	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// An Engine runs rounds over N masters. Its methods do not block: each calls done exactly once, perhaps before it
// returns, perhaps from a goroutine of the engine, which done must not block.
//
// Commands on one key reach each master in the order of the calls. Remove, Expire, and Write with a condition or
// KeepTTL first read and then change what they read, and an Extend that adds may ask twice, so that a call on the same
// key that shall come after them must wait for their done.
type Engine struct {
	engineClock
	cfg     Config
	masters []*master
	sweeper *sweeper
	fills   *sweeper // which wait for longer than all else; see fill.wait
	stats   stats
	labels  labels
	fences  fenceClock
	load    *admission.Control

	monitor *monitor
	servers servers
	members string // names the deployment
	bounds  atomic.Pointer[vouch.Bounds]

	namesWarned atomic.Int64 // when the log had last that another proxy takes other names for locks; 0 is never

	lateCause string // of the vote of a master that does not answer in time

	ctx     context.Context
	cancel  context.CancelFunc
	loops   sync.WaitGroup // the lanes, the monitor, the sweepers, the answer clock, and what spawn runs
	closing atomic.Bool

	turns   turns           // of Execs
	pacer   pacer           // of what goes in pieces
	history history         // of keys that Execs change
	order   [256]sync.Mutex // by key: held while a round is pushed to its lanes
	notices notices
	rounds  atomic.Int64 // begun so far

	mu        sync.Mutex // guards the making and closing of lanes, and is held to set closing
	databases []database
}

// A database has lanes while it is used or tended.
type database struct {
	lanes atomic.Pointer[laneSet]
	used  atomic.Bool        // by a client, who sets this before lanes are read
	close context.CancelFunc // ends the lanes; guarded by Engine.mu
}

// A laneSet holds the lanes of one database, one for each master.
type laneSet []*lane

// New returns an engine over ms, in this order, and begins to connect.
func New(cfg Config, ms []masters.Master) (*Engine, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(len(ms)); err != nil {
		return nil, err
	}
	e := &Engine{
		cfg: cfg, databases: make([]database, cfg.Databases),
		load:      admission.New(cfg.InstanceTimeout),
		lateCause: "did not answer within " + cfg.InstanceTimeout.String(),
	}
	e.engineClock.start(cfg.Slept)
	e.labels.init()
	e.history.init()
	e.fences.wall = cfg.Wall
	e.members = Members(ms, cfg.Deployment)
	own := cfg.bounds()
	e.bounds.Store(&own)
	for i, slot := range slots(ms, cfg.Deployment) {
		m := &master{Master: ms[i], slot: slot}
		m.watch.clock = vouch.Clock{Rate: cfg.DriftFactor, Tolerance: tolerance(cfg.Grace), Patience: cfg.InstanceTimeout}
		e.masters = append(e.masters, m)
	}
	e.monitor = newMonitor(e)
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.sweeper, e.fills = newSweeper(e), newSweeper(e)
	e.loops.Go(func() { e.sweeper.run(e.ctx.Done()) })
	e.loops.Go(func() { e.fills.run(e.ctx.Done()) })
	e.loops.Go(func() { e.monitor.run(e.ctx) })
	e.loops.Go(func() { e.answers.run(e.catchUp, e.ctx.Done()) })
	e.lanesOf(0) // whose marks tell of the whole master, too
	e.lanesOf(cfg.FirstDatabase)
	return e, nil
}

// Admission holds clients back that ask for more than is answered in time. Who may ask for much asks it before each call of an
// Engine's method; the Engine itself counts, and refuses nobody.
func (e *Engine) Admission() *admission.Control { return e.load }

// Close ends all lanes and waits for every goroutine. A connected master is waited for while its answers are due, after which
// something may have to be undone, but no longer than it would keep its connection: MasterDeadAfter. Operations still
// running end with ErrClosed.
func (e *Engine) Close() {
	e.mu.Lock()
	first := !e.closing.Swap(true)
	e.mu.Unlock()
	if first {
		e.settle()
		e.cancel()
	}
	<-e.ctx.Done()
	e.loops.Wait()
}

// settle waits until all connected masters have answered, and have been sent all undos.
func (e *Engine) settle() {
	deadline := e.now() + e.cfg.MasterDeadAfter
	for e.now() < deadline && !e.isSettled() {
		time.Sleep(time.Millisecond)
	}
}

// spawn runs f on a goroutine that Close waits for. It returns false, and does not, if the engine is closing.
func (e *Engine) spawn(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing.Load() {
		return false
	}
	e.loops.Go(f)
	return true
}

func (e *Engine) isSettled() bool {
	settled := true
	e.eachLane(func(l *lane) { settled = settled && l.queue.isSettled() })
	return settled
}

// lanesOf returns the lanes of a database, one for each master, for a client.
func (e *Engine) lanesOf(db int) laneSet {
	if !e.databases[db].used.Load() {
		e.databases[db].used.Store(true)
	}
	if set := e.databases[db].lanes.Load(); set != nil {
		return *set
	}
	return e.openDatabase(db)
}

// openDatabase makes the lanes of a database when its first command comes.
func (e *Engine) openDatabase(db int) laneSet {
	e.mu.Lock()
	defer e.mu.Unlock()
	if set := e.databases[db].lanes.Load(); set != nil {
		return *set
	}
	set, r := make(laneSet, len(e.masters)), make(roster, len(e.masters))
	for i, m := range e.masters {
		l := newLane(e, m, db, r)
		l.epochs.peers, set[i] = set, l
	}
	ctx, cancel := context.WithCancel(e.ctx)
	e.databases[db].close = cancel
	for _, l := range set {
		if e.closing.Load() {
			l.close()
			continue
		}
		e.loops.Go(func() { l.run(ctx) })
	}
	e.databases[db].lanes.Store(&set)
	return set
}

func (e *Engine) eachLane(f func(*lane)) {
	for i := range e.databases {
		if set := e.databases[i].lanes.Load(); set != nil {
			for _, l := range *set {
				f(l)
			}
		}
	}
}

// hash is FNV-1a.
func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}
