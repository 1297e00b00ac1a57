package quorum

import (
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"lockproxy/quorum/vouch"
)

// Exec is compare-and-do: what GETSET, MSETNX, SET … IFEQ or KEEPTTL, and WATCH with MULTI and EXEC come to. It looks at all keys
// at once, lets the plan decide what a quorum's view of them calls for, and then makes one round: each master does all
// of it if every key there still is as the quorum saw it, or nothing.
//
// Why two clients that GETSET one expired lock cannot both get the old value, whatever proxies they use: each is told a
// value that a quorum held when it looked, and has replaced it on a quorum where it still was. Two quorums share a
// master. That master can have replaced the old value for the second client only if it held it again after it was
// replaced for the first, and it does so only if the first was taken back, which is done only for one that was not
// told of success. (One whose reply could not be delivered, or came too late, is taken back as well.) Or its data is older
// than that: then it is in quarantine, and does not count. So of all that try, one wins, or, where the votes are split
// between more than two proxies, none; those that lose look again, and find the winner's value.
//
// An Exec that does not win on a quorum puts back what it replaced and deleted: the same value, with the TTL that was left of
// it, and only where its own value still is, as it had set it. This goes over a key's lane like an acquire's undo. Not put
// back are
//
//   - keys that hold anything but strings;
//   - what the only change of an Exec deleted, because whoever deletes does not want it back; unless the reply is what was
//     there (Claim);
//   - what was deleted on a master whose answer was lost with its connection. If nothing is there, that may also be because
//     its holder has released it since.
//
// What is not put back on some masters may, together with what a later try puts on others, look like a quorum to somebody
// else, who is told it then. So an Exec that may have left something in this way does not try again. And where no quorum
// agrees it does not answer that nothing is there.
//
// An Exec looks again, too, as long as the masters differ so that no quorum agrees: somebody else is about to win, or to put
// something back. A master that refuses an Exec which wins has missed what was there before, and is repaired; see repair.go.
//
// Watched keys are compared by their values, and by when each master that was heard both times is to drop them: whoever sets
// a key again, or extends it, changes that. Where none of these masters has heard of an extension, it is seen by when the
// last of all masters is to drop the key. A key that was there for a while, and is gone again, leaves no trace.
func (e *Engine) Exec(req ExecRequest, done func(Executed)) {
	x := &exec{engine: e, req: req, left: make([]bool, len(e.masters)), patient: e.waited() + execPatience*e.cfg.InstanceTimeout}
	order := slices.Sorted(slices.Values(req.Keys))
	x.done = func(r Executed) {
		e.turns.give(req.DB, order)
		done(r)
	}
	e.turns.take(req.DB, order, x.try)
}

// ExecRequest is a compare-and-do on keys of one database.
type ExecRequest struct {
	DB      int
	Keys    []string // at least one, all different
	Watched []Mark   // what the first so many keys must hold
	Plan    Plan
}

// A Plan says what to do with keys, given what a quorum holds: one Edit for each key, or nil to change nothing. It is
// called once for each try, on any goroutine, and must not block.
type Plan func(now []View) []Edit

// An Edit is what a plan does to one key.
type Edit struct {
	Kind    EditKind
	Value   string        // of Put
	TTL     time.Duration // of Put and Expire; as in AcquireRequest
	KeepTTL bool          // of Put: keep the remaining TTL; the key must exist
}

// An EditKind is a way to change a key.
type EditKind uint8

// The ways to change a key.
const (
	Keep EditKind = iota
	Put
	Expire
	Delete
	Claim // as Delete, and its reply is what was there: only one client may have that
)

// Executed is the outcome of an Exec.
type Executed struct {
	Err  error // *NoQuorum, ErrLate, ErrClosed
	Done bool  // false: a watched key has changed, and nothing was done
	Lock *Lock // if keys were put, with TTLs of which validity can be left or where nothing was
}

// A Mark stands for what a key holds, and for when that expires. The zero Mark is no key's.
type Mark struct {
	content [sha256.Size]byte
	told    []sighting // of those that agree: without what is there
	until   vouch.Span // as of the View
}

// Mark returns the mark of what was viewed.
func (v View) Mark() Mark {
	m := Mark{content: sha256.Sum256([]byte(v.Type + " " + v.Value + v.Digest)), until: v.until}
	for _, s := range v.told {
		if s.exists && s.kind == v.Type && s.value == v.content() {
			m.told = append(m.told, sighting{master: s.master, left: s.left, ends: s.ends, slack: s.slack})
		}
	}
	return m
}

// Same says that nobody has changed the key, as far as its value tells, and when it expires.
func (m Mark) Same(now View) bool {
	other := now.Mark()
	for _, a := range m.told {
		for _, b := range other.told {
			if a.master == b.master && a.left >= 0 && b.left >= 0 && max(a.ends-b.ends, b.ends-a.ends) > a.slack+b.slack {
				return false
			}
		}
	}
	if a, b := m.until, other.until; a.Hi > 0 && b.Hi > 0 && (a.Hi < b.Lo || b.Hi < a.Lo) {
		return false
	}
	return m.content == other.content
}

// execPatience bounds how long an Exec looks again after another's change came between, in InstanceTimeouts.
const execPatience = 10

type exec struct {
	engine   *Engine
	req      ExecRequest
	done     func(Executed)
	deadline instant       // of the latest try's beginning; 0 before the first
	patient  instant       // until when it looks again where masters differ
	pause    time.Duration // before it looks again, at most
	left     []bool        // by master: something of a try that failed may still be there
}

func (x *exec) try() {
	if x.deadline == 0 {
		x.deadline = x.engine.waited() + execPatience*x.engine.cfg.InstanceTimeout
	}
	x.engine.look(x.req.DB, x.req.Keys, &looking{done: x.looked})
}

// looked goes on with what the keys are found to hold.
func (x *exec) looked(l *looking) {
	err := l.err
	if (err != nil || l.unclear) && x.differ(err) {
		return
	}
	if err == nil && l.unclear { // it may be somebody's who has not put it back yet: not free
		err = l.failure()
	}
	if err != nil {
		x.done(Executed{Err: err})
		return
	}
	for i, m := range x.req.Watched {
		if !m.Same(l.views[i]) {
			x.done(Executed{})
			return
		}
	}
	edits := x.req.Plan(l.views)
	if !slices.ContainsFunc(edits, func(e Edit) bool { return e.Kind != Keep }) {
		x.done(Executed{Done: true})
		return
	}
	x.engine.edit(x, l, edits)
}

// differ looks again, a little later, where a quorum has answered, but no quorum alike: another's change is being made, or put
// back. It returns false where that is not so, or has lasted too long. The time in which the Exec waited for its turn counts:
// those before it have found the same.
func (x *exec) differ(err error) bool {
	e := x.engine
	var no *NoQuorum
	rest := x.patient - e.waited()
	if err != nil && (!errors.As(err, &no) || no.Answered < Quorum(no.Masters)) || rest <= 0 {
		return false
	}
	x.pause = min(max(2*x.pause, 2*askPause), e.cfg.InstanceTimeout)
	e.pause(min(x.pause, rest), x.try)
	return true
}

// again begins anew after another's change came between, unless that has happened for too long.
func (x *exec) again(err error) {
	if x.engine.waited() >= x.deadline {
		x.done(Executed{Err: err})
		return
	}
	x.try()
}
