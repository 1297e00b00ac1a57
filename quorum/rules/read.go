package rules

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
