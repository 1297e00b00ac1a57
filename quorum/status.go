package quorum

import (
	"time"
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
		Votes:     Votes{Granted: m.votes[Granted].Load(), Refused: m.votes[Refused].Load(), Failed: m.votes[Failed].Load()},
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

// Pending counts the work that is not done: commands and undos that wait, rounds without an end, attempts whose fate is not
// known. Without requests Pending comes to 0, once all masters have answered.
func (e *Engine) Pending() int {
	s := e.sweeper
	s.mu.Lock()
	n := len(s.queue) + e.Stats().RoundsNow
	s.mu.Unlock()
	e.turns.mu.Lock()
	n += len(e.turns.taken)
	e.turns.mu.Unlock()
	e.eachLane(func(l *lane) {
		n += l.queue.pending() + l.ledger.pending()
	})
	return n
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
	if err.Answered >= Quorum(err.Masters) {
		return nil
	}
	return err
}

// Database returns the status of one database. If nobody has used the database yet, the engine begins to connect to its masters.
func (e *Engine) Database(db int) DatabaseStatus {
	set := e.databases[db].lanes.Load()
	if set == nil {
		lanes := e.lanesOf(db)
		set = &lanes
	}
	return DatabaseStatus{db, set.status()}
}

// Databases returns the status of each database that has lanes: where clients begin, where they have been since, and those that are
// tended now.
func (e *Engine) Databases() []DatabaseStatus {
	var all []DatabaseStatus
	for db := range e.databases {
		if set := e.databases[db].lanes.Load(); set != nil {
			all = append(all, DatabaseStatus{db, set.status()})
		}
	}
	return all
}

func (set laneSet) status() []MasterStatus {
	all := make([]MasterStatus, len(set))
	for i, l := range set {
		all[i] = l.status()
	}
	return all
}

// Masters returns the status of each master in the database in which clients begin.
func (e *Engine) Masters() []MasterStatus { return e.Database(e.cfg.FirstDatabase).Masters }

// Ready says whether a quorum can vote in the database in which clients begin.
func (e *Engine) Ready() error { return e.Database(e.cfg.FirstDatabase).Ready() }
