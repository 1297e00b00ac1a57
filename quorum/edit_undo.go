package quorum

import (
	"slices"

	"lockproxy/quorum/rules"
)

// An Exec that does not win on a quorum puts values back; exec.go has the values, and why the rest stays. Whether the Exec may try again
// depends on its leftovers.

// undo puts the former values back, on every master that made the change or may have made the change, and calls after when the masters
// that made the change have confirmed, or one InstanceTimeout has passed. Only the first undo does anything.
func (d *execRound) undo(after func()) {
	var undos []*undo
	d.mu.Lock()
	if !d.revoked {
		undos = d.revoke()
		for _, r := range d.mending.repairs {
			//mutant: a repair is not undone with its Exec
			undos = append(undos, r.undos()...)
		}
	}
	d.mu.Unlock()
	pushUndos(d.engine, undos, after)
}

// settled undoes a late master's changes, if the Exec has failed, and the keys whose release came before the late answer.
func (d *execRound) settled(en *entry) {
	var late []*undo
	d.mu.Lock()
	//mutant: what an Exec did late stays
	if d.revoked {
		late = d.undoAt(late, en)
	} else if d.decision == rules.Won {
		d.mending.learnPut(en)
		if en.fate == answered && en.Reply == int64(other) {
			d.mending.checkUp()
		}
	}
	for _, k := range d.puts {
		if sig := k.signature(); en.lane.ledger.owes(sig, d.place.Load()) {
			if u := d.takeBack(en, sig); u != nil {
				late = append(late, u)
			}
		}
	}
	d.mu.Unlock()
	pushUndos(d.engine, late, func() {})
}

// appendUndos puts back every change of the entry's master.
func (d *execRound) appendUndos(to []*undo, en *entry) []*undo {
	if !d.applied(en) && en.fate != unknown {
		return to
	}
	for _, k := range d.keys {
		if u := d.putBack(en, k); u != nil {
			to = append(to, u)
		}
	}
	return to
}

// applied says that a master answered that it made the changes, in time or not.
func (d *execRound) applied(en *entry) bool {
	if en.fate != answered { // its reply may be being read just now
		return false
	}
	list, ok := en.Reply.([]any)
	return en.Err == nil && ok && len(list) == 1+len(d.keys)
}

// putBack returns the undo of a change on a master, or nil if the change cannot be undone.
func (d *execRound) putBack(en *entry, k *edited) *undo {
	c, name, had, restorable := &d.engine.cfg, []string{k.key.Name}, d.had(en, k), d.restorable(en, k)
	switch {
	case k.Kind == Put:
		ends, kept := d.lasts(en, k), c.kept(k.TTL)
		if k.KeepTTL {
			kept = c.kept(c.TTLMax)
		}
		if ends == 0 {
			return nil
		}
		u := en.newUndo(k.signature(), ends, kept)
		if restorable {
			u.Args = luaPutBack.whole(name, k.Value, ends, k.was.Value, had)
		}
		//mutant: what was put anew is undone
		u.once = k.KeepTTL // the expiry is no mark: another Exec that puts this value and keeps the TTL has the same
		return u
	case k.Kind >= Delete && restorable && d.releases == nil && en.fate == answered:
		kept := c.kept(k.was.TTL)
		u := &undo{lane: en.lane, kept: kept, once: true}
		u.Args = luaRestore.whole(name, k.was.Value, had)
		// Once the key's time is over by our clock it stays gone: the master may have forgotten the key while it was away, and
		// its clock may have been set back. There the key would begin to live anew.
		//mutant: what is put back begins to live anew
		u.gone = d.start + kept + rules.Drift(kept, c.DriftFactor)
		return u
	}
	return nil
}

// takeBack returns the undo of the key with sig alone, if the key was put on a master to which its release could not be sent; else nil.
// The other keys have releases of their own.
func (d *execRound) takeBack(en *entry, sig signature) *undo {
	done := en.fate == answered && en.took
	if en.undoing || !done && en.fate != unknown {
		return nil
	}
	for _, k := range d.puts {
		if !k.KeepTTL && k.signature() == sig {
			//mutant: of two keys that are put late one stays
			return en.newUndo(sig, k.ends[en.master], d.engine.cfg.kept(k.TTL))
		}
	}
	return nil
}

// restorable says that the replaced value is a string, and that its expiry is known.
func (d *execRound) restorable(en *entry, k *edited) bool {
	return k.was.Type == "string" && d.had(en, k) > 0
}

// had returns when the master was to drop the replaced value, by the master's clock: as the master answered or, if the answer was lost,
// as the master told in the look before. 0 stands for unknown, and for never.
func (d *execRound) had(en *entry, k *edited) int64 {
	if en.fate != answered {
		return d.looked.ends(en.master, k.at)
	}
	list, _ := en.Reply.([]any)
	at, _ := list[1+k.at].(int64)
	return at
}

// lasts returns when the value that was put on a master expires, if the value was put; 0 stands for unknown, and for never.
func (d *execRound) lasts(en *entry, k *edited) int64 {
	if k.KeepTTL {
		return max(d.had(en, k), k.ends[en.master])
	}
	return k.ends[en.master]
}

// mayBeDone says that a quorum of masters has made the change, or may have, in this try or in an earlier try that was not undone: another
// client may have been told the new values.
func (d *execRound) mayBeDone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	done := 0
	for i := range d.entries {
		//mutant: what a try has left is not added to the next
		if en := &d.entries[i]; d.exec.left[en.master] || d.mayHaveApplied(en) {
			done++
		}
	}
	return done >= rules.Quorum(len(d.entries))
}

func (d *execRound) mayHaveApplied(en *entry) bool {
	return en.fate == unknown || en.fate == sent || d.applied(en)
}

// noteLeft notes the masters on which a part of this try may be left. noteLeft returns false if a master may lack the former value: the
// next look might find nothing on this master, and nothing on others that never had the key, and so take the key for free.
func (d *execRound) noteLeft() (again bool) {
	puts, deletes := len(d.puts), 0
	for _, k := range d.keys {
		if k.Kind >= Delete {
			deletes++
		}
	}
	if d.releases != nil {
		deletes = 0 // the keys that it deleted are not to come back
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	again = true
	for i := range d.entries {
		if !d.mayHaveApplied(&d.entries[i]) {
			continue
		}
		//mutant: what a put displaced is looked for again
		again = again && !d.displaces(&d.entries[i])
		if en := &d.entries[i]; len(en.undos) == puts+deletes && en.isUndone() {
			continue
		}
		d.exec.left[i] = d.exec.left[i] || puts > 0
		//mutant: a deletion that is left is looked at again
		again = again && deletes == 0
	}
	return again
}

// displaces says that a value on a master took the place of a value that cannot be put back: the undo leaves nothing.
func (d *execRound) displaces(en *entry) bool {
	return slices.ContainsFunc(d.puts, func(k *edited) bool { return k.was.Exists && !d.restorable(en, k) })
}
