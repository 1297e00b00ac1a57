package quorum

import (
	"sync"
	"sync/atomic"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
)

// A master is one of the N, with all that its lanes know in common.
type master struct {
	masters.Master
	slot      int // in rosters
	watch     watch
	grants    grants // in all databases
	dropped   atomic.Uint64
	votes     [rules.Failed + 1]atomic.Uint64
	failures  [failureKinds]atomic.Uint64
	roundTrip atomic.Int64
	marked    atomic.Int64 // so many confirmed jumps are in every database's mark, by the lane of database 0

	mu          sync.Mutex // guards all below
	connections int        // that live
	info        masters.Info
	complained  map[string]instant // when the log was last told of errors in the master's answers, by code
}

// count counts a vote and, if it failed, why.
func (m *master) count(v rules.Vote, why FailureKind) {
	m.votes[v].Add(1)
	if v == rules.Failed {
		m.failures[why].Add(1)
	}
}

func (m *master) connected(info *masters.Info) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connections++
	m.info = *info
}

func (m *master) isConnected() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.connections > 0
}

// describe takes what the master says of itself now.
func (m *master) describe(info *masters.Info) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.info = *info
}

// tellsAppend says that the master has said when it writes its append-only file.
func (m *master) tellsAppend() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.info.TellsAppend()
}

// answersFirst says that the master has a setting which lets it answer before it writes to disk.
func (m *master) answersFirst() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.info.IsBefore7()
}

func (m *master) disconnected() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connections--
}

// mayComplain says whether the log is to be told of the code now, and notes it if so.
func (m *master) mayComplain(code string, now instant) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.complained[code]; ok && now-at < complainEvery {
		return false
	}
	if m.complained == nil {
		m.complained = map[string]instant{}
	}
	m.complained[code] = now
	return true
}
