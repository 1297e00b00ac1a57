package quorum

import (
	"math/bits"
	"sync/atomic"
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
	Since       time.Duration // for how long the master has been in quarantine
	Left        time.Duration // how long the quarantine will last, as far as is known
	ClockOffset time.Duration // the master's clock less this machine's; 0 if unknown
	Dropped     uint64        // batches whose votes did not count, because nothing vouched for them
}

// A State says whether a master's grants in one database count.
type State uint8

// The states of a master.
const (
	Clean        State = iota // grants count
	Suspect                   // as Clean, but nothing vouched for the latest batch, whose votes did not count
	Quarantined               // grants do not count, because the master may have forgotten others
	Disconnected              // the master does not answer
)

func (s State) String() string {
	return [...]string{"clean", "suspect", "quarantined", "disconnected"}[s]
}

// Votes says that the master's next grants count, as far as is known.
func (s State) Votes() bool { return s == Clean || s == Suspect }

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
	s.Dropped = l.master.dropped.Load()
	if clock := l.master.watch.look(); clock.Known() {
		s.ClockOffset = clock.Offset() - e.wall()
	}
	if cause := l.queue.unreachable(e.waited()); cause != "" { // the cause is to be mended first
		s.State, s.Cause = Disconnected, cause
	} else {
		l.recovery.describe(&s)
	}
	if doubt := l.doubt.Load(); doubt != nil && s.State == Clean {
		s.State, s.Cause = Suspect, *doubt
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
		if m.State.Votes() {
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

// Stats counts the engine's work since the start, and its present work.
type Stats struct {
	Attempts uint64 // acquires begun, by scripts of known families, too
	Acquired uint64
	Refused  uint64
	NoQuorum uint64 // acquires that ended without a quorum of answers
	Released uint64
	Extended uint64
	Undone   uint64 // keys that an undo removed from a master
	Expired  uint64 // acquires granted too late to leave any validity

	Scripts         uint64 // run by vote
	ScriptsDisputed uint64 // of these, how many ended without a quorum of like answers

	OtherNames uint64 // times that a master told of a proxy with other names of locks

	RoundsNow   int // under way; a round on several keys counts for each key
	RoundsLimit int // how many are to be, at most; see package admission
	InLine      int // clients that wait in line until they may begin an operation

	Rounds Durations // of all rounds of votes: from T1 until their votes decided them
}

// stats is Stats while it is counted.
type stats struct {
	attempts, acquired, refused, noQuorum, released, extended, undone, expired atomic.Uint64
	scripts, disputed, otherNames                                              atomic.Uint64
	rounds                                                                     Histogram
}

// load returns the counts so far.
func (s *stats) load() Stats {
	return Stats{
		Attempts: s.attempts.Load(), Acquired: s.acquired.Load(), Refused: s.refused.Load(),
		NoQuorum: s.noQuorum.Load(), Released: s.released.Load(), Extended: s.extended.Load(),
		Undone: s.undone.Load(), Expired: s.expired.Load(),
		Scripts: s.scripts.Load(), ScriptsDisputed: s.disputed.Load(), OtherNames: s.otherNames.Load(),
		Rounds: s.rounds.Load(),
	}
}

// durationBuckets are enough for more than an hour; see bucket.
const durationBuckets = 34

// Durations tells how long something took, as a histogram.
type Durations struct {
	Count uint64
	Sum   time.Duration
	Below [durationBuckets]uint64 // how many took less than DurationBound(i), and not less than the bound before
}

// DurationBound is the upper bound of a bucket of Durations: 1 µs, and twice as much for each further bucket. The last bucket has no
// bound.
func DurationBound(bucket int) time.Duration { return time.Microsecond << bucket }

// Quantile returns a bound below which the share q of all is. The bound is twice the true value at most, up to the last bound.
func (d *Durations) Quantile(q float64) time.Duration {
	n := uint64(0)
	for i, below := range d.Below {
		if n += below; below > 0 && float64(n) >= q*float64(d.Count) {
			return DurationBound(min(i, durationBuckets-2))
		}
	}
	return 0
}

// A Histogram counts Durations. Several goroutines may use a Histogram at one time; none waits for another.
type Histogram struct {
	sum   atomic.Int64
	below [durationBuckets]atomic.Uint64
}

// Add counts one duration. A duration below 0 counts as 0.
func (h *Histogram) Add(took time.Duration) {
	h.sum.Add(max(int64(took), 0))
	h.below[bucket(took)].Add(1)
}

// bucket returns the bucket of Durations that holds took.
func bucket(took time.Duration) int {
	return min(bits.Len64(uint64(max(took, 0)/DurationBound(0))), durationBuckets-1)
}

// Load returns the durations so far.
func (h *Histogram) Load() Durations {
	all := Durations{Sum: time.Duration(h.sum.Load())}
	for i := range h.below {
		all.Below[i] = h.below[i].Load()
		all.Count += all.Below[i]
	}
	return all
}
