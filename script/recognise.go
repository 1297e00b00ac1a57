package script

import (
	"errors"
	"slices"
)

// Bounds of recognising. No text within these bounds can make recognising slow: there are no loops to run.
const (
	maxRecognised = 16 << 10 // bytes of text
	pathsMax      = 8        // ways through a script, by its arguments
	questionsMax  = 4        // questions about arguments on one way
)

// errFork says that a run met a question about an argument without an answer in its path.
var errFork = errors.New("an argument decides")

// A path is one way through a text: the answers to its questions about arguments, and the finds of the runs in all
// worlds. If the path is understood, it becomes a choice of the Meaning.
type path struct {
	when    []condition // the answers so far
	pending condition   // with errFork: the next question
	key     source
	token   source
	oneKey  bool
	reread  bool // the key was used again after the script had given it a TTL
	keys    int  // the highest index into KEYS met so far
	args    int
	numbers []source // arguments that must be numbers
	ttls    []lifetime
}

// recognise returns the meaning of a text, nil if the text is not understood.
func recognise(text, sha string) *Meaning {
	if len(text) > maxRecognised {
		return nil
	}
	body, err := parse(text)
	if err != nil {
		return nil
	}
	m := &Meaning{sha: sha}
	if !m.explore(body, nil) {
		return nil
	}
	return m
}

// explore understands a text under the given answers. At a question without an answer, explore goes both ways.
func (m *Meaning) explore(body []stmt, when []condition) bool {
	if len(m.cases) == pathsMax || len(when) > questionsMax {
		return false
	}
	p := &path{when: when}
	ends, replies, err := p.runWorlds(body)
	alien := Value{}
	if err == nil {
		alien, err = p.runAlien(body, m.sha)
	}
	if errors.Is(err, errFork) {
		yes, no := p.pending, p.pending
		yes.holds = true
		return m.explore(body, with(when, yes)) && m.explore(body, with(when, no))
	}
	if err != nil || p.key.from == nowhere {
		return false
	}
	found, ok := classify(ends)
	if !ok {
		return false
	}
	found.when, found.key, found.token = when, p.key, p.token
	found.ttls, found.reread, found.alien = p.ttls, p.reread, alien
	m.cases = append(m.cases, found)
	m.keys, m.args = max(m.keys, p.keys), max(m.args, p.args)
	m.oneKey = m.oneKey || p.oneKey
	for _, s := range p.numbers {
		if !slices.Contains(m.numbers, s) {
			m.numbers = append(m.numbers, s)
		}
	}
	return m.learn(found.op, replies)
}

func with(when []condition, c condition) []condition {
	return append(slices.Clip(when), c)
}

// The places of the worlds in ends and replies.
const (
	absent = iota
	mine
	other
	worlds
)

// runWorlds runs a text in every world and returns the key's end states and the replies.
func (p *path) runWorlds(body []stmt) (ends [worlds]keyState, replies [worlds]Value, err error) {
	for i, world := range [worlds]keyState{worldAbsent, worldMine, worldOther} {
		r := &run{path: p, key: world}
		if replies[i], err = r.execute(body); err != nil {
			return ends, replies, err
		}
		ends[i] = r.key
	}
	return ends, replies, nil
}

// wrongType is Redis's error for a key that holds no string.
const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"

// raised ends a run as an error of a command does.
type raised struct {
	text string
	line int
}

func (r raised) Error() string { return r.text }

// runAlien runs a text where the key holds no string, and returns Redis's answer. The text may do nothing there,
// because no quorum operation would do the same.
func (p *path) runAlien(body []stmt, sha string) (Value, error) {
	r := &run{path: p, key: worldAlien}
	reply, err := r.execute(body)
	if e, ok := errors.AsType[raised](err); ok {
		reply, err = Value{Kind: Error, Text: located(e.text, sha, e.line)}, nil
	}
	if err == nil && r.key != worldAlien {
		err = errNotUnderstood
	}
	return reply, err
}

// classify names the operation with these effects.
func classify(ends [worlds]keyState) (choice, bool) {
	if ends[other] != worldOther {
		return choice{}, false // another client's key is not touched
	}
	taken := ends[absent].exists
	kept := ends[mine].exists && ends[mine].ttl.kind == unchanged
	switch {
	case !taken && !ends[mine].exists:
		return choice{op: Release}, true
	case !taken && kept:
		return choice{op: Query}, true
	case !taken:
		return choice{op: Extend, ttl: ends[mine].ttl}, true
	case kept:
		return choice{op: Acquire, ttl: ends[absent].ttl}, true
	case ends[mine].exists && ends[mine].ttl.same(ends[absent].ttl):
		return choice{op: AcquireOrExtend, ttl: ends[absent].ttl}, true
	}
	return choice{}, false
}

// learn notes how an operation answers. learn returns false if the answers are not of this operation, or if another
// choice answers otherwise.
func (m *Meaning) learn(op Op, replies [worlds]Value) bool {
	for _, v := range replies {
		if op != Query && !v.constant() {
			return false
		}
	}
	switch op {
	case Acquire:
		// A refusing quorum does not tell the holder.
		return replies[mine].equal(replies[other]) &&
			m.note(Done, replies[absent]) && m.note(NotMine, replies[other])
	case AcquireOrExtend:
		// A granting quorum does not tell whether it extended: both replies must be a yes.
		same := replies[absent].equal(replies[mine]) || replies[absent].affirmative() && replies[mine].affirmative()
		return same && m.note(Done, replies[absent]) && m.note(Extended, replies[mine]) && m.note(NotMine, replies[other])
	}
	return m.note(Done, replies[mine]) && m.note(NotMine, replies[other]) && m.note(Absent, replies[absent])
}

func (m *Meaning) note(r Result, v Value) bool {
	if a := m.answers[r]; a.known {
		return a.value.equal(v)
	}
	m.answers[r] = answer{value: v, known: true}
	return true
}

// mention returns KEYS[i] or ARGV[i], and notes that every call must have that many.
func (p *path) mention(from origin, index int) symbol {
	if from == fromKeys {
		p.keys = max(p.keys, index)
	} else {
		p.args = max(p.args, index)
	}
	return symbol{kind: symSource, source: source{from: from, index: index}}
}

// mustBeNumber notes that every call must have a number there: Lua calculates with the argument.
func (p *path) mustBeNumber(s source) { p.numbers = append(p.numbers, s) }

// bindKey makes s the key of the script. A script has one key.
func (p *path) bindKey(s symbol) { bind(&p.key, s) }

// bindToken makes s the token of the script. A script has one token: the script compares the key's value with the same
// string that it writes.
func (p *path) bindToken(s symbol) { bind(&p.token, s) }

func bind(to *source, s symbol) {
	if s.kind == symNumber {
		s = integerText(s.number)
	}
	from := s.source
	switch s.kind {
	case symSource:
	case symString:
		from = source{from: fromText, text: s.text}
	default:
		panic(notUnderstood)
	}
	if to.from != nowhere && *to != from {
		panic(notUnderstood)
	}
	*to = from
}

// decide answers a question about an argument, or leaves the question pending.
func (r *run) decide(c condition) bool {
	for _, known := range r.path.when {
		holds := known.holds
		if known.holds = false; known == c {
			return holds
		}
	}
	r.path.pending = c
	panic(halted{errFork})
}
