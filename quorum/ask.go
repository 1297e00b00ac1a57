package quorum

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockproxy/quorum/rules"
	"lockproxy/quorum/vouch"
)

// An agreement is the answers of masters about a key in one round, and the quorum's view.
type agreement struct {
	told   []sighting // the answers that count, as they came; guarded by round.mu, as is agreed
	agreed rules.Opinion
}

// A sighting is an opinion, with the rest of its master's answer about the key.
type sighting struct {
	rules.Told
	length int           // of a string in bytes, of anything else in entries
	head   string        // the first bytes of a long value, if they were asked for
	left   time.Duration // how long the master will keep the key; below 0 if for ever
	ends   int64         // when the master will drop the key, ms of its clock; if it was asked
	slack  int64         // how inexact ends is, ms
	late   time.Duration // by how much that is later than its client asked, as far as is known
	later  time.Duration // by how much it may be later
	drops  vouch.Span    // when that is by our clock; see readRound.timeDrops
	master int
	epoch  int64 // of the master, when it told
}

// hear adds a master's answer, if the master counts. The vote is granted whatever the answer says: the master has answered.
func (a *agreement) hear(en *entry, s sighting) ballot {
	is := granted
	if !s.Exists {
		is = grantedIfClean
	}
	if en.counts(is) {
		a.add(en, s)
	}
	return is
}

func (a *agreement) add(en *entry, s sighting) {
	if a.told == nil {
		a.told = make([]sighting, 0, len(en.round.entries))
	}
	s.master, s.epoch, s.Old = en.master, en.epoch, !en.clean
	a.told = append(a.told, s)
}

// decide is the rule of a round that reads one key.
func (a *agreement) decide(t rules.Tally) (d rules.Decision) {
	a.agreed, d = rules.DecideRead(t, a.told)
	return d
}

// view returns the agreed view. The caller holds the round's mu.
func (a *agreement) view(e *Engine) View {
	if !a.agreed.Exists {
		return View{Type: "none"}
	}
	v := View{Exists: true, Type: typeName(a.agreed.Kind), told: a.told, seen: a.agreed}
	v.TTL, v.TTLMost = e.cfg.remaining(a.told, a.agreed, rules.Quorum(len(e.masters)))
	if a.agreed.Kind == "string" {
		v.Value = a.agreed.Value
	}
	for _, s := range a.told {
		if s.Opinion == a.agreed {
			v.Length, v.head = s.length, s.head
		}
	}
	return v
}

// typeName returns the type, as TYPE names it, of a kind.
func typeName(kind string) string {
	if kind == digestedKind || kind == sampledKind {
		return "string"
	}
	return kind
}

// content is the key's content as told by a master that is asked for digests: changes that depend on the content compare with this.
func (v *View) content() (kind, content string) {
	switch {
	case v.Type == "string" && len(v.Value) > shortMax:
		return digestedKind, fmt.Sprintf("%s:%d", shaOf(v.Value), len(v.Value))
	case v.seen.Exists:
		return v.seen.Kind, v.seen.Value
	}
	return v.Type, v.Value
}

// remaining returns for how long a quorum of this size will still hold the agreed content, and for how long any master will, both as
// the client that set the key counts. The second is at most ttl_max: a master whose clock was set back may tell more.
func (c *Config) remaining(told []sighting, agreed rules.Opinion, quorum int) (ttl, most time.Duration) {
	var left []time.Duration
	longest := time.Duration(math.MinInt64)
	for _, s := range told {
		if s.Opinion == agreed {
			left = append(left, c.lasts(s.left)-s.later)
			longest = max(longest, c.lasts(s.left)-s.late)
		}
	}
	slices.Sort(left)
	return c.shown(left[len(left)-quorum]), c.shown(min(longest, c.kept(c.TTLMax)))
}

// noteSurplus notes by how much a key is kept longer than its client asked. The lane's loop calls.
func (s *sighting) noteSurplus(c *laneClock, name string) {
	if s.Exists && s.left >= 0 {
		least, most := c.surplus(signature{name: name, token: s.Value}, s.ends, s.slack)
		s.late, s.later = time.Duration(least)*time.Millisecond, time.Duration(most)*time.Millisecond
	}
}

// lasts is for how long a master will keep a key whose PTTL is left.
func (c *Config) lasts(left time.Duration) time.Duration {
	if left < 0 { // set on the master by someone else, for ever
		return c.kept(c.TTLMax)
	}
	return left
}

// AskRequest is a question about one key.
type AskRequest struct {
	Key     Key
	Command []string // with the key where the command has it
	// Unordered says that the answer is a list of parts, of so many items each, which masters may give in any order.
	Unordered int
	// Part says that the answer is a part of a value, and empty where nothing is there.
	Part bool
}

// Asked is the outcome of an Ask. Its Reply is nil, an int64, a string or a []any of these.
type Asked struct {
	Err    error // *NoQuorum, ErrWrongType, ErrClosed
	Reply  any   // nil, too, if no answer can have a quorum
	Exists bool  // the answer shows that the key is there
}

// An askRound is a round that reads a key by a command. A master's sighting is its reply.
type askRound struct {
	round
	agreement
	unordered int
	part      bool
	done      func(Asked)
}

// view is the answer to GET.
func (a Asked) view() View {
	text, ok := a.Reply.(string)
	if !ok {
		return View{Err: a.Err, Type: "none"}
	}
	return View{Err: a.Err, Exists: true, Type: "string", Value: text}
}

// wrongKind stands for the type of a key if a master says only that the command is for another type.
const wrongKind = "wrong type"

func (*askRound) reads() bool { return true }

func (a *askRound) read(en *entry) ballot {
	answer := rules.Opinion{Exists: !isBlank(en.Reply) && !(a.part && en.Reply == ""), Kind: "answer"}
	if en.Err != nil { // a wrong type is an answer, too
		if is := readError(en.Err); is.vote == rules.Failed {
			return is
		}
		answer.Exists, answer.Kind = true, wrongKind
	} else if text, ok := en.Reply.(string); ok {
		answer.Kind, answer.Value = "text", text
	} else {
		answer.Value = a.canonical(en.Reply)
	}
	return a.hear(en, sighting{Told: rules.Told{Opinion: answer}})
}

// isBlank says that an answer, or a part of an answer, comes from a missing key or element.
func isBlank(reply any) bool {
	if list, ok := reply.([]any); ok {
		return len(list) == 0 || slices.Contains(list, nil)
	}
	return reply == nil || reply == int64(0)
}

// canonical writes a reply so that equal replies are equal texts.
func (a *askRound) canonical(reply any) string {
	switch r := reply.(type) {
	case int64:
		return ":" + strconv.FormatInt(r, 10)
	case string:
		return "$" + strconv.Itoa(len(r)) + " " + r
	case []any:
		items := make([]string, len(r))
		for i, item := range r {
			items[i] = a.canonical(item)
		}
		if a.unordered > 0 {
			var parts []string
			for part := range slices.Chunk(items, a.unordered) {
				parts = append(parts, strings.Join(part, ""))
			}
			slices.Sort(parts)
			items = parts
		}
		return "*" + strconv.Itoa(len(r)) + " " + strings.Join(items, "")
	}
	return "-"
}

func (a *askRound) ended(d rules.Decision) {
	switch {
	case d == rules.Unanswered:
		a.done(Asked{Err: a.failure()})
	case d == rules.Won && a.agreed.Kind == wrongKind:
		a.done(Asked{Err: ErrWrongType, Exists: true})
	case d == rules.Won:
		a.done(Asked{Exists: a.agreed.Exists, Reply: a.reply()})
	default:
		a.done(Asked{})
	}
}

// reply returns the agreed reply as the first master gave it.
func (a *askRound) reply() any {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := slices.IndexFunc(a.told, func(s sighting) bool { return s.Opinion == a.agreed })
	return a.entries[a.told[first].master].Reply
}

// Polled is the outcome of a Poll.
type Polled struct {
	Err     error // *NoQuorum, ErrClosed
	Replies []any // by master; nil where there was none in time
}

// A pollRound asks every master the same question. The question keeps its order among the commands on the round's key.
type pollRound struct {
	round
	all     bool // it waits for every master
	changes bool // it may change a key
	done    func(Polled)
}

func (p *pollRound) read(en *entry) ballot {
	if en.Err != nil {
		return failed(failureText(en.Err))
	}
	return granted
}

func (p *pollRound) reads() bool { return !p.changes }

func (p *pollRound) decide(t rules.Tally) rules.Decision {
	if p.all && t.Pending() > 0 {
		return rules.Undecided
	}
	return rules.DecideAcquire(t)
}

func (p *pollRound) ended(d rules.Decision) {
	if d != rules.Won {
		p.done(Polled{Err: p.failure()})
		return
	}
	p.mu.Lock()
	replies := make([]any, len(p.entries))
	for en := range p.who(rules.Granted) {
		replies[en.master] = en.Reply
	}
	p.mu.Unlock()
	p.done(Polled{Replies: replies})
}
