package resp

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"lockproxy/quorum"
	"lockproxy/quorum/gate"
	"lockproxy/resp/group"
	"lockproxy/resp/slowlog"
	"lockproxy/script"
)

// ErrServerClosed is the result of Serve after Shutdown.
var ErrServerClosed = errors.New("resp: server closed")

// A Server serves Redis clients.
type Server struct {
	cfg      Config
	log      *slog.Logger
	engine   Engine
	scripts  *script.Cache // the clients' texts, by SHA-1
	messages Messages
	gates    *gate.Gates
	voted    *lru.Cache[string, *quorum.Script] // scripts by vote, ready to be run, by SHA-1
	router   *router                            // nil: there is no upstream
	commands *table
	runID    string
	// engagement is the memory counted by the budget for an operation of the engine.
	engagement int
	limits     Limits // for clients' commands; wider than cfg.Limits where an upstream takes larger commands
	started    time.Time
	clock      atomic.Int64 // ms since started, advanced by the janitor
	// lockOf is the identity, except in tests, which cannot make a *quorum.Lock.
	lockOf   func(*quorum.Lock) lock
	counters counters
	errors   errorCounts
	calls    atomic.Pointer[allCalls]
	slow     slowlog.Log
	// statsReset is the server's counts at the latest CONFIG RESETSTAT, which INFO stats subtracts; nil: there was none. Metrics go on counting.
	statsReset atomic.Pointer[Stats]
	nextID     atomic.Int64

	journal  journal
	sessions sessions
	takers   *takers
	fences   *lru.Cache[uint64, int64] // of the latest locks with fences, by the hash of takers; nil without an audit log
	relief   relief
	refused  refusals
	hottest  hottest
	groups   *group.Groups // nil: no groups

	mu        sync.Mutex // guards the fields from here on
	listeners map[net.Listener]struct{}
	stopped   chan struct{} // closed by Shutdown, with mu held

	running sync.WaitGroup // refused clients, sessions, accept loops, the janitor; releases of holds, and messages about lost holds
}

type counters struct {
	accepted, rejected, commands, protocolErrors, late atomic.Uint64
	forwarded, upstreamErrors, split, loginsRefused    atomic.Uint64
	links, held                                        atomic.Int64
	heldLost                                           atomic.Uint64
}

// release gives a lock back. A lock that was given to a client of this proxy is handed over, if another client waits. Of any other
// lock, the token is not likely enough to hold the lock, unless the gate knows. The empty token stands for locks that are hashes, which
// release never takes.
func (s *Server) release(key quorum.Key, token string, done func(quorum.Released)) {
	if token != noToken && s.takers.forget(key, token) {
		s.gates.HandOver(key, token, done)
	} else {
		s.gates.Release(key, token, done)
	}
}

// Gates returns the gates in which clients wait for locks.
func (s *Server) Gates() *gate.Gates { return s.gates }

// LockGroups returns what was counted by the groups of LockGroups.
func (s *Server) LockGroups() []group.Count { return s.groups.Counts() }

// Stats counts the server's work since New.
type Stats struct {
	Clients        int
	Accepted       uint64
	Rejected       uint64 // beyond Limits.Clients
	Commands       uint64
	ProtocolErrors uint64
	Late           uint64 // locks and extensions whose validity had passed when the reply was to be written
	Waiting        int    // LOCKs that wait
	Held           int    // locks that connections hold: LOCK … HOLD
	HeldLost       uint64 // held locks that could not be extended any more
	Forwarded      uint64 // commands sent upstream
	UpstreamErrors uint64 // commands that could not be sent upstream, and links that broke in use
	Split          uint64 // requests refused because of lock_keys
	UpstreamLinks  int    // links: clients' own connections to the upstream
	UpstreamDown   bool   // the upstream cannot be used
	LoginsRefused  uint64
	Evicted        uint64 // clients ended in favour of others, for their memory or their place
	MemoryRefused  uint64 // refusals because Limits.Memory was spent
	Buffers        int64  // bytes counted against Limits.Memory
}

// New returns a server that serves nobody yet.
func New(cfg Config, engine Engine, scripts *script.Cache, messages Messages) *Server {
	s := newServer(cfg, engine, scripts, messages)
	s.running.Add(1)
	go s.janitor()
	return s
}

func newServer(cfg Config, engine Engine, scripts *script.Cache, messages Messages) *Server {
	cfg = cfg.withDefaults()
	s := &Server{
		cfg: cfg, log: cfg.Logger, engine: engine, scripts: scripts, messages: messages,
		gates: gate.New(engine, messages, len(engine.Masters()), cfg.Pause), commands: allCommands(),
		router: newRouter(&cfg, scripts),
		voted:  newCache[string, *quorum.Script](votedMax),
		runID:  randomHex(20), started: time.Now(),
		takers:    newTakers(),
		groups:    group.New(cfg.LockGroups),
		lockOf:    func(l *quorum.Lock) lock { return l },
		listeners: map[net.Listener]struct{}{}, stopped: make(chan struct{}),
	}
	if cfg.Audit != nil {
		s.fences = newCache[uint64, int64](takersMax)
	}
	s.calls.Store(newCalls(s.commands))
	s.clock.Store(1) // never 0: in replies.writing, 0 means no write
	s.journal.log, s.journal.clock, s.journal.counters = s.log, &s.clock, &s.counters
	s.sessions.running = &s.running
	s.relief.sessions = &s.sessions
	s.relief.memory.max = int64(cfg.Limits.Memory)
	s.relief.strangers.budget.max = s.relief.memory.max / strangersShare
	s.refused = refusals{places: make(chan struct{}, refusalsMax), running: &s.running}
	s.engagement = perMaster * len(engine.Masters())
	s.limits = cfg.Limits
	if cfg.Upstream != nil {
		s.limits.Args = max(s.limits.Args, passArgsMax)
		s.limits.Bulk = max(s.limits.Bulk, min(passBytesMax, cfg.Limits.Memory))
		s.limits.Command = max(s.limits.Command, s.limits.Bulk)
		s.limits.Input = max(s.limits.Input, s.limits.Command)
	}
	return s
}

// newCache returns a cache that forgets the least recently used entry.
func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, err := lru.New[K, V](size)
	if err != nil {
		panic("resp: a cache needs a positive size")
	}
	return cache
}

// Serve accepts clients until the listener fails or Shutdown is called. Serve closes the listener.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	s.mu.Lock()
	if s.stopping() {
		s.mu.Unlock()
		return ErrServerClosed
	}
	s.listeners[l] = struct{}{}
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	for {
		conn, err := l.Accept()
		if err != nil {
			if s.stopping() {
				return ErrServerClosed
			}
			if !temporary(err) {
				return err
			}
			s.journal.warn("cannot accept clients: if files are what lacks, raise ulimit -n", "cause", err)
			select { // most likely out of file descriptors: some will come free
			case <-time.After(50 * time.Millisecond):
			case <-s.stopped:
			}
			continue
		}
		s.admit(conn)
	}
}

func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// admit starts a session, or turns the client away.
func (s *Server) admit(conn net.Conn) {
	s.counters.accepted.Add(1)
	s.mu.Lock()
	if s.stopping() {
		s.mu.Unlock()
		_ = conn.Close()
		return
	}
	if isForbidden(&s.cfg, conn) {
		s.mu.Unlock()
		s.journal.warn("a client on another machine was turned away: protected mode; set users or tls_client_ca, or protected_mode: no",
			"client", conn.RemoteAddr().String(), "all_so_far", s.counters.rejected.Add(1))
		s.refused.tellIfFree(conn, errProtected)
		return
	}
	if s.sessions.size() >= s.cfg.Limits.Clients && !s.relief.makePlace() {
		s.running.Add(1)
		s.mu.Unlock()
		s.journal.warn("clients are turned away: there are max_clients", "max_clients", s.cfg.Limits.Clients,
			"client", conn.RemoteAddr().String(), "all_so_far", s.counters.rejected.Add(1))
		s.refused.tell(conn, errMaxClients)
		return
	}
	sess := newSession(s, conn, s.nextID.Add(1))
	s.sessions.add(sess)
	s.running.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.running.Done()
		sess.run()
		s.sessions.leave(sess)
	}()
}

// Shutdown accepts no more clients and runs no more commands. Running commands are answered, and the connections closed; commands that wait
// at the upstream for other clients are unblocked (upstream_drain.go). When ctx ends, Shutdown closes the connections as they are, and
// returns the error of ctx. Either way all goroutines have ended when Shutdown returns; the engine may still have callbacks to call.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.stopping() {
		close(s.stopped)
	}
	for l := range s.listeners {
		_ = l.Close()
	}
	s.mu.Unlock()
	for _, sess := range s.sessions.all() {
		sess.stop("shutdown")
	}
	s.gates.EndWaits()
	done := make(chan struct{})
	draining, drained := context.WithCancel(ctx)
	go func() {
		s.running.Wait()
		s.gates.Close()
		drained()
		close(done)
	}()
	var unblocking sync.WaitGroup
	unblocking.Go(func() { s.endWaitsThere(draining) })
	defer unblocking.Wait()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	for _, sess := range s.sessions.all() {
		sess.kill("shutdown")
	}
	<-done
	return ctx.Err()
}

// Stats returns the server's counts.
func (s *Server) Stats() Stats {
	c, memory := &s.counters, &s.relief.memory
	st := Stats{
		Clients: s.sessions.size(), Accepted: c.accepted.Load(), Rejected: c.rejected.Load(),
		Commands: c.commands.Load(), ProtocolErrors: c.protocolErrors.Load(), Late: c.late.Load(),
		Waiting: s.gates.WaitingInAll(), Held: int(c.held.Load()), HeldLost: c.heldLost.Load(),
		Forwarded: c.forwarded.Load(), UpstreamErrors: c.upstreamErrors.Load(), Split: c.split.Load(), UpstreamLinks: int(c.links.Load()),
		LoginsRefused: c.loginsRefused.Load(), Evicted: s.relief.evicted.Load(), MemoryRefused: memory.refused.Load(), Buffers: memory.used(),
	}
	if up := s.cfg.Upstream; up != nil {
		st.UpstreamDown = up.Cause() != ""
	}
	return st
}

func (s *Server) stopping() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return false
	}
}

// port is the first TCP port that the server listens on; 0: no port.
func (s *Server) port() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listeners {
		if addr, ok := l.Addr().(*net.TCPAddr); ok {
			return addr.Port
		}
	}
	return 0
}
