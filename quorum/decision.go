package quorum

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

// A tally counts the votes of a round.
type tally struct {
	Masters                  int // N
	Granted, Refused, Failed int
}

// Pending returns how many masters have not voted.
func (t tally) Pending() int { return t.Masters - t.Granted - t.Refused - t.Failed }

// Answered returns how many masters voted other than Failed.
func (t tally) Answered() int { return t.Granted + t.Refused }

// spare returns how many masters a quorum can do without.
func (t tally) spare() int { return t.Masters - Quorum(t.Masters) }

// Add counts one vote.
func (t *tally) Add(v Vote) {
	switch v {
	case Granted:
		t.Granted++
	case Refused:
		t.Refused++
	case Failed:
		t.Failed++
	}
}

// A Decision is what a tally amounts to.
type Decision uint8

// The decisions. All but Undecided are final.
const (
	Undecided  Decision = iota
	Won                 // a quorum granted
	Lost                // a quorum answered, and no quorum can grant any more
	Unanswered          // too many failed for a quorum to answer: the truth is not known
)

func (d Decision) String() string { return [...]string{"undecided", "won", "lost", "unanswered"}[d] }

// decideAcquire is the rule for taking and keeping a lock. It is asked again after each vote; its decision is never later
// than it could be, and no later vote can overturn it.
func decideAcquire(t tally) Decision {
	q := Quorum(t.Masters)
	switch {
	case t.Granted >= q:
		return Won
	case t.Failed > t.spare():
		return Unanswered
	case t.Refused+t.Failed > t.spare() && t.Answered() >= q:
		//mutant: lost is called won
		return Lost
	}
	return Undecided
}

// decideRelease is the rule for giving a lock back. Granted is a master that held the token and deleted it, Refused one
// that held something else or nothing.
//
// A release differs from an acquire in the benefit of the doubt: if some masters deleted the token and those that
// failed may have made up its quorum, it was held and is so no longer, on any master that answers. Calling that
// "not held" would report a lock lost that its holder had to the end.
func decideRelease(t tally) Decision {
	if t.Granted > 0 && t.Refused+t.Pending() <= t.spare() && t.Failed+t.Pending() <= t.spare() {
		return Won
	}
	return decideHeld(t)
}

// decideExtend is the rule for changing what is held: Granted is a master that held it and made the change, Refused one that
// held something else or nothing.
//
// It differs from an acquire where those that failed may make up a quorum with those that granted: then it may be held all
// the same, by masters of which some have not been asked. To call that "not held" would end the lock of a holder who lacks
// a vote for a moment.
func decideExtend(t tally) Decision {
	if t.Refused+t.Failed > t.spare() && t.Refused+t.Pending() <= t.spare() {
		return Unanswered
	}
	return decideHeld(t)
}

// decideHeld is what both rules have in common.
func decideHeld(t tally) Decision {
	q := Quorum(t.Masters)
	switch {
	case t.Granted >= q:
		return Won
	case t.Failed > t.spare():
		return Unanswered
	//mutant: a release is decided as an acquire
	case t.Refused > t.spare() && t.Answered() >= q:
		return Lost // even with all the others the token has no quorum
	}
	return Undecided
}

// An opinion is what one master says of a key, for reads.
type opinion struct {
	exists bool
	kind   string // the type, as TYPE names it
	value  string // the value of a string, a digest of anything else
}

// decideRead is the rule for reads. Votes are Granted (the master answered; its opinion counts) or Failed.
// It returns the opinion that a quorum shares. If no opinion can have a quorum, even with every master that failed, or told of an
// older copy, nobody holds the key: Lost.
func decideRead(t tally, told []sighting) (opinion, Decision) {
	q := Quorum(t.Masters)
	best, most, could := opinion{}, 0, 0 // could: the most that one may have besides those that failed
	for _, s := range told {
		same, old := 0, 0
		for _, o := range told {
			switch {
			case o.opinion == s.opinion:
				same++
			case o.old:
				old++
			}
		}
		if same > most {
			best, most = s.opinion, same
		}
		//mutant: an older copy tells that nobody holds a key
		could = max(could, same+old)
	}
	switch {
	//mutant: a read believes one master
	case most >= q:
		return best, Won
	case t.Failed > t.spare():
		return opinion{}, Unanswered
	case could+t.Pending()+t.Failed < q:
		return opinion{}, Lost
	case t.Pending() > 0:
		return opinion{}, Undecided
	}
	return opinion{}, Unanswered // a quorum answered, but those that failed decide which opinion has a quorum
}
