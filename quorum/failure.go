package quorum

import (
	"log/slog"
	"slices"
	"strings"
	"time"
)

// A FailureKind groups the causes for which a master's vote does not count.
type FailureKind uint8

// The kinds of failures.
const (
	FailedLate        FailureKind = iota // it did not answer in time
	FailedConnection                     // there was no connection, or it broke
	FailedError                          // it answered an error, if only to a question of ours
	FailedForgot                         // it may have forgotten locks since the handshake
	FailedQuarantined                    // it is in quarantine, and the vote rests on something not being there
	FailedClock                          // its clock jumped, or is not known well enough
	FailedHorizon                        // what it set could outlive its horizon
	failureKinds
)

func (k FailureKind) String() string {
	return [...]string{"late", "connection", "error", "forgot", "quarantined", "clock", "horizon"}[k]
}

// Failures counts votes that did not count, by FailureKind.
type Failures [failureKinds]uint64

// A failure is why a vote does not count.
type failure struct {
	kind FailureKind
	text string // "" if it does count
}

// none says that the vote counts.
func (d failure) none() bool { return d.text == "" }

// incapable are the codes of errors that say something of the master, not of the command.
var incapable = []string{
	"OOM", "MISCONF", "NOREPLICAS", "NOPERM", "NOAUTH", "READONLY", "MASTERDOWN", "LOADING", "BUSY", "CLUSTERDOWN", "MOVED",
}

// complainEvery is how often at most the log is told that a master answers with such errors, of each code.
const complainEvery = time.Minute

// complain tells the log of a master that is connected, in no quarantine, and answers with an error: nothing else shows it but
// counters. The text of the error stays out: it may hold what a client sent.
func (l *lane) complain(err error, now instant) {
	code := codeOf(err.Error())
	if !slices.Contains(incapable, code) || !l.master.mayComplain(code, now) {
		return
	}
	l.log(slog.LevelWarn, "answers with an error: its votes fail", "error", code)
}

// codeOf returns the code of an error. That a script lacks a permission is told without one: up to Redis 7.0, and from 7.2 on.
func codeOf(text string) string {
	if strings.Contains(text, "The user executing the script can't ") || strings.Contains(text, "ACL failure in script: ") {
		return "NOPERM"
	}
	code, _, _ := strings.Cut(ofScript(text), " ")
	return code
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
