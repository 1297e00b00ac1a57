package quorum

import (
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	"lockproxy/quorum/rules"
	"lockproxy/quorum/vouch"
)

// ExecRequest is a compare-and-do on keys of one database.
type ExecRequest struct {
	DB      int
	Keys    []string // at least one, all different
	Watched []Mark   // marks that the first so many keys must still have
	Brief   []bool   // nil, or by key: Plan neither needs the value nor changes an existing key
	Shown   []Mark   // marks with which Plan compares keys
	Plan    Plan
}

// A Plan chooses the changes of keys, given a quorum's view of the keys: an Edit for each key, or nil to change nothing. Plan is
// called once for each try, on any goroutine, and must not block.
type Plan func(now []View) []Edit

// An Edit is a plan's change to one key.
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
	Claim // as Delete, and the reply is the deleted value: a single client may get the value
)

// Executed is the outcome of an Exec.
type Executed struct {
	Err  error // *NoQuorum, *TooMuch, ErrLate, ErrTooShort, ErrClosed
	Done bool  // false: a watched key has changed, and nothing was done
	Lock *Lock // if a key was put, and not given up by so short a TTL; see edited.givesUp
}

// A Mark stands for the content of a key and the instant of its expiry. The zero Mark is no key's.
type Mark struct {
	content [sha256.Size]byte
	told    []sighting // of the masters that agree; without the content
}

// Mark returns the mark of the viewed key.
func (v View) Mark() Mark {
	kind, content := v.content()
	m := Mark{content: sha256.Sum256([]byte(kind + " " + content))}
	for _, s := range v.told {
		if s.Exists && s.Opinion == v.seen {
			s.Opinion = rules.Opinion{}
			m.told = append(m.told, s)
		}
	}
	return m
}

// Same says that neither the key's value nor its expiry shows a change since the mark was made.
func (m Mark) Same(now View) bool {
	other := now.Mark()
	compared := 0
	for _, a := range m.told {
		for i := range other.told {
			b := &other.told[i]
			//mutant: an older copy changes what is watched
			if a.master != b.master || a.epoch != b.epoch || a.left < 0 || b.left < 0 { // in another epoch the master may have an older copy
				continue
			}
			if max(a.ends-b.ends, b.ends-a.ends) > a.slack+b.slack {
				return false
			}
			//mutant: a clock that was set changes what is watched
			b.drops = a.drops // if the moment is another now, the master's clock was set
			compared++
		}
	}
	//mutant: what is watched changes unseen where a master is away
	if compared < len(m.told) {
		if a, b := m.last(), other.last(); a.Hi > 0 && b.Hi > 0 && (a.Hi < b.Lo || b.Hi < a.Lo) {
			return false
		}
	}
	return m.content == other.content
}

// last returns when the last master to have told of the key is to drop the key, by our clock; nothing if no master drops the key.
func (m Mark) last() (last vouch.Span) {
	for _, s := range m.told {
		last.Lo, last.Hi = max(last.Lo, s.drops.Lo), max(last.Hi, s.drops.Hi)
	}
	return last
}

// execPatience is for how many InstanceTimeouts an Exec begins anew when the changes of others come between.
const execPatience = 10

// An exec is an Exec under way: compare-and-do. The exec looks at all keys at once, and asks the plan for the edits that a quorum's view
// calls for. Then one round has each master make all edits if every key there still is as the quorum saw the key, or none.
//
// Two clients that GETSET an expired lock cannot both get the old value, through any proxies: a client is told a value only if a quorum
// held the value, and a quorum then replaced the value for this client. The two quorums of two clients share a master. The shared master
// replaced the old value for the first client. To replace the old value for the second client, the master must hold the value again:
//
//   - because the first Exec was undone. But an Exec is undone only if its client was not told of success, or the reply could
//     not be delivered, or came too late;
//   - or because the master's data is older. But then the master is in quarantine, and does not count.
//
// So of several Execs at most one wins; none wins if the votes are split between more than two proxies. The losers look again, and find
// the winner's value.
//
// An Exec that does not win on a quorum puts back the values that it replaced and deleted, with the TTL that was left, and only where its
// own value still is as the Exec had set it. The undo goes over a key's lane like an attempt's undo. The Exec does not put back
//
//   - keys that hold anything but strings;
//   - the key of an Exec that does nothing but delete the key, because its client does not want the key back; unless the reply is
//     the deleted value (Claim);
//   - a key that was deleted on a master whose answer was lost with its connection: if the key is absent now, the holder may have
//     released the key since.
//
// The leftovers of a failed try on some masters, and a later try on others, may together look like a quorum to another client. So an Exec
// does not try again once its leftovers could make a quorum, or hide the former value (mayBeDone, noteLeft). And if no quorum agrees, the
// Exec does not answer that nothing is there.
//
// An Exec looks again, too, while the masters differ so much that no quorum agrees: another Exec is about to win, or to put a value back.
// A master that refuses a winning Exec has missed the value before, and is repaired; see repair.go.
//
// A watched key is unchanged if its value is, and if each master that told of the key before is to drop the key at the same moment: a
// client that sets or extends the key changes the moment on at least one of these masters. So the look waits for these masters. If a
// master is not heard in time, the moment at which the last of all masters drops the key may still show a change. A key that was set and
// is gone again leaves no trace.
type exec struct {
	engine   *Engine
	req      ExecRequest
	done     func(Executed)
	deadline answerTime    // until when changes of others make the exec begin anew; 0 before the first try
	patient  answerTime    // until when the exec looks again while masters differ
	pause    time.Duration // before the next look, at most
	beaten   int           // how often another's change came between
	left     []bool        // by master: something of a try that failed may still be there
}

func (x *exec) try() {
	if x.deadline == 0 {
		x.deadline = x.engine.waited().plus(execPatience * x.engine.cfg.InstanceTimeout)
	}
	look := &readRound{brief: x.req.Brief, room: momentMax, marks: slices.Concat(x.req.Watched, x.req.Shown), done: x.looked}
	look.ask(x.engine, x.req.DB, x.req.Keys)
}

// looked goes on with the keys as they were found.
func (x *exec) looked(l *readRound) {
	err := l.err
	if (err != nil || l.unclear) && x.differ(err) {
		return
	}
	//mutant: nobody has a key that masters differ about
	if err == nil && l.unclear { // an Exec that lost may not have put the value back yet: the key is not free
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
	if x.tooShort(l.views, edits) {
		x.done(Executed{Err: ErrTooShort})
		return
	}
	newExecRound(x, l, edits).ask()
}

// tooShort says that an edit would take a lock that is over when the lock is granted.
func (x *exec) tooShort(now []View, edits []Edit) bool {
	for i, ed := range edits {
		if ed.Kind == Put && !now[i].Exists && ed.TTL < rules.TTLMin(x.engine.cfg.DriftFactor) {
			return true
		}
	}
	return false
}

// differ looks again, a little later, if a quorum has answered but no quorum agrees: another change is being made, or put back.
// differ returns false if no quorum has answered, or the masters have differed for too long. The wait for a turn counts as part of
// the time: the Execs before this Exec have found the same.
func (x *exec) differ(err error) bool {
	e := x.engine
	var no *NoQuorum
	rest := x.patient.since(e.waited())
	if err != nil && (!errors.As(err, &no) || no.Answered < rules.Quorum(no.Masters)) || rest <= 0 {
		return false
	}
	x.pause = min(max(2*x.pause, 2*askPause), e.cfg.InstanceTimeout)
	e.pause(min(x.pause, rest), x.try)
	return true
}

// again begins anew after another's change came between, unless changes have come for too long. The first time, again begins at once: the
// other Exec has most often won. From then on again pauses for a random time: two proxies, each near to another master, may have beaten each
// other, and would do so again in step.
func (x *exec) again(err error) {
	if x.engine.waited() >= x.deadline {
		x.done(Executed{Err: err})
		return
	}
	x.beaten++
	//mutant: two Execs that were beaten by each other go on in step
	if x.beaten > 1 {
		x.pause = min(max(2*x.pause, 2*askPause), x.engine.cfg.InstanceTimeout)
		x.engine.pause(min(x.pause, x.deadline.since(x.engine.waited())), x.try)
		return
	}
	x.try()
}

// turns lets the Execs of this engine on one key run one after the other, in the order in which they came. An Exec reads, then
// compares: of two at a time, the loser would have to begin again. With turns, only other proxies and commands of one round can make
// an Exec begin again.
type turns struct {
	mu    sync.Mutex
	taken map[Key][]func() // the Execs that wait for the key
}

// take calls f when this caller has the turn on all keys. Keys are taken in the order given, which must be ascending: two callers in
// different orders would wait for each other.
func (t *turns) take(db int, names []string, f func()) {
	for i, name := range names {
		key := Key{db, name}
		t.mu.Lock()
		queue, busy := t.taken[key]
		if busy {
			t.taken[key] = append(queue, func() { t.take(db, names[i+1:], f) })
			t.mu.Unlock()
			return
		}
		if t.taken == nil {
			t.taken = make(map[Key][]func())
		}
		t.taken[key] = nil
		t.mu.Unlock()
	}
	f()
}

// give ends the turn on all keys, and begins the next ones.
func (t *turns) give(db int, names []string) {
	var next []func()
	t.mu.Lock()
	for _, name := range names {
		key := Key{db, name}
		queue := t.taken[key]
		if len(queue) == 0 {
			delete(t.taken, key)
			continue
		}
		next = append(next, queue[0])
		t.taken[key] = queue[1:]
	}
	t.mu.Unlock()
	for _, f := range next {
		f()
	}
}

// pending counts the keys that somebody has the turn on.
func (t *turns) pending() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.taken)
}
