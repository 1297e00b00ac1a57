package quorum

import (
	"encoding/hex"
	"slices"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
)

// A repair writes the values of a winning Exec on a master that refused the Exec. The master has missed the values before: the master was
// away, or an Exec that lost had put its own value there meanwhile. Without the repair, the master would refuse every later change as
// well, and its vote would be missing as soon as another master is away. A repair is no vote, and nobody waits for a repair.
//
// A repair must not take away the vote of an attempt under way, or of a lock that is held. So a repair replaces only a value that, as
// this engine knows, a quorum had before the Exec, and only if the master's copy expires at the known instant. The Exec has replaced
// another value on a quorum. The two quorums share a master. On the shared master the former value was replaced, or given back, or had
// expired; or the master has forgotten the value, and had no vote for the Exec while a holder could remain. So nobody holds the key by
// the former value any more.
//
// A repair also fills a master that has nothing, if a quorum has the Exec's value.
type repair struct {
	masters.Call
	lane     *lane
	master   int
	edit     *execRound
	fills    bool
	deadline answerTime // as of a round
	ends     []int64    // by key of the Exec: when the put value expires; nil before the repair is sent. Guarded by edit.mu
	replied  bool       // guarded by edit.mu
}

// A mending has the repairs of an Exec that has won.
type mending struct {
	of      *execRound // its mu guards all below
	known   uint64     // history.now when the Exec had won
	repairs []*repair
	checked bool // a checkup is due, or was, or is not wanted
}

// begin is called when the Exec has won, before its client is told: so the repairs are in the lanes before what the client
// asks for next.
func (m *mending) begin() {
	d := m.of
	d.mu.Lock()
	defer d.mu.Unlock()
	//mutant: a deletion by doubt is repaired
	if d.tally.Granted < rules.Quorum(len(d.entries)) { // a deletion with the benefit of the doubt
		m.checked = true
		return
	}
	m.known = d.engine.history.now()
	for i := range d.entries {
		en := &d.entries[i]
		m.learnPut(en)
		differs, fills := d.looked.differs(i)
		if en.vote == rules.Refused || differs {
			m.push(&repair{master: i, fills: fills, deadline: d.deadline})
		}
		if en.vote == rules.Refused {
			m.checkUp()
		}
	}
}

// push sends a repair to its master. The caller holds round.mu.
func (m *mending) push(r *repair) {
	d := m.of
	r.edit, r.lane = d, d.entries[r.master].lane
	m.repairs = append(m.repairs, r)
	r.lane.queue.push(r, d.engine.waited())
}

// lacksChange says that a master has not made the change, and will not make it: neither by the Exec's own command nor by a repair. A
// change must not be made twice: a client that was told of the change may have undone it since. lacksChange is called with round.mu
// held.
func (m *mending) lacksChange(master int) bool {
	if en := &m.of.entries[master]; en.fate != answered || en.Reply != int64(other) {
		return false
	}
	return !slices.ContainsFunc(m.repairs, func(r *repair) bool {
		return r.master == master && r.ends != nil && !(r.replied && r.Reply == int64(0))
	})
}

// differs says whether a master's answer about any key differs from the agreed view, and whether the master has none of the differing
// keys.
func (l *readRound) differs(master int) (differs, lacks bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lacks = true
	for i := range l.keys {
		for _, s := range l.keys[i].told {
			if s.master == master && s.Opinion != l.keys[i].agreed {
				differs, lacks = true, lacks && !s.Exists
			}
		}
	}
	return differs, differs && lacks
}

func (r *repair) command() *masters.Call { return &r.Call }

func (r *repair) keeps() time.Duration { return r.edit.keeps }

func (r *repair) take(now answerTime) bool {
	d := r.edit
	e := d.engine
	d.mu.Lock()
	defer d.mu.Unlock()
	//mutant: what was taken away is repaired
	if now >= r.deadline || d.revoked || r.lane.clock.unsure || !d.mending.lacksChange(r.master) {
		return false
	}
	var names []string
	argv := []any{int64(0)}
	if r.fills {
		argv[0] = int64(1)
	}
	ends := make([]int64, len(d.keys))
	for i, k := range d.keys {
		switch {
		case k.Kind == Put:
			left := e.cfg.kept(k.TTL) - (e.now() - d.start)
			ends[i] = r.lane.clock.expiryAnew(k.hash, r.lane.clock.now+left.Milliseconds())
		case k.Kind < Delete:
			continue
		}
		stale := e.history.of(k.key, r.master, d.mending.known)
		names, argv = append(names, k.key.Name), append(argv, k.Value, ends[i], int64(len(stale)))
		for _, v := range stale {
			argv = append(argv, hex.EncodeToString(v.digest[:]), v.ends)
		}
	}
	r.Args, r.ends = luaRepair.whole(names, argv...), ends
	return true
}

// reply notes the master's new values, for later repairs, and removes each key whose release could not be sent meanwhile; see
// ledger.owe.
func (r *repair) reply(instant) {
	d := r.edit
	d.mu.Lock()
	r.replied = true
	if r.Reply == int64(1) {
		for _, k := range d.puts {
			d.mending.learnAt(r.master, k, r.ends[k.at])
		}
	}
	var owed []*undo
	for n, u := range r.undos() {
		if r.lane.ledger.owes(d.puts[n].signature(), d.place.Load()) {
			owed = append(owed, u)
		}
	}
	d.mu.Unlock()
	pushUndos(d.engine, owed, func() {})
}

func (r *repair) lost(string) {}

// undos returns undos of all values that the repair has put, or may have: one for each key that the Exec puts, none before the repair
// is sent. undos is called with edit.mu held.
func (r *repair) undos() []*undo {
	if r.ends == nil {
		return nil
	}
	d := r.edit
	var all []*undo
	for _, k := range d.puts {
		u := newUndo(r.lane, k.signature(), r.ends[k.at], d.engine.cfg.kept(k.TTL))
		u.unknown = !r.replied
		all = append(all, u)
	}
	return all
}

// A checkup looks at the keys once more, one InstanceTimeout after an Exec has won although masters refused: by then the Execs that
// lost have put the former values back. The checkup repairs if a quorum still has the Exec's result.
//
// If too many masters are away to ask a quorum, the checkup repairs all the same, provided that nobody else can have won since: the
// masters that still have the put value, or the replaced value, have made no other change, and the rest must be too few for a quorum.
// But if a master that made the change has another value by now, the checkup does not repair, and takes earlier repairs back: a
// release also counts as done where unanswering masters may have made up the quorum, and the value must not be on a quorum again.
//
// checkUp is called with round.mu held.
func (m *mending) checkUp() {
	if e := m.of.engine; !m.checked {
		m.checked = true
		e.sweeper.add(e.waited().plus(e.cfg.InstanceTimeout), m)
	}
}

// expire begins the checkup.
func (m *mending) expire() {
	d := m.of
	if d.engine.closing.Load() {
		return
	}
	(&readRound{every: true, done: m.checkedUp}).ask(d.engine, d.exec.req.DB, d.exec.req.Keys)
}

func (m *mending) checkedUp(l *readRound) {
	d := m.of
	d.mu.Lock()
	defer d.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	wants, fills, mends := make([]bool, len(d.entries)), true, true
	for i, k := range d.keys {
		if k.Kind != Put && k.Kind < Delete {
			continue
		}
		done, stale, gone := 0, 0, false
		for _, s := range l.keys[i].told {
			switch {
			case m.isDone(k, s):
				done++
			//mutant: a checkup takes what was put anew for the past
			case m.lacksChange(s.master) && m.isStale(k, s):
				stale++
				wants[s.master] = true
			default:
				wants[s.master] = wants[s.master] || !s.Exists
				gone = gone || k.Kind == Put && s.Value != k.Value && d.applied(&d.entries[s.master])
			}
		}
		q := rules.Quorum(len(d.entries))
		if done < q {
			fills = false
		}
		//mutant: what few masters have released is repaired
		if done < q && (gone || k.Kind != Put || len(d.entries)-done-stale >= q) {
			mends = false
			if gone {
				m.undo(k)
			}
		}
	}
	for i := range wants {
		if mends && wants[i] && !d.revoked {
			m.push(&repair{master: i, fills: fills, deadline: d.engine.waited().plus(d.engine.cfg.InstanceTimeout)})
		}
	}
}

// undo takes back the repairs of a key. The caller holds round.mu.
func (m *mending) undo(k *edited) {
	var all []*undo
	for _, r := range m.repairs {
		for n, u := range r.undos() {
			if m.of.puts[n] == k {
				all = append(all, u)
			}
		}
	}
	pushUndos(m.of.engine, all, func() {})
}

// isDone says that a master has the Exec's result for a key.
func (m *mending) isDone(k *edited, s sighting) bool {
	if k.Kind != Put {
		return !s.Exists
	}
	en := &m.of.entries[s.master]
	//mutant: a checkup takes another's value for its own
	return s.Kind == "string" && s.Value == k.Value && m.of.mayHaveApplied(en) && isNear(s.ends, m.of.lasts(en, k))
}

// isStale says that a master has a value that a repair may replace.
func (m *mending) isStale(k *edited, s sighting) bool {
	return s.Kind == "string" && slices.ContainsFunc(m.of.engine.history.of(k.key, s.master, m.known), func(v version) bool {
		return isNear(v.ends, s.ends) && v.digest == digestOf(s.Value)
	})
}

// isNear says that two instants, each as told by a master, may be the same.
func isNear(a, b int64) bool { return max(a-b, b-a) <= 2*expirySlack }

// learnSeen notes the agreed findings of the first round.
func (m *mending) learnSeen() {
	d := m.of
	l := d.looked
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, k := range d.keys {
		if k.Kind == Keep || k.was.Type != "string" {
			continue
		}
		digest := digestOf(k.was.Value)
		for _, s := range l.keys[i].told {
			if s.Opinion == l.keys[i].agreed && s.left >= 0 {
				d.engine.history.learn(k.key, s.master, len(d.entries), digest, s.ends)
			}
		}
	}
}

// learnPut notes the values that a winning Exec has put on a master, or may have. The caller holds round.mu.
func (m *mending) learnPut(en *entry) {
	d := m.of
	if !d.applied(en) && en.fate != unknown {
		return
	}
	for _, k := range d.puts {
		m.learnAt(en.master, k, d.lasts(en, k))
	}
}

// learnAt notes that a master has, or may have, the value of a winning Exec, and when the value expires there. It is called with
// round.mu held.
func (m *mending) learnAt(master int, k *edited, ends int64) {
	m.of.engine.history.learn(k.key, master, len(m.of.entries), k.digest, ends)
}
