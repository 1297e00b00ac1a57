package quorum

import (
	"fmt"
	"time"

	"lockproxy/quorum/rules"
)

// A Viewed is the answers of all masters about a key, and their sum.
type Viewed struct {
	Err     error // ErrClosed
	State   LockState
	View    View // the quorum's view, if State is LockHeld; its Err is not set
	Masters []MasterView
}

// A LockState sums up the masters' answers about a key.
type LockState uint8

// The states of a resource. Unclear does not last: votes are in flight, or their leftovers expire.
const (
	LockFree    LockState = iota // a quorum has nothing there
	LockHeld                     // a quorum has the same there
	LockUnclear                  // no quorum agrees, nor can one: nobody holds it
	LockUnknown                  // too few answers count to tell
)

func (s LockState) String() string { return [...]string{"free", "held", "unclear", "unknown"}[s] }

// A MasterView is one master's answer.
type MasterView struct {
	Addr     string
	State    State
	Left     time.Duration // of its quarantine, as far as is known
	Answered bool          // in time; if not, nothing is known of the key there
	Type     string        // if Answered; "none" if nothing is there
	Value    string        // of a string; the excerpt of a long string
	TTL      time.Duration
	Counts   bool   // the answer counts
	Reason   string // why it does not, or why the master cannot grant
}

// viewsRoom is the share of the pacer's room that views take: a client that asks for many at once is in no hurry, and others lock
// meanwhile.
const viewsRoom = pacerRoom / 8

func (v *viewsRound) ask(e *Engine) {
	done := v.done
	v.seen = make([]*sighting, len(e.masters))
	v.done = func(all Viewed) {
		e.pacer.end(viewsRoom)
		done(all)
	}
	e.pacer.begin(viewsRoom, func() {
		begin(e, v, v.key, v.runs(luaLook, []string{v.key.Name}, (&readRound{how: headed}).argv(1)...))
	})
}

// A viewsRound is a reading that waits for every master.
type viewsRound struct {
	round
	agreement
	done func(Viewed)
	key  Key
	seen []*sighting // by master, also of masters that do not count; guarded by round.mu
}

func (v *viewsRound) read(en *entry) ballot {
	if en.Err != nil {
		return readError(en.Err)
	}
	all, ok := parseSightings(en.Reply)
	if !ok || len(all) != 1 {
		return unexpected
	}
	all[0].noteSurplus(&en.lane.clock, v.key.Name)
	if en.vote == rules.Pending { // not after the deadline
		v.seen[en.master] = &all[0]
	}
	return v.hear(en, all[0])
}

func (*viewsRound) reads() bool { return true }

func (v *viewsRound) decide(t rules.Tally) rules.Decision {
	if t.Pending() > 0 {
		return rules.Undecided
	}
	return v.agreement.decide(t)
}

func (v *viewsRound) ended(d rules.Decision) {
	e := v.engine
	if e.closing.Load() {
		v.done(Viewed{Err: ErrClosed})
		return
	}
	status := e.Database(v.key.DB).Masters
	v.mu.Lock()
	all := Viewed{State: LockUnknown, View: v.agreement.view(e)}
	switch {
	case d == rules.Won && all.View.Exists:
		all.State = LockHeld
		all.View.Value = excerpt(all.View.Type, all.View.Value, all.View.head, all.View.Length)
	case d == rules.Won:
		all.State = LockFree
	case d == rules.Lost:
		all.State = LockUnclear
	}
	for i := range v.entries {
		all.Masters = append(all.Masters, v.of(&v.entries[i], &status[i]))
	}
	v.mu.Unlock()
	v.done(all)
}

// excerpt returns a string, or of one that is long how it begins, and how long it is.
func excerpt(kind, value, head string, length int) string {
	switch {
	case kind != "string":
		return ""
	case length > shortMax:
		return fmt.Sprintf("%s… (%d bytes)", head, length)
	}
	return value
}

// of returns one master's view. The caller holds round.mu.
func (v *viewsRound) of(en *entry, is *MasterStatus) MasterView {
	m := MasterView{Addr: is.Addr, State: is.State, Left: is.Left, Counts: en.vote == rules.Granted, Reason: en.cause}
	if m.Counts && is.State != Clean {
		m.Reason = is.Cause
	}
	if s := v.seen[en.master]; s != nil {
		m.Answered, m.Type = true, "none"
		if s.Exists {
			m.Type, m.TTL = typeName(s.Kind), v.engine.cfg.shown(v.engine.cfg.lasts(s.left)-s.later)
		}
		m.Value = excerpt(m.Type, s.Value, s.head, s.length)
	}
	return m
}
