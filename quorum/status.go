package quorum

import (
	"time"

	"lockproxy/quorum/rules"
)

// Votes counts the votes of one master since the start.
type Votes struct {
	Granted, Refused, Failed uint64
	Failures                 Failures // the parts of Failed
}

// MasterStatus is the engine's knowledge of one master. State, Cause, Since and Left are of one database: each database has marks of
// its own.
type MasterStatus struct {
	Addr      string
	Server    string // "redis" or "valkey"
	Version   string
	Role      string
	RoundTrip time.Duration // of the latest batch
	Channels  int64         // that somebody has subscribed to, as of the latest heartbeat
	Votes     Votes

	State       State
	Cause       string        // of a State that is not Clean
	Since       time.Duration // for how long it has been in quarantine
	Left        time.Duration // how long the quarantine will last, as far as is known
	ClockOffset time.Duration // the master's clock less this machine's; 0 if it is not known yet
	Dropped     uint64        // batches whose votes did not count, because nothing vouched for them
}

// A State says whether a master's grants in one database count.
type State uint8

// The states of a master.
const (
	Clean        State = iota // grants count
	Quarantined               // grants do not count, because the master may have forgotten others
	Disconnected              // the master does not answer
)

func (s State) String() string { return [...]string{"clean", "quarantined", "disconnected"}[s] }

// status returns the part of the status that all databases have in common.
func (m *master) status() MasterStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := MasterStatus{
		Addr:      m.Addr(),
		Server:    m.info.Server,
		Version:   m.info.Version,
		Role:      m.info.Role,
		Channels:  m.info.Channels,
		RoundTrip: time.Duration(m.roundTrip.Load()),
		Votes:     Votes{Granted: m.votes[rules.Granted].Load(), Refused: m.votes[rules.Refused].Load(), Failed: m.votes[rules.Failed].Load()},
	}
	for i := range m.failures {
		s.Votes.Failures[i] = m.failures[i].Load()
	}
	return s
}

// status returns the status of the lane's master in the lane's database.
func (l *lane) status() MasterStatus {
	e := l.engine
	s := l.master.status()
	s.ClockOffset, s.Dropped = l.master.watch.clockOffset(e.wall()), l.master.dropped.Load()
	if cause := l.queue.unreachable(e.waited()); cause != "" { // the cause is to be mended first
		s.State, s.Cause = Disconnected, cause
	} else {
		l.recovery.describe(&s)
	}
	return s
}

// A DatabaseStatus is the engine's knowledge of the masters in one database, in the order of New.
type DatabaseStatus struct {
	DB      int
	Masters []MasterStatus
}

// Ready returns nil if a quorum of masters can vote now in the database, else a *NoQuorum.
func (s DatabaseStatus) Ready() error {
	err := &NoQuorum{Masters: len(s.Masters)}
	for _, m := range s.Masters {
		if m.State == Clean {
			err.Answered++
		} else {
			err.Causes = append(err.Causes, Cause{m.Addr, m.Cause})
		}
	}
	if err.Answered >= rules.Quorum(err.Masters) {
		return nil
	}
	return err
}

func (set laneSet) status() []MasterStatus {
	all := make([]MasterStatus, len(set))
	for i, l := range set {
		all[i] = l.status()
	}
	return all
}
