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
	cfg Config
	engineClock
	tasks
	masters   []*master
	members   string // names the deployment
	databases databases
	lateCause string // of the vote of a master that does not answer in time

	// Of all rounds.
	load    *admission.Control
	sweeper *sweeper
	order   keyOrder     // held while a round is pushed to its lanes
	rounds  atomic.Int64 // begun so far
	stats   stats
	notices notices

	// Of some operations.
	fences  fenceClock
	labels  labels
	turns   turns    // of Execs
	pacer   pacer    // of operations that go in pieces
	history history  // of keys that Execs change
	fills   *sweeper // which wait for longer than all else; see fill.wait

	// May a master vote?
	monitor *monitor
	servers servers
	bounds  atomic.Pointer[vouch.Bounds]
	names   namesCheck
}

// New returns an engine over ms, in this order, and begins to connect.
func New(cfg Config, ms []masters.Master) (*Engine, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(len(ms)); err != nil {
		return nil, err
	}
	e := &Engine{
		cfg: cfg, members: Members(ms, cfg.Deployment),
		load: admission.New(cfg.InstanceTimeout), lateCause: "did not answer within " + cfg.InstanceTimeout.String(),
	}
	e.engineClock.start(cfg.Slept)
	e.tasks.start()
	e.databases.init(e)
	e.labels.init()
	e.history.init()
	e.fences.wall = cfg.Wall
	own := cfg.bounds()
	e.bounds.Store(&own)
	for i, slot := range slots(ms, cfg.Deployment) {
		m := &master{Master: ms[i], slot: slot}
		m.watch.clock = vouch.Clock{Rate: cfg.DriftFactor, Tolerance: tolerance(cfg.Grace), Patience: cfg.InstanceTimeout}
		e.masters = append(e.masters, m)
	}
	e.monitor = newMonitor(e)
	e.sweeper, e.fills = newSweeper(e), newSweeper(e)
	e.loops.Go(func() { e.sweeper.run(e.ctx.Done()) })
	e.loops.Go(func() { e.fills.run(e.ctx.Done()) })
	e.loops.Go(func() { e.monitor.run(e.ctx) })
	e.loops.Go(func() { e.answers.run(e.catchUp, e.ctx.Done()) })
	e.databases.lanes(0) // whose marks tell of the whole master, too
	e.databases.lanes(cfg.FirstDatabase)
	return e, nil
}

// Close ends all lanes and waits for every goroutine. A connected master is waited for while its answers are due, after which
// something may have to be undone, but no longer than it would keep its connection: MasterDeadAfter. Operations still
// running end with ErrClosed.
func (e *Engine) Close() {
	if e.refuse() {
		e.drain()
		e.cancel()
	}
	<-e.ctx.Done()
	e.loops.Wait()
}

// drain waits until all connected masters have answered, and have been sent all undos.
func (e *Engine) drain() {
	deadline := e.now() + e.cfg.MasterDeadAfter
	for e.now() < deadline && !e.databases.areIdle() {
		time.Sleep(time.Millisecond)
	}
}

// pause calls then after a random time of at most most, or at once when the engine closes.
func (e *Engine) pause(most time.Duration, then func()) {
	later := func() {
		pause := time.NewTimer(e.cfg.Pause(most))
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-e.ctx.Done():
		}
		then()
	}
	if !e.spawn(later) {
		then()
	}
}

// tasks are the goroutines of an engine: the lanes, the monitor, the sweepers, the answer clock, and what spawn runs. Close waits for all.
type tasks struct {
	ctx     context.Context // ends when the engine is closed, and has settled
	cancel  context.CancelFunc
	loops   sync.WaitGroup
	mu      sync.Mutex  // held to set closing, and while a goroutine is begun
	closing atomic.Bool // nothing new is begun
}

func (t *tasks) start() { t.ctx, t.cancel = context.WithCancel(context.Background()) }

// spawn runs f on a goroutine that Close waits for. If the engine is closing, spawn returns false, and does not run f.
func (t *tasks) spawn(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing.Load() {
		return false
	}
	t.loops.Go(f)
	return true
}

// refuse lets nothing new begin. refuse returns false if it was called before.
func (t *tasks) refuse() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.closing.Swap(true)
}
