package quorum

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
)

// An answer is what one master's run of a script came to.
type answer struct {
	value   Value
	encoded string    // the reply as its client sees it: two replies are the same if this is
	common  string    // the reply without what clocks told, if they told something
	clocks  []float64 // what they told
	field   string    // what KEYS[1] held in Rule.Field afterwards
	effects []effect  // by name: the keys that are not as they were

	// As Rule.judge finds, once, when the answer comes.
	vote rules.Vote
	did  string // what the script did, in a form that can be compared
}

// An effect is what a script did to one key.
type effect struct {
	name   string
	kind   effectKind
	ttl    time.Duration // that it set, as the client counts; 0 if it set none
	ends   string        // the expiry that it left, ms on the master's clock
	digest string        // the value that it left, or deleted, as DUMP has it, if that is short, else its SHA-1
	before string        // the value before, as DUMP has it; empty if there was none
	was    string        // the expiry before
}

// An effectKind is what became of a key.
type effectKind byte

// The effects of a script.
const (
	created  effectKind = 'c'
	changed  effectKind = 'm'
	expiring effectKind = 'e' // only its expiry is another
	deleted  effectKind = 'd'
)

func (k effectKind) String() string {
	switch k {
	case created:
		return "created"
	case changed:
		return "changed"
	case expiring:
		return "changed the expiry of"
	}
	return "deleted"
}

// effectFields is how many fields the wrapper sends for each effect.
const effectFields = 7

// parseAnswer reads the reply of the wrapper of s. An error means that it is none.
func parseAnswer(c *masters.Call, s *Script) (*answer, error) {
	list, ok := c.Reply.([]any)
	if !ok || len(list) < 2 || (len(list)-2)%effectFields != 0 {
		return nil, errEncoding
	}
	fields := make([]string, len(list))
	for i, x := range list {
		switch x := x.(type) {
		case string:
			fields[i] = x
		case int64:
			fields[i] = strconv.FormatInt(x, 10)
		default:
			return nil, errEncoding
		}
	}
	a := &answer{encoded: fields[0], field: fields[1]}
	err := a.readSeen()
	if err != nil {
		return nil, err
	}
	if a.value, err = decodeValue(a.encoded, s); err != nil {
		return nil, err
	}
	for f := fields[2:]; len(f) > 0; f = f[effectFields:] {
		ttl, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil || len(f[1]) != 1 {
			return nil, errEncoding
		}
		a.effects = append(a.effects, effect{
			name: f[0], kind: effectKind(f[1][0]), ttl: time.Duration(ttl) * time.Millisecond,
			ends: f[3], digest: f[4], before: f[5], was: f[6],
		})
	}
	slices.SortFunc(a.effects, func(x, y effect) int { return strings.Compare(x.name, y.name) })
	return a, nil
}

// summary says what the script did, in a form that can be compared.
func (a *answer) summary() string {
	if len(a.effects) == 0 {
		return ""
	}
	var b strings.Builder
	for _, e := range a.effects {
		fmt.Fprintf(&b, "%c%d:%s", e.kind, len(e.name), e.name)
	}
	return b.String()
}

// ttl returns the shortest TTL that the script set and that it does not give up, 0 if there is none. See giving.
func (a *answer) ttl(gives giving) time.Duration {
	least := time.Duration(0)
	for _, e := range a.effects {
		if e.ttl > 0 && !gives.up(&e) && (least == 0 || e.ttl < least) {
			least = e.ttl
		}
	}
	return least
}

// A giving tells which keys a script gives up, as edited.givesUp has it: those that were there and got less than least, or less than
// was left and no more than round. The zero giving gives up none.
type giving struct{ least, round time.Duration }

func (g giving) up(e *effect) bool {
	//mutant: a script's extension by little is not promised
	return e.kind != created && (e.ttl < g.least || e.ttl <= g.round && e.isSooner())
}

// signature returns the signature of the key as a script has left it, or as it was when the script deleted it: the content signs it.
func (e *effect) signature() signature { return signature{name: e.name, dump: e.digest} }

// isSooner says that the key is to expire sooner than before.
func (e *effect) isSooner() bool {
	was, err1 := strconv.ParseInt(e.was, 10, 64)
	is, err2 := strconv.ParseInt(e.ends, 10, 64)
	return err1 == nil && err2 == nil && is > 0 && (was < 0 || is < was)
}

func (a *answer) creates() bool {
	return slices.ContainsFunc(a.effects, func(e effect) bool { return e.kind == created })
}

// createdAs says that each key that was created holds what it does after another answer that did the same.
func (a *answer) createdAs(other *answer) bool {
	for i := range a.effects {
		if a.effects[i].kind == created && a.effects[i].digest != other.effects[i].digest {
			return false
		}
	}
	return true
}

func (a *answer) touches(key string) bool {
	return slices.ContainsFunc(a.effects, func(e effect) bool { return e.name == key })
}

// describe is for the error that says how masters disagree. It names no value of a key.
func (a *answer) describe() string {
	text := "answered " + a.value.describe()
	for i, e := range a.effects {
		if i == 2 {
			return text + " …"
		}
		text += fmt.Sprintf(" and %v %.40q", e.kind, e.name)
	}
	return text
}

func (v Value) describe() string {
	switch v.Kind {
	case NilValue:
		return "nil"
	case IntValue:
		return strconv.FormatInt(v.Int, 10)
	case StatusValue, ErrorValue:
		return fmt.Sprintf("%.60q", v.Text)
	case ArrayValue, SetValue, MapValue:
		return fmt.Sprintf("%d items", v.Int)
	}
	return "a value"
}

// isError says that the script could not be run, or not to its end.
func (a *answer) isError() bool { return a.value.Kind == ErrorValue }
