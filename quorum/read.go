package quorum

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockproxy/quorum/rules"
	"lockproxy/quorum/vouch"
)

// How masters look at a key. What they tell of a value that is not brought as a whole is compared in place of the value; its kind
// says so.
const (
	whole   = "whole"  // the value of a string
	digest  = "digest" // of a string of more than shortMax its digest
	sampled = "sample" // of one of more than longMax its length and four samples: for who only reads, and has no use for the value
	headed  = "head"   // as sampled, and the first bytes of what is longer than shortMax
)

// The kinds of strings that are not told as a whole.
const (
	digestedKind = "string#"
	sampledKind  = "string~"
)

// What is long: a string in bytes, anything else in entries. A master makes a digest of 1 MiB in 4 ms, and of as many entries as
// manyMax in 2 ms; samples take it 10 µs, and moving a value into a script 1 ms for each MiB.
const (
	shortMax = 512     // a string is told as a whole
	longMax  = 4 << 10 // samples will do
	manyMax  = 1000    // where there are more entries, their number stands for them
	entryMay = 1 << 10 // what an entry counts, against what there is room for
	headMax  = 64      // of its beginning, and of a sample
)

// momentMax is how much is compared at one moment: masters do nothing else meanwhile. One string may be longer.
const momentMax = 1 << 20

// TooMuch says that keys are to be compared at one moment that hold too much for that.
type TooMuch struct {
	Size int // what they hold at least, in bytes
}

func (t *TooMuch) Error() string {
	return fmt.Sprintf("ERR the keys of this command, or of the transaction and those that it watches, hold %d bytes, and %d are compared at one moment "+
		"at most (an entry of a hash, a list or a set counts %d): make several commands of it, or use fewer keys or shorter values",
		t.Size, momentMax, entryMay)
}

func sized(text string) string {
	return strings.NewReplacer("@SHORT@", strconv.Itoa(shortMax), "@LONG@", strconv.Itoa(longMax), "@MANY@", strconv.Itoa(manyMax),
		"@ENTRY@", strconv.Itoa(entryMay), "@HEAD@", strconv.Itoa(headMax), "@DIGESTED@", digestedKind, "@SAMPLED@", sampledKind).Replace(text)
}

// ask reads several keys of one database, at one moment on each master.
func (l *readRound) ask(e *Engine, db int, names []string) {
	l.keys, l.names, l.within = make([]agreement, len(names)), names, len(names)
	beginAll(e, l, db, names, l.runs(luaLook, names, l.argv(len(names))...))
}

// argv returns the arguments of luaLook for so many keys.
func (l *readRound) argv(n int) []any {
	argv := make([]any, n, n+2)
	for i := range argv {
		if argv[i] = whole; l.how != "" {
			argv[i] = l.how
		}
		if l.brief != nil && l.brief[i] {
			argv[i] = digest
		}
	}
	room, extent := int64(math.MaxInt32), "all"
	if l.room > 0 {
		room = int64(l.room)
	}
	if l.part {
		extent = "part"
	}
	return append(argv, room, extent)
}

// A readRound is a reading of several keys.
type readRound struct {
	round
	keys  []agreement
	names []string
	how   string // masters look at the keys; "": whole
	brief []bool // nil, or by key: a digest will do
	room  int    // how much masters may look at; 0: however much that is
	part  bool   // masters tell of as many keys as there is room for, of one at least; else of all or of none
	apart bool   // a key that no quorum agrees on leaves the others their views, and has an Err in its own
	every bool   // it waits for every master, and ignores one in quarantine, which may have an older copy
	marks []Mark // it waits for the masters that told of these
	done  func(*readRound)

	within int // of how many keys all masters have told whose answers count; guarded by round.mu

	// The outcome, for done.
	err     error  // *NoQuorum, *TooMuch, ErrClosed
	views   []View // by key: what a quorum agrees on; if part, of as many as that came to
	unclear bool   // there is a key about which no opinion can have a quorum
}

// read takes what a master tells of the keys: of all, or of none.
func (l *readRound) read(en *entry) ballot {
	if en.Err != nil {
		return readError(en.Err)
	}
	if _, tooMuch := en.Reply.(int64); tooMuch {
		return refused
	}
	all, ok := parseSightings(en.Reply)
	if n := len(all); !ok || n > len(l.keys) || n < len(l.keys) && (n == 0 || !l.part) {
		return unexpected
	}
	is := granted
	//mutant: a checkup goes by an older copy
	if l.every || slices.ContainsFunc(all, func(s sighting) bool { return !s.Exists }) {
		is = grantedIfClean
	}
	if en.counts(is) {
		for i := range all {
			all[i].noteSurplus(&en.lane.clock, l.names[i])
			l.keys[i].add(en, all[i])
		}
		l.within = min(l.within, len(all))
	}
	return is
}

// parseSightings reads the reply of luaLook.
func parseSightings(reply any) ([]sighting, bool) {
	list, isList := reply.([]any)
	all := make([]sighting, len(list))
	for i := range list {
		var ok bool
		if all[i], ok = parseSighting(list[i]); !ok {
			return nil, false
		}
	}
	return all, isList
}

// parseSighting reads the part of that reply that is about one key.
func parseSighting(reply any) (sighting, bool) {
	list, _ := reply.([]any)
	if len(list) == 1 && list[0] == "none" {
		return sighting{}, true
	}
	if len(list) != 6 && len(list) != 7 {
		return sighting{}, false
	}
	kind, ok1 := list[0].(string)
	value, ok2 := list[1].(string)
	length, ok3 := list[2].(int64)
	ms, ok4 := list[3].(int64)
	ends, ok5 := list[4].(int64)
	slack, ok6 := list[5].(int64)
	s := sighting{Told: rules.Told{Opinion: rules.Opinion{Exists: true, Kind: kind, Value: value}}, length: int(length), left: time.Duration(ms) * time.Millisecond, ends: ends, slack: slack}
	if len(list) == 7 {
		s.head, _ = list[6].(string)
	}
	return s, ok1 && ok2 && ok3 && ok4 && ok5 && ok6
}

func (*readRound) reads() bool { return true }

// decide waits until something is known about every key.
func (l *readRound) decide(t rules.Tally) rules.Decision {
	//mutant: who told of what is watched is not waited for
	if l.every && t.Pending() > 0 || slices.ContainsFunc(l.marks, l.waitsFor) {
		return rules.Undecided
	}
	d := decideEach(l.keys[:l.within], t)
	if l.apart && d == rules.Unanswered && t.Failed <= t.Spare() && t.Pending() == 0 {
		return rules.Lost // a quorum answered: what is not clear of one key is no failure of the round
	}
	return d
}

// errNoAgreement is the Err of a View of which too few masters tell the same, while some do not answer.
var errNoAgreement = errors.New("no quorum of masters agrees on the key")

// decideEach is the rule of a round that reads several keys. It is lost if about one of them no opinion can have a quorum.
func decideEach(keys []agreement, t rules.Tally) rules.Decision {
	decision := rules.Won
	for i := range keys {
		switch keys[i].decide(t) {
		case rules.Unanswered:
			return rules.Unanswered
		case rules.Undecided:
			decision = rules.Undecided
		case rules.Lost:
			if decision == rules.Won {
				decision = rules.Lost
			}
		}
	}
	return decision
}

// waitsFor says that a master which told of what is marked has not answered.
func (l *readRound) waitsFor(m Mark) bool {
	return slices.ContainsFunc(m.told, func(s sighting) bool { return l.entries[s.master].vote == rules.Pending })
}

func (l *readRound) ended(d rules.Decision) {
	if d == rules.Unanswered {
		l.err = l.failure()
	}
	l.unclear = d == rules.Lost
	l.mu.Lock()
	for en := range l.who(rules.Refused) {
		if size, _ := en.Reply.(int64); d == rules.Lost {
			l.err = &TooMuch{Size: int(size)}
		}
	}
	l.views = make([]View, l.within)
	for i := range l.views {
		l.timeDrops(&l.keys[i])
		l.views[i] = l.keys[i].view(l.engine)
		if l.apart && l.keys[i].told != nil && d == rules.Lost && l.isOpen(i) {
			l.views[i].Err = errNoAgreement
		}
	}
	l.mu.Unlock()
	l.done(l)
}

// isOpen says that no quorum agrees on the i-th key, while a master that does not answer could have made up one. It is called
// with mu held.
func (l *readRound) isOpen(i int) bool { return l.keys[i].decide(l.tally) == rules.Unanswered }

// first is the outcome of a reading of one key.
func (l *readRound) first() View {
	v := l.views[0]
	v.Err = l.err
	return v
}

// seek reads a key so that what is there can be compared with what is there later.
func seek(e *Engine, key Key, done func(View)) {
	(&readRound{how: digest, done: func(l *readRound) { done(l.first()) }}).ask(e, key.DB, []string{key.Name})
}

// ends returns when a master was to drop what was agreed on of the i-th key, as it told in this look; 0 if it told nothing of
// that, or never drops it.
func (l *readRound) ends(master, i int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.keys[i].told {
		if s.master == master && s.Opinion == l.keys[i].agreed && s.left >= 0 {
			return s.ends
		}
	}
	return 0
}

// timeDrops notes when each master that drops a key is to do so, by our clock. One command may reach some masters an InstanceTimeout
// later than others, and clocks drift until then, so the span is wider by both, on both sides. It is called with mu held.
func (l *readRound) timeDrops(a *agreement) {
	e, now := l.engine, l.engine.now()
	for i := range a.told {
		if s := &a.told[i]; s.left >= 0 {
			ends := e.masters[s.master].watch.when(now, s.ends)
			wider := e.cfg.InstanceTimeout + rules.Drift(s.left, e.cfg.DriftFactor)
			s.drops = vouch.Span{Lo: ends.Lo - wider, Hi: ends.Hi + wider}
		}
	}
}

// latest returns the latest moment, by our clock, until which a master that agrees on the i-th key surely keeps it. For each
// extension that a client was told of, one of these masters has made it. The moment is no later than ttl_max allows: a master
// whose clock was set back may tell more.
func (l *readRound) latest(i int) (until instant) {
	e := l.engine
	now, most := e.now(), l.start+e.cfg.kept(e.cfg.TTLMax)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.keys[i].told {
		switch {
		case s.Opinion != l.keys[i].agreed:
		case s.left < 0: // set on the master by someone else, for ever
			return most
		default:
			//mutant: a TTL that is kept is what was left when it was told
			until = max(until, e.masters[s.master].watch.when(now, s.ends).Lo)
		}
	}
	return min(until, most)
}
