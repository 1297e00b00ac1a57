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

// The ways in which masters look at a key. If a value is not brought whole, a digest or samples are compared in place of the
// value, and the kind says so.
const (
	whole   = "whole"  // the value of a string
	digest  = "digest" // the digest of a string longer than shortMax
	sampled = "sample" // the length and four samples of a string longer than longMax: for readers without use for the value
	headed  = "head"   // as sampled, and the first bytes of a string longer than shortMax
)

// The kinds of strings that are not told whole.
const (
	digestedKind = "string#"
	sampledKind  = "string~"
)

// The bounds of lengths: of a string in bytes, of any other value in entries. A master makes a digest of 1 MiB in 4 ms, and of
// manyMax entries in 2 ms. Samples take 10 µs, and moving a value into a script takes 1 ms for each MiB.
const (
	shortMax = 512     // of a string that is told whole
	longMax  = 4 << 10 // of a string that is told without samples
	manyMax  = 1000    // of values with a digest; of a value with more entries only the number is compared
	entryMay = 1 << 10 // bytes that an entry counts against the room
	headMax  = 64      // of the first bytes of a value, and of a sample
)

// momentMax is the number of bytes that are compared at one moment, because masters do nothing else meanwhile. A single string
// may be longer.
const momentMax = 1 << 20

// TooMuch says that the keys hold too many bytes to be compared at one moment.
type TooMuch struct {
	Size int // bytes that the keys hold at least
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
	asks := luaLook
	if l.timeless {
		asks = luaPresent
	}
	beginAll(e, l, db, names, l.runs(asks, names, l.argv(len(names))...))
}

// argv returns the arguments of luaLook for n keys.
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
	keys     []agreement
	names    []string
	how      string // the way in which masters look at the keys; "" is whole
	brief    []bool // by key: a digest is enough; nil if no digest is
	room     int    // bytes that masters may look at; 0 is no limit
	part     bool   // masters tell of as many keys as have room, and of at least one; else of all or of none
	timeless bool   // masters tell nothing of expiries, which is less work: the views have no TTL; only with part
	apart    bool   // a key without the agreement of a quorum gets an Err in its view, and the other keys keep their views
	every    bool   // waits for every master, and ignores a master in quarantine, which may have an older copy
	marks    []Mark // waits for the masters that told of these marks
	done     func(*readRound)

	within int // the number of keys, from the first, of which all masters with votes have told; guarded by round.mu

	// The outcome, for done.
	err     error  // *NoQuorum, *TooMuch, ErrClosed
	views   []View // by key: the view on which a quorum agrees; if part, of the first within keys
	unclear bool   // there is a key about which no opinion can have a quorum
}

// read takes a master's answer about the keys.
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
			if !l.timeless {
				all[i].noteSurplus(&en.lane.clock, l.names[i])
			}
			l.keys[i].add(en, all[i])
		}
		l.within = min(l.within, len(all))
	}
	return is
}

// parseSightings reads the reply of luaLook or luaPresent.
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

// parseSighting reads the item of the reply of luaLook or luaPresent for one key.
func parseSighting(reply any) (sighting, bool) {
	switch short := reply.(type) {
	case nil:
		return sighting{}, true
	case string:
		return sighting{Told: rules.Told{Opinion: rules.Opinion{Exists: true, Kind: "string", Value: short}}, length: len(short)}, true
	}
	list, _ := reply.([]any)
	if len(list) == 1 && list[0] == "none" {
		return sighting{}, true
	}
	if len(list) == 3 {
		list = append(list, int64(0), int64(0), int64(0))
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

// decide waits until every key has a decision.
func (l *readRound) decide(t rules.Tally) rules.Decision {
	//mutant: who told of what is watched is not waited for
	if l.every && t.Pending() > 0 || slices.ContainsFunc(l.marks, l.waitsFor) {
		return rules.Undecided
	}
	d := decideEach(l.keys[:l.within], t)
	if l.apart && d == rules.Unanswered && t.Failed <= t.Spare() && t.Pending() == 0 {
		return rules.Lost // a quorum answered: an unclear key is no failure of the round
	}
	return d
}

// errNoAgreement is the Err of a View on which too few masters agree, while some masters do not answer.
var errNoAgreement = errors.New("no quorum of masters agrees on the key")

// decideEach is the rule of a round that reads several keys. The round is lost if there is a key about which no opinion can
// have a quorum.
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

// waitsFor says that a master that told of the marked key has not answered.
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
		if !l.timeless {
			l.timeDrops(&l.keys[i])
		}
		l.views[i] = l.keys[i].view(l.engine)
		if l.apart && l.keys[i].told != nil && d == rules.Lost && l.isOpen(i) {
			l.views[i].Err = errNoAgreement
		}
	}
	l.mu.Unlock()
	l.done(l)
}

// isOpen says that no quorum agrees on the i-th key, while an unanswered master could have completed a quorum. It is called
// with mu held.
func (l *readRound) isOpen(i int) bool { return l.keys[i].decide(l.tally) == rules.Unanswered }

// first is the outcome of a reading of one key.
func (l *readRound) first() View {
	v := l.views[0]
	v.Err = l.err
	return v
}

// seek reads a key for a comparison with a later look.
func seek(e *Engine, key Key, done func(View)) {
	(&readRound{how: digest, done: func(l *readRound) { done(l.first()) }}).ask(e, key.DB, []string{key.Name})
}

// ends returns the expiry of the agreed i-th key on a master, as the master told in this look. The result is 0 if the master
// did not tell the agreed opinion, or the key has no expiry.
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

// timeDrops notes for each master the span of our clock in which the master drops the key. One command may reach some masters
// an InstanceTimeout later than others, and clocks drift until the drop. So the span is wider by both, on both sides. It is
// called with mu held.
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

// latest returns the latest moment, by our clock, until which a master that agrees on the i-th key surely keeps the key. Of
// each extension that a client was told of, at least one of these masters has made the extension. The moment is bounded by
// ttl_max, because a master whose clock was set back may tell more.
func (l *readRound) latest(i int) (until instant) {
	e := l.engine
	now, most := e.now(), l.start+e.cfg.kept(e.cfg.TTLMax)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.keys[i].told {
		switch {
		case s.Opinion != l.keys[i].agreed:
		case s.left < 0: // somebody else has set the key on the master, without an expiry
			return most
		default:
			//mutant: a TTL that is kept is what was left when it was told
			until = max(until, e.masters[s.master].watch.when(now, s.ends).Lo)
		}
	}
	return min(until, most)
}
