package quorum

// A FailureKind groups the causes for which a master's vote does not count.
type FailureKind uint8

// The kinds of failures.
const (
	FailedLate        FailureKind = iota // it did not answer in time
	FailedConnection                     // there was no connection, or it broke
	FailedError                          // it answered an error
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

// A doubt is why a vote does not count.
type doubt struct {
	kind FailureKind
	text string // "" if it does count
}

// none says that the vote counts.
func (d doubt) none() bool { return d.text == "" }
