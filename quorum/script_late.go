package quorum

import "strconv"

// A script that gives a lock back may miss a master, too; see release_late.go. The script is not run late, because nobody knows
// what else it would do there. But a key that it has deleted on other masters is deleted late on that one, if it is the very same
// key: it has the same content, as DUMP has it, and expires in the millisecond to which a script that ran through this engine is
// known to have set it. The content says who holds the lock, and how often. So the lock stays if the same client holds it once more.
// It also stays if several clients hold it there, as readers do: on the master that has deleted it, the other holds were over, and
// what tells that is in other keys.

// signature returns the signature of the key as a script has left it, or as it was when the script deleted it: the content signs it.
func (e *effect) signature() signature { return signature{name: e.name, dump: e.digest} }

// eachExpiry calls f for each key that a master has set to expire for a script that it granted.
func (r *scriptRound) eachExpiry(a *answer, f func(sig signature, at int64)) {
	if a == nil || a.vote != Granted {
		return
	}
	for i := range a.effects {
		e := &a.effects[i]
		if at, err := strconv.ParseInt(e.ends, 10, 64); err == nil && at > 0 && e.ttl > 0 {
			f(e.signature(), at)
		}
	}
}

func (r *scriptRound) missed(en *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteMissed(en)
}

// noteMissed notes that the script has not run on a master, or may not have. It is called with round.mu held.
func (r *scriptRound) noteMissed(en *entry) {
	if !en.missed {
		en.missed = true
		if r.decision != Undecided {
			r.releaseAt(en)
		}
	}
}

// releaseMissed makes the release late on the masters that have missed it. It is called with round.mu held when the round is over, and
// again with each late answer: a client that was told that no quorum has answered has given the lock up all the same.
func (r *scriptRound) releaseMissed() {
	for i := range r.entries {
		r.releaseAt(&r.entries[i])
	}
}

// releaseAt makes the release late on a master that has missed it. It is called when the round is over, with round.mu held.
// By then others may have asked for the lock: what they were granted stays theirs.
func (r *scriptRound) releaseAt(en *entry) {
	//mutant: a release by vote that a master missed is not made late
	//mutant: whatever a script deletes is deleted late
	if !en.missed || r.req.Rule.Merge != Releasing {
		return
	}
	for _, a := range r.all {
		if a == nil {
			continue
		}
		for i := range a.effects {
			if e := &a.effects[i]; e.kind == deleted {
				//mutant: a release by vote that was not sent is not owed
				if en.fate == dropped {
					en.lane.ledger.owe(e.signature(), r.place.Load())
				}
				en.lane.ledger.releaseLate(e.signature(), r.place.Load())
			}
		}
	}
}
