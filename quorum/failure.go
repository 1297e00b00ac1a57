package quorum

import "strings"

// A FailureKind groups the causes for which a master's vote does not count.
type FailureKind uint8

// The kinds of failures.
const (
	FailedLate        FailureKind = iota // the master did not answer in time
	FailedConnection                     // there was no connection, or it broke
	FailedError                          // the master answered an error, if only to a question of ours
	FailedForgot                         // the master may have forgotten locks since the handshake
	FailedQuarantined                    // the master is in quarantine, and the vote rests on the absence of a key
	FailedClock                          // the master's clock jumped, or is not known well enough
	FailedHorizon                        // the key could outlive the master's horizon
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

// codeOf returns the code of an error. A script's lack of a permission is told without a code: up to Redis 7.0, and from 7.2 on.
func codeOf(text string) string {
	if strings.Contains(text, "The user executing the script can't ") || strings.Contains(text, "ACL failure in script: ") {
		return "NOPERM"
	}
	code, _, _ := strings.Cut(ofScript(text), " ")
	return code
}
