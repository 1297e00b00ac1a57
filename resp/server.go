package resp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"lockproxy/quorum"
	"lockproxy/quorum/gate"
	"lockproxy/resp/upstream"
	"lockproxy/script"
)

// ErrServerClosed is what Serve returns after Shutdown.
var ErrServerClosed = errors.New("resp: server closed")

// A Server serves Redis clients.
type Server struct {
	cfg      Config
	log      *slog.Logger
	engine   Engine
	scripts  *script.Cache // the texts that clients sent, by SHA-1
	messages Messages
	gates    *gate.Gates
	voted    *lru.Cache[string, *quorum.Script] // scripts that run by vote, ready to be run, by SHA-1
	router   *router                            // where there is an upstream
	commands *table
	memory   budget
	runID    string
	// engagement is what the memory budget counts for an operation of the engine.
	engagement int
	limits     Limits // of what clients send. With an upstream, they are wider than cfg.Limits: what passes through may be larger
	started    time.Time
	clock      atomic.Int64 // ms since started, advanced by the janitor
	// lockOf is the identity, except in tests, which cannot make a *quorum.Lock.
	lockOf   func(*quorum.Lock) lock
	counters counters
	errors   errorCounts
	nextID   atomic.Int64

	told   seldom
	killed kills // that the proxy has ended a connection

	strangers strangers

	reliefMu       sync.Mutex // guards relievedInVain; one at a time looks for clients to end
	relievedInVain time.Time
	scarceSince    int64 // when memory was scarce at the last tick, server clock, ms; 0: it was not. For the janitor alone

	memoryWarned uint64 // memory.refused as of when the log was told; for the janitor alone

	mu        sync.Mutex // guards what follows
	listeners map[net.Listener]struct{}
	sessions  map[int64]*session
	stopped   chan struct{} // closed by Shutdown, with mu held

	refusals chan struct{}  // one for each client that is being turned away
	running  sync.WaitGroup // these clients, sessions, accept loops, the janitor; releases of holds, and what tells that one is lost
}

type counters struct {
	accepted, rejected, commands, protocolErrors, late atomic.Uint64
	forwarded, upstreamErrors, split, loginsRefused    atomic.Uint64
	links, held                                        atomic.Int64
	heldLost, evicted                                  atomic.Uint64
}

// Gates returns those in which clients wait for locks.
func (s *Server) Gates() *gate.Gates { return s.gates }

// Stats counts what the server did since it was made.
type Stats struct {
	Clients        int
	Accepted       uint64
	Rejected       uint64 // beyond Limits.Clients
	Commands       uint64
	ProtocolErrors uint64
	Late           uint64 // locks and extensions whose validity had passed when the reply was to be written
	Waiting        int    // LOCKs that wait
	Held           int    // locks that connections hold: LOCK … HOLD
	HeldLost       uint64 // those that could not be extended any more
	Forwarded      uint64 // commands that went upstream
	UpstreamErrors uint64 // commands that could not go there, and connections to it that broke while they were in use
	Split          uint64 // requests that were refused because of what lock_keys matches
	UpstreamLinks  int    // connections to the upstream that clients have of their own
	UpstreamDown   bool   // it cannot be used
	LoginsRefused  uint64
	Evicted        uint64 // clients that were ended in favour of others, for their memory or their place
	MemoryRefused  uint64 // what clients asked for when Limits.Memory was spent
	Buffers        int64  // bytes that count against Limits.Memory
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
		lockOf:    func(l *quorum.Lock) lock { return l },
		listeners: map[net.Listener]struct{}{}, sessions: map[int64]*session{},
		stopped: make(chan struct{}), refusals: make(chan struct{}, refusalsMax),
	}
	s.clock.Store(1) // never 0, which in session.replies.writing means no write
	s.memory.max = int64(cfg.Limits.Memory)
	s.strangers.budget.max = s.memory.max / strangersShare
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

// newCache returns a cache that forgets what was not used for longest.
func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, err := lru.New[K, V](size)
	if err != nil {
		panic("resp: a cache needs a positive size")
	}
	return cache
}

// Serve accepts clients until the listener fails or Shutdown is called. It closes the listener.
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
			s.warnSeldom("cannot accept clients: if files are what lacks, raise ulimit -n", "cause", err)
			select { // out of file descriptors, most likely: some will come free
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
	if s.denies(conn) {
		s.mu.Unlock()
		s.deny(conn)
		return
	}
	if len(s.sessions) >= s.cfg.Limits.Clients && !s.makePlace() {
		s.running.Add(1)
		s.mu.Unlock()
		s.warnTurnedAway(conn, s.counters.rejected.Add(1))
		s.turnAway(conn)
		return
	}
	sess := newSession(s, conn, s.nextID.Add(1))
	s.sessions[sess.id] = sess
	s.running.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.running.Done()
		sess.run()
		s.mu.Lock()
		delete(s.sessions, sess.id)
		s.mu.Unlock()
	}()
}

// turnAway tells a client that there are too many. It waits for the client, which speaks first with TLS, for at most refusalTime.
// At most refusalsMax clients are told at one time, because each takes a file; accepting waits meanwhile.
func (s *Server) turnAway(conn net.Conn) {
	s.refusals <- struct{}{}
	go func() {
		defer s.running.Done()
		refuseWith(conn, errMaxClients)
		<-s.refusals
	}()
}

// refuseWith tells a client why it is not served, reads what the client has sent until it has gone, and closes the connection. Without
// the reading, what the client sent would destroy the reason on its way. All of that takes refusalTime at most.
func refuseWith(conn net.Conn, why Error) {
	_ = conn.SetDeadline(time.Now().Add(refusalTime))
	_, err := conn.Write(why.AppendTo(nil, false))
	if half, ok := conn.(interface{ CloseWrite() error }); ok && err == nil && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, conn, lingerBytes)
	}
	upstream.BreakOff(conn)
}

// How many clients are told at one time that there are too many, and how long that may take.
const (
	refusalsMax = 16
	refusalTime = 100 * time.Millisecond
)

// Shutdown accepts no more clients and runs no more commands. It answers those that are running, except commands that wait at the
// upstream for something that others do (upstream_drain.go), and closes the connections. When ctx ends, it closes them as they are,
// and returns the error of ctx. Either way all goroutines have ended when Shutdown returns; the engine may still have callbacks to
// call.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.stopping() {
		close(s.stopped)
	}
	for l := range s.listeners {
		_ = l.Close()
	}
	s.mu.Unlock()
	for _, sess := range s.clients() {
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
	for _, sess := range s.clients() {
		sess.kill("shutdown")
	}
	<-done
	return ctx.Err()
}

// Stats returns what the server counted.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	clients := len(s.sessions)
	s.mu.Unlock()
	c := &s.counters
	st := Stats{
		Clients: clients, Accepted: c.accepted.Load(), Rejected: c.rejected.Load(),
		Commands: c.commands.Load(), ProtocolErrors: c.protocolErrors.Load(), Late: c.late.Load(),
		Waiting: s.gates.WaitingInAll(), Held: int(c.held.Load()), HeldLost: c.heldLost.Load(),
		Forwarded: c.forwarded.Load(), UpstreamErrors: c.upstreamErrors.Load(), Split: c.split.Load(), UpstreamLinks: int(c.links.Load()),
		LoginsRefused: c.loginsRefused.Load(), Evicted: c.evicted.Load(), MemoryRefused: s.memory.refused.Load(), Buffers: s.memory.used(),
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

// clients returns the sessions of this moment, the eldest first.
func (s *Server) clients() []*session {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.sessions))
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *session) int { return cmp.Compare(a.id, b.id) })
	return all
}

// port is the first TCP port the server listens on, 0 if there is none.
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
