package quorum

import (
	"sync"
	"sync/atomic"
	"time"

	"lockproxy/quorum/masters"
)

// Votes counts the votes of one master since the start.
type Votes struct {
	Granted, Refused, Failed uint64
}

// MasterStatus is what the engine knows of one master.
type MasterStatus struct {
	Addr      string
	Connected bool   // at least one lane has a live connection
	Cause     string // if not Connected: why
	Server    string // "redis" or "valkey"
	Version   string
	RunID     string
	Role      string
	RoundTrip time.Duration // of the latest batch
	Votes     Votes
}

// Stats counts what the engine did since the start.
type Stats struct {
	Attempts uint64 // acquires begun
	Acquired uint64
	Refused  uint64
	NoQuorum uint64 // acquires that ended without a quorum of answers
	Released uint64
	Extended uint64
	Undone   uint64 // keys that an undo removed from a master
	Expired  uint64 // acquires granted too late to leave any validity
}

// A master is one of the N, with what all its lanes know of it.
type master struct {
	masters.Master
	votes     [Failed + 1]atomic.Uint64
	roundTrip atomic.Int64

	mu       sync.Mutex // guards all below
	links    int        // live connections
	cause    string     // of having none
	identity identity
}

func (m *master) count(v Vote) { m.votes[v].Add(1) }

func (m *master) connected(id identity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.links++
	m.identity = id
}

func (m *master) disconnected(cause string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.links--
	m.cause = cause
}

func (m *master) failed(cause string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cause = cause
}

func (m *master) status() MasterStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := MasterStatus{
		Addr:      m.Addr(),
		Connected: m.links > 0,
		Server:    m.identity.server,
		Version:   m.identity.version,
		RunID:     m.identity.runID,
		Role:      m.identity.role,
		RoundTrip: time.Duration(m.roundTrip.Load()),
		Votes:     Votes{m.votes[Granted].Load(), m.votes[Refused].Load(), m.votes[Failed].Load()},
	}
	if !s.Connected {
		s.Cause = m.cause
		if s.Cause == "" {
			s.Cause = "is being connected to"
		}
	}
	return s
}

type stats struct {
	attempts, acquired, refused, noQuorum, released, extended, undone, expired atomic.Uint64
}

// Stats returns the counts since the start.
func (e *Engine) Stats() Stats {
	s := &e.stats
	return Stats{
		Attempts: s.attempts.Load(), Acquired: s.acquired.Load(), Refused: s.refused.Load(),
		NoQuorum: s.noQuorum.Load(), Released: s.released.Load(), Extended: s.extended.Load(),
		Undone: s.undone.Load(), Expired: s.expired.Load(),
	}
}

// Masters returns the status of each master, in the order of New.
func (e *Engine) Masters() []MasterStatus {
	all := make([]MasterStatus, len(e.masters))
	for i, m := range e.masters {
		all[i] = m.status()
		if cause := e.stalled(i); all[i].Connected && cause != "" {
			all[i].Connected, all[i].Cause = false, cause
		}
	}
	return all
}

// stalled says how long master i has owed an answer, if longer than a vote may take.
func (e *Engine) stalled(i int) string {
	l := e.lanesOf(0)[i]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late(e.waited())
}

// Ready returns nil if a quorum of masters can vote now, else a *NoQuorum.
func (e *Engine) Ready() error {
	err := &NoQuorum{Masters: len(e.masters)}
	for _, m := range e.Masters() {
		if m.Connected {
			err.Answered++
		} else {
			err.Causes = append(err.Causes, Cause{m.Addr, m.Cause})
		}
	}
	if err.Answered >= Quorum(err.Masters) {
		return nil
	}
	return err
}
