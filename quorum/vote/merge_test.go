package vote

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"lockproxy/quorum/rules"
)

// A merging is a rule and what masters may say to it, one letter for each kind of answer; x is a failure.
type merging struct {
	name    string
	rule    Rule
	letters map[byte]*Answer
	// final is the rule in the plainest words, for a complete set of votes: the decision, and the reply where that may not
	// depend on the order of the votes.
	final func(votes string) (rules.Decision, string)
}

func integer(n int64, field string) *Answer {
	return &Answer{Value: Value{Kind: IntValue, Int: n}, encoded: fmt.Sprintf(":%d;", n), Field: field}
}

// told is an integer that a clock told.
func told(ms int64) *Answer {
	a := integer(ms, "")
	a.encoded = "@" + a.encoded
	if err := a.readSeen(); err != nil {
		panic(err)
	}
	return a
}

func none(field string) *Answer { return &Answer{encoded: "_", Field: field} }

func pair(a, b int64) *Answer {
	return &Answer{
		Value:   integers(a, b),
		encoded: fmt.Sprintf("*2;:%d;:%d;", a, b),
	}
}

func positive(v Value) bool { return v.Kind == IntValue && v.Int > 0 }
func isNil(v Value) bool    { return v.Kind == NilValue }
func notNil(v Value) bool   { return v.Kind != NilValue }

func majority(votes, of string) bool { return 2*strings.Count(votes, of) > len(votes) }

func answeredBy(votes string) bool { return 2*strings.Count(votes, "x") < len(votes) }

// extended is what comes of it if these letters grant.
func extended(votes, granting string) rules.Decision {
	granted := 0
	for _, letter := range granting {
		granted += strings.Count(votes, string(letter))
	}
	switch {
	case 2*granted > len(votes):
		return rules.Won
	case !answeredBy(votes), 2*(granted+strings.Count(votes, "x")) > len(votes):
		return rules.Unanswered
	}
	return rules.Lost
}

func most(votes string, of ...string) rules.Decision {
	for _, o := range of {
		if majority(votes, o) {
			return rules.Won
		}
	}
	if !answeredBy(votes) {
		return rules.Unanswered
	}
	return rules.Lost
}

var mergings = []merging{
	{"agreeing", Rule{}, map[byte]*Answer{'a': integer(1, ""), 'b': integer(2, ""), 'c': none("")},
		func(v string) (rules.Decision, string) { return most(v, "a", "b", "c"), "" }},
	{"agreeing but for clocks", Rule{}, map[byte]*Answer{'a': told(29_993), 'b': told(29_990), 'c': integer(29_993, "")},
		func(v string) (rules.Decision, string) {
			if d := most(strings.ReplaceAll(v, "c", "a"), "a"); d == rules.Won {
				return d, ""
			}
			return most(strings.ReplaceAll(v, "b", "a"), "a"), ""
		}},
	{"taking", Rule{Merge: Taking, Granted: isNil, Field: "me"},
		map[byte]*Answer{'1': none("1"), '2': none("2"), 'r': integer(500, "")},
		func(v string) (rules.Decision, string) { return most(v, "1", "2"), "" }},
	{"extending", Rule{Merge: Extending, Granted: positive}, map[byte]*Answer{'g': integer(1, ""), 'r': integer(0, "")},
		func(v string) (rules.Decision, string) { return extended(v, "g"), "" }},
	{"releasing", Rule{Merge: Releasing, Granted: notNil},
		map[byte]*Answer{'0': integer(0, ""), '1': integer(1, ""), 'r': none("")},
		func(v string) (rules.Decision, string) {
			kept, failed := strings.Count(v, "0"), strings.Count(v, "x")
			d := rules.DecideRelease(rules.Tally{Masters: len(v), Granted: kept + strings.Count(v, "1"), Refused: strings.Count(v, "r"), Failed: failed})
			switch {
			case d != rules.Won:
				return d, ""
			case majority(v, "0"):
				return d, "0"
			case 2*(kept+failed) > len(v):
				return rules.Unanswered, ""
			}
			return d, "1"
		}},
	// o: the caller holds on; s: only others do.
	{"releasing one of several holds", Rule{Merge: Releasing, Granted: notNil, Field: "me"},
		map[byte]*Answer{'o': integer(0, "1"), 's': integer(0, ""), '1': integer(1, ""), 'r': none("")},
		func(v string) (rules.Decision, string) {
			kept, failed := strings.Count(v, "o"), strings.Count(v, "x")
			d := rules.DecideRelease(rules.Tally{Masters: len(v), Granted: len(v) - strings.Count(v, "r") - failed, Refused: strings.Count(v, "r"), Failed: failed})
			switch {
			case d != rules.Won:
				return d, ""
			case majority(v, "o"):
				return d, "0"
			case 2*(kept+failed) > len(v):
				return rules.Unanswered, ""
			case majority(v, "1") || !strings.Contains(v, "s"):
				return d, "1"
			}
			return d, "0"
		}},
	{"releasing two keys", Rule{Merge: Releasing, Granted: positive},
		map[byte]*Answer{'1': integer(1, ""), '2': integer(2, ""), 'r': integer(0, "")},
		func(v string) (rules.Decision, string) {
			both, failed := strings.Count(v, "2"), strings.Count(v, "x")
			d := rules.DecideRelease(rules.Tally{Masters: len(v), Granted: both + strings.Count(v, "1"), Refused: strings.Count(v, "r"), Failed: failed})
			switch {
			case d != rules.Won:
				return d, ""
			case both > 0 && 2*(both+failed) > len(v):
				return d, "2"
			}
			return d, "1"
		}},
	{"each", Rule{Merge: Extending, Granted: positive, Each: true},
		map[byte]*Answer{'n': pair(0, 0), 'r': pair(0, 1), 'l': pair(1, 0), 'b': pair(1, 1),
			'e': {Value: Value{Kind: ErrorValue, Text: "ERR"}, encoded: "-3:ERR"}},
		func(v string) (rules.Decision, string) {
			if d := extended(v, "nrlb"); d != rules.Won {
				return d, ""
			}
			left, right := extended(v, "lb"), extended(v, "rb")
			if left == rules.Unanswered || right == rules.Unanswered {
				return rules.Unanswered, ""
			}
			said := map[rules.Decision]int{rules.Won: 1}
			return rules.Won, fmt.Sprintf("[%d %d]", said[left], said[right])
		}},
	{"telling", Rule{Merge: Telling}, map[byte]*Answer{'a': none(""), 'b': integer(1, "")},
		func(v string) (rules.Decision, string) {
			if !answeredBy(v) {
				return rules.Unanswered, ""
			}
			return rules.Won, ""
		}},
}

// counted returns the state of a rule with these answers.
func counted(rule Rule, answers ...*Answer) *Count {
	for _, a := range answers {
		if a != nil {
			rule.Judge(a)
		}
	}
	return &Count{Rule: rule, Answers: answers}
}

// after returns the state when these masters have voted, of n.
func (m *merging) after(votes string, n int) (*Count, rules.Tally) {
	c := &Count{Rule: m.rule, Answers: make([]*Answer, n)}
	t := rules.Tally{Masters: n}
	for i := range votes {
		a := m.letters[votes[i]]
		if a == nil {
			t.Add(rules.Failed)
			continue
		}
		m.rule.Judge(a)
		c.Answers[i] = a
		t.Add(a.Vote)
	}
	return c, t
}

func (c *Count) reply() string {
	v := c.Reply()
	if v.Kind != ArrayValue {
		return fmt.Sprint(v.Int)
	}
	var n []int64
	for item := range v.Parts() {
		n = append(n, item.Int)
	}
	return fmt.Sprint(n)
}

// Every sequence of answers of up to five masters, vote by vote.
func TestMergesAreFinalAndMeanWhatTheySay(t *testing.T) {
	for _, m := range mergings {
		letters := slices.Sorted(maps.Keys(m.letters))
		letters = append(letters, 'x')
		for n := 1; n <= 5; n++ {
			m.every("", n, letters, func(votes string) {
				want, reply := m.final(votes)
				early, said := rules.Undecided, ""
				for i := range len(votes) + 1 {
					c, tally := m.after(votes[:i], n)
					d := c.Decide(tally)
					if early == rules.Undecided && d != rules.Undecided {
						early = d
						if reply != "" {
							said = c.reply()
						}
					}
				}
				if early != want || said != reply {
					t.Errorf("%s %q: decided %v %q, want %v %q", m.name, votes, early, said, want, reply)
				}
			})
		}
	}
}

func (m *merging) every(votes string, n int, letters []byte, f func(string)) {
	if len(votes) == n {
		f(votes)
		return
	}
	for _, l := range letters {
		m.every(votes+string(l), n, letters, f)
	}
}

// A decision must not wait for votes that can change nothing.
func TestMergesDecideAsSoonAsTheyCan(t *testing.T) {
	for _, m := range mergings {
		letters := append(slices.Sorted(maps.Keys(m.letters)), 'x')
		for n := 1; n <= 3; n++ {
			for have := range n {
				m.every("", have, letters, func(votes string) {
					c, tally := m.after(votes, n)
					if c.Decide(tally) != rules.Undecided {
						return
					}
					outcomes := map[string]bool{}
					m.every(votes, n, letters, func(all string) {
						d, reply := m.final(all)
						outcomes[d.String()+reply] = true
					})
					if len(outcomes) == 1 {
						t.Errorf("%s %q of %d: undecided, although only %v is left", m.name, votes, n, outcomes)
					}
				})
			}
		}
	}
}

func TestRefusalsMerge(t *testing.T) {
	taking := Rule{Merge: Taking, Granted: isNil}
	wrong := &Answer{Value: Value{Kind: ErrorValue, Text: "WRONGTYPE"}, encoded: "-9:WRONGTYPE"}
	for _, c := range []struct {
		name    string
		answers []*Answer
		want    Value
		ok      bool
	}{
		{"the largest TTL", []*Answer{integer(29990, ""), integer(29997, ""), integer(29993, "")}, Value{Kind: IntValue, Int: 29997}, true},
		{"whoever granted has no say", []*Answer{none(""), integer(5, ""), nil}, Value{Kind: IntValue, Int: 5}, true},
		{"the commonest kind", []*Answer{wrong, wrong, integer(5, "")}, wrong.Value, true},
		{"a TTL says more than an error", []*Answer{wrong, integer(5, ""), nil}, Value{Kind: IntValue, Int: 5}, true},
		{"nobody", []*Answer{none(""), nil, nil}, Value{}, false},
	} {
		got, ok := counted(taking, c.answers...).Refusal()
		if ok != c.ok || got.Kind != c.want.Kind || got.Int != c.want.Int || got.Text != c.want.Text {
			t.Errorf("%s: got %+v %v, want %+v %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

// Only what a clock told is a remaining TTL: any other number is the script's own.
func TestWhoIsToAskAgainSoonIsToldAShortTTL(t *testing.T) {
	ttl := func(n int64) *Answer {
		a := integer(n, "")
		a.clocks = []float64{float64(n)}
		return a
	}
	for _, c := range []struct {
		name    string
		answers []*Answer
		want    int64
	}{
		{"long TTLs", []*Answer{ttl(29990), none(""), ttl(29997)}, 100},
		{"a short one", []*Answer{ttl(70), none(""), nil}, 70},
		{"none, as the lock has no TTL", []*Answer{ttl(-1), none(""), nil}, -1},
		{"a number", []*Answer{integer(29990, ""), none(""), nil}, 29990},
	} {
		all := counted(Rule{Merge: Taking, Granted: isNil}, c.answers...)
		refusal, _ := all.Refusal()
		if got := all.Briefly(refusal, 100*time.Millisecond); got.Int != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got.Int, c.want)
		}
	}
}

// A master that could not run a release, or an extension, has not said that the client does not hold its lock.
func TestTheFewThatSayNoDoNotSpeakForThoseThatCouldNotRunIt(t *testing.T) {
	no, yes, stop := none(""), integer(1, ""), &Answer{Value: Value{Kind: ErrorValue, Text: "ERR stopped"}, encoded: "?11:ERR stopped"}
	for _, c := range []struct {
		merge   Merge
		answers []*Answer
		want    string
	}{
		{Releasing, []*Answer{no, no, stop, stop, nil}, "ERR stopped"},
		{Releasing, []*Answer{no, no, stop, nil, nil}, "ERR stopped"},
		{Releasing, []*Answer{no, no, no, stop, stop}, ""},
		{Releasing, []*Answer{no, stop, yes}, "ERR stopped"},
		{Extending, []*Answer{no, stop, nil}, "ERR stopped"},
		{Extending, []*Answer{no, no, stop}, ""},
		{Extending, []*Answer{integer(0, ""), integer(0, ""), stop, nil, nil}, "ERR stopped"},
		{Taking, []*Answer{no, no, stop, nil, nil}, ""},
	} {
		rule := Rule{Merge: c.merge, Granted: positive}
		got, ok := counted(rule, c.answers...).Refusal()
		if !ok || got.Text != c.want {
			t.Errorf("%v of %v: %+v, not %q", c.merge, c.answers, got, c.want)
		}
	}
}

func TestWhatIsPutBack(t *testing.T) {
	taking := Rule{Merge: Taking, Granted: isNil, Field: "me"}
	one, two, refused := none("1"), none("2"), integer(5, "")
	did := func(reply int64, effects ...Effect) *Answer {
		a := integer(reply, "")
		a.Effects = effects
		return a
	}
	made, other := Effect{Name: "k", Kind: Created, Digest: "x"}, Effect{Name: "k", Kind: Created, Digest: "y"}
	edited, otherwise := Effect{Name: "k", Kind: Changed, Digest: "x"}, Effect{Name: "k", Kind: Changed, Digest: "y"}
	for _, c := range []struct {
		name    string
		rule    Rule
		answers []*Answer
		decided rules.Decision
		want    []bool
	}{
		{"a lost attempt", taking, []*Answer{one, refused, refused}, rules.Lost, []bool{true, false, false}},
		{"a won one", taking, []*Answer{one, one, refused}, rules.Won, []bool{false, false, false}},
		{"who is ahead of the quorum", taking, []*Answer{one, one, two}, rules.Won, []bool{false, false, true}},
		{"no quorum", taking, []*Answer{one, nil, nil}, rules.Unanswered, []bool{true, false, false}},
		{"who does not agree", Rule{}, []*Answer{did(1, made), did(1, made), did(2, edited)}, rules.Won, []bool{false, false, true}},
		{"who took the same, and told another thing", Rule{}, []*Answer{did(1, made), did(1, made), did(2, made)}, rules.Won, []bool{false, false, false}},
		{"who took another", Rule{}, []*Answer{did(1, made), did(1, made), did(2, other)}, rules.Won, []bool{false, false, true}},
		{"who changed what was not alike", Rule{}, []*Answer{did(1, edited), did(1, edited), did(2, otherwise)}, rules.Won, []bool{false, false, false}},
		{"who did nothing, and told another thing", Rule{}, []*Answer{did(1), did(1), did(2, edited)}, rules.Won, []bool{false, false, true}},
		{"all if none agree", Rule{}, []*Answer{did(1, made), did(7, made), did(5, made)}, rules.Lost, []bool{true, true, true}},
		{"extensions stay", Rule{Merge: Extending, Granted: positive}, []*Answer{refused, one, one}, rules.Lost, []bool{false, false, false}},
	} {
		count := counted(c.rule, c.answers...)
		count.classify()
		for i, a := range c.answers {
			if a != nil && count.IsWrong(a, c.decided) != c.want[i] {
				t.Errorf("%s: master %d is put back: %v", c.name, i, !c.want[i])
			}
		}
	}
}

// A vote that comes after the decision changes neither who agrees nor what they agree on.
func TestWhoAgreesButForClocksIsSettledWithTheDecision(t *testing.T) {
	short, long := told(29_990), told(29_993)
	c := counted(Rule{}, short, long, nil)
	if d := c.Decide(rules.Tally{Masters: 3, Granted: 2}); d != rules.Won {
		t.Fatalf("decided %v", d)
	}
	c.Answers[2] = long
	for i, a := range c.Answers {
		if c.IsWrong(a, rules.Won) {
			t.Errorf("master %d is put back", i)
		}
	}
	if got := c.Reply(); got.Int != 29_993 {
		t.Errorf("got %+v, want what two of three say at least", got)
	}
	c.Answers[2] = nil
	if got := c.Reply(); got.Int != 29_990 {
		t.Errorf("got %+v, want what two of two say at least", got)
	}
}

func TestATTLIsTheShortestThatAQuorumSet(t *testing.T) {
	set := func(field string, ms ...time.Duration) *Answer {
		a := none(field)
		for _, d := range ms {
			a.Effects = append(a.Effects, Effect{Kind: Created, TTL: d * time.Millisecond})
		}
		return a
	}
	c := counted(Rule{Merge: Taking, Granted: isNil, Field: "me"}, set("1", 1000, 0, 900), set("1", 950), set("2", 5))
	c.classify()
	if got := c.TTL(Giving{4 * time.Millisecond, 100 * time.Millisecond}); got != 900*time.Millisecond {
		t.Errorf("got %v", got)
	}
	changes := set("1", 1000, 3)
	c = counted(Rule{}, changes, changes, changes)
	c.classify()
	if got := c.TTL(Giving{4 * time.Millisecond, 100 * time.Millisecond}); got != 3*time.Millisecond {
		t.Errorf("what it took is there for %v", got)
	}
	changes.Effects[1].Kind = Expiring
	if got := c.TTL(Giving{4 * time.Millisecond, 100 * time.Millisecond}); got != 1000*time.Millisecond {
		t.Errorf("what it gave up is promised: %v", got)
	}
	c = counted(Rule{Merge: Taking, Granted: func(Value) bool { return true }}, changes, changes, changes)
	if got := c.TTL(Giving{4 * time.Millisecond, 100 * time.Millisecond}); got != 3*time.Millisecond {
		t.Errorf("what it has taken again is there for %v", got)
	}
}
