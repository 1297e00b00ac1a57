package quorum

import (
	"cmp"
	"time"
)

// Votes counts the votes of one master since the start.
type Votes struct {
	Granted, Refused, Failed uint64
	Failures                 Failures // what Failed is made of
}

// MasterStatus is what the engine knows of one master.
type MasterStatus struct {
	Addr      string
	Cause     string // if not Clean: why
	Server    string // "redis" or "valkey"
	Version   string
	Role      string
	RoundTrip time.Duration // of the latest batch
	Votes     Votes

	State       State
	Since       time.Duration // for how long it has been in quarantine
	Left        time.Duration // how long the quarantine will last, as far as is known
	ClockOffset time.Duration // the master's clock less this machine's; 0 if it is not known yet
	Dropped     uint64        // batches whose votes did not count, because nothing vouched for them
}

// A State says what a master's grants are worth.
type State uint8

// The states of a master. Of one with several databases the worst counts.
const (
	Clean        State = iota // its grants count
	Quarantined               // they do not, because it may have forgotten others
	Disconnected              // it does not answer
)

func (s State) String() string { return [...]string{"clean", "quarantined", "disconnected"}[s] }

func (m *master) status() MasterStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := MasterStatus{
		Addr:      m.Addr(),
		Server:    m.info.Server,
		Version:   m.info.Version,
		Role:      m.info.Role,
		RoundTrip: time.Duration(m.roundTrip.Load()),
		Votes:     Votes{Granted: m.votes[Granted].Load(), Refused: m.votes[Refused].Load(), Failed: m.votes[Failed].Load()},
	}
	for i := range m.failures {
		s.Votes.Failures[i] = m.failures[i].Load()
	}
	if m.links == 0 {
		s.State, s.Cause = Disconnected, cmp.Or(m.cause, "is being connected to")
	}
	return s
}

// Pending counts what the engine remembers of work that is not done: commands and undos that wait, rounds without an
// end, attempts whose fate is not known. Without requests it comes to 0, once all masters have answered.
func (e *Engine) Pending() int {
	s := e.sweeper
	s.mu.Lock()
	n := len(s.queue) + e.Stats().RoundsNow
	s.mu.Unlock()
	e.turns.mu.Lock()
	n += len(e.turns.taken)
	e.turns.mu.Unlock()
	e.eachLane(func(l *lane) {
		l.mu.Lock()
		n += len(l.undos) + len(l.postponed) + len(l.owed) + len(l.broken)
		for _, r := range l.queue {
			if _, ok := r.(*entry); ok { // and no question of the warden's
				n++
			}
		}
		l.mu.Unlock()
	})
	return n
}

// Masters returns the status of each master, in the order of New.
func (e *Engine) Masters() []MasterStatus {
	all := make([]MasterStatus, len(e.masters))
	for i, m := range e.masters {
		all[i] = m.status()
		all[i].ClockOffset, all[i].Dropped = m.watch.clockOffset(e.wall()), m.dropped.Load()
		if all[i].State == Disconnected { // the cause of that is what is to be mended
			continue
		}
		e.quarantineOf(m, &all[i])
		if cause := e.stalled(i); cause != "" {
			all[i].State, all[i].Cause = Disconnected, cause
		}
	}
	return all
}

// quarantineOf adds the longest quarantine of a master in any database.
func (e *Engine) quarantineOf(m *master, s *MasterStatus) {
	now := e.now()
	e.eachLane(func(l *lane) {
		if l.master != m {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if q := l.quarantine; q != nil && l.down == "" && (s.State == Clean || q.Until-now > s.Left) {
			s.State, s.Cause, s.Since, s.Left = Quarantined, q.cause(now), now-q.Since, max(q.Until-now, 0)
		}
	})
}

// stalled says for how long an answer of master i has been due, if longer than a vote may take.
func (e *Engine) stalled(i int) string {
	l := e.lanesOf(0)[i]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.overdue(e.waited()).text
}

// Ready returns nil if a quorum of masters can vote now, else a *NoQuorum.
func (e *Engine) Ready() error {
	err := &NoQuorum{Masters: len(e.masters)}
	for _, m := range e.Masters() {
		if m.State == Clean {
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
