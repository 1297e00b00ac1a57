package rules

// A Vote is one master's answer in a round.
type Vote uint8

// The votes. A vote is Pending until the master answers or the round ends.
const (
	Pending Vote = iota
	Granted
	Refused
	Failed
)

func (v Vote) String() string { return [...]string{"pending", "granted", "refused", "failed"}[v] }

// Quorum returns how many of n masters are a majority: any two quorums share a master.
func Quorum(n int) int {
	//mutant: a quorum is one less
	//mutant: a quorum is one more
	return n/2 + 1
}

// A Tally counts the votes of a round.
type Tally struct {
	Masters                  int // N
	Granted, Refused, Failed int
}

// Pending returns how many masters have not voted.
func (t Tally) Pending() int { return t.Masters - t.Granted - t.Refused - t.Failed }

// Answered returns how many masters voted other than Failed.
func (t Tally) Answered() int { return t.Granted + t.Refused }

// Spare returns how many masters a quorum can do without.
func (t Tally) Spare() int { return t.Masters - Quorum(t.Masters) }

// Add counts one vote.
func (t *Tally) Add(v Vote) {
	switch v {
	case Granted:
		t.Granted++
	case Refused:
		t.Refused++
	case Failed:
		t.Failed++
	}
}

// A Decision is the outcome of a Tally.
type Decision uint8

// The decisions. All but Undecided are final.
const (
	Undecided  Decision = iota
	Won                 // a quorum granted
	Lost                // a quorum answered, and no quorum can grant any more
	Unanswered          // too many failed for a quorum to answer: the truth is not known
)

func (d Decision) String() string { return [...]string{"undecided", "won", "lost", "unanswered"}[d] }

// DecideAcquire is the rule for taking and keeping a lock. DecideAcquire is asked again after each vote. The decision comes as early
// as possible, and no later vote can overturn the decision.
func DecideAcquire(t Tally) Decision {
	q := Quorum(t.Masters)
	switch {
	case t.Granted >= q:
		return Won
	case t.Failed > t.Spare():
		return Unanswered
	case t.Refused+t.Failed > t.Spare() && t.Answered() >= q:
		//mutant: lost is called won
		return Lost
	}
	return Undecided
}

// DecideRelease is the rule for giving a lock back. Granted is a master that held the token and deleted it, Refused a master that
// held something else or nothing.
//
// A release, unlike an acquire, gets the benefit of the doubt: if some masters deleted the token, and the failed masters may have
// made up its quorum, the lock was held, and is held no longer on any master that answers. The reply "not held" would report a lock
// as lost that its holder had to the end.
func DecideRelease(t Tally) Decision {
	if t.Granted > 0 && t.Refused+t.Pending() <= t.Spare() && t.Failed+t.Pending() <= t.Spare() {
		return Won
	}
	return decideHeld(t)
}

// DecideExtend is the rule for changing a held lock: Granted is a master that held the lock and made the change, Refused a master
// that held something else or nothing.
//
// An extension differs from an acquire where failed and granted masters together may make up a quorum: then the lock may be held all
// the same, by masters of which some have not been asked. The reply "not held" would end the lock of a holder who lacks a vote for a
// moment.
func DecideExtend(t Tally) Decision {
	if t.Refused+t.Failed > t.Spare() && t.Refused+t.Pending() <= t.Spare() {
		return Unanswered
	}
	return decideHeld(t)
}

// decideHeld is the part that both rules share.
func decideHeld(t Tally) Decision {
	q := Quorum(t.Masters)
	switch {
	case t.Granted >= q:
		return Won
	case t.Failed > t.Spare():
		return Unanswered
	//mutant: a release is decided as an acquire
	case t.Refused > t.Spare() && t.Answered() >= q:
		return Lost // even with all the others the token has no quorum
	}
	return Undecided
}

// An Opinion is what one master says of a key, for reads.
type Opinion struct {
	Exists bool
	Kind   string // the type, as TYPE names it
	Value  string // the value of a string, a digest of anything else
}

// Told is an Opinion, and how much it is worth.
type Told struct {
	Opinion
	Old bool // the master was in quarantine when it told: it may have told of an older copy
}

// Tells returns t: a type that embeds Told can be counted.
func (t Told) Tells() Told { return t }

// DecideRead is the rule for reads. Votes are Granted (the master answered; its opinion counts) or Failed.
// DecideRead returns the opinion of a quorum. If no opinion can have a quorum, even with every failed master and every older copy, nobody
// holds the key: Lost.
func DecideRead[S interface{ Tells() Told }](t Tally, told []S) (Opinion, Decision) {
	q := Quorum(t.Masters)
	best, most, could := Opinion{}, 0, 0 // could: the most that one may have besides those that failed
	for i := range told {
		is, same, old := told[i].Tells().Opinion, 0, 0
		for j := range told {
			switch other := told[j].Tells(); {
			case other.Opinion == is:
				same++
			case other.Old:
				old++
			}
		}
		if same > most {
			best, most = is, same
		}
		//mutant: an older copy tells that nobody holds a key
		could = max(could, same+old)
	}
	switch {
	//mutant: a read believes one master
	case most >= q:
		return best, Won
	case t.Failed > t.Spare():
		return Opinion{}, Unanswered
	case could+t.Pending()+t.Failed < q:
		return Opinion{}, Lost
	case t.Pending() > 0:
		return Opinion{}, Undecided
	}
	return Opinion{}, Unanswered // a quorum answered, but those that failed decide which opinion has a quorum
}
