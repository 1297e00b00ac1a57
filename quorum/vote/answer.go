package vote

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockproxy/quorum/rules"
)

// An Answer is the outcome of a script on one master.
type Answer struct {
	Value   Value
	encoded string    // the reply as its client sees it: two replies are the same if this is
	common  string    // the reply without clock readings, if it has any
	clocks  []float64 // the clock readings
	Field   string    // the value of Rule.Field in KEYS[1] afterwards
	Effects []Effect  // by name: the keys that are not as they were

	// As Rule.Judge finds, once, when the answer comes.
	Vote rules.Vote
	did  string // the script's effects, in a form that can be compared
}

// An Effect is the effect of a script on one key.
type Effect struct {
	Name   string
	Kind   EffectKind
	TTL    time.Duration // that it set, as the client counts; 0 if it set none
	Ends   string        // the expiry that it left, ms on the master's clock
	Digest string        // the value that it left, or deleted, as DUMP has it, if that is short, else its SHA-1
	Before string        // the value before, as DUMP has it; empty if there was none
	Was    string        // the expiry before
}

// An EffectKind is the kind of change to a key.
type EffectKind byte

// The effects of a script.
const (
	Created  EffectKind = 'c'
	Changed  EffectKind = 'm'
	Expiring EffectKind = 'e' // only its expiry is another
	Deleted  EffectKind = 'd'
)

func (k EffectKind) String() string {
	switch k {
	case Created:
		return "created"
	case Changed:
		return "changed"
	case Expiring:
		return "changed the expiry of"
	}
	return "deleted"
}

// effectFields is how many fields the wrapper sends for each effect.
const effectFields = 7

// Parse reads the reply of the wrapper of s. An error means that the reply is not the wrapper's.
func Parse(reply any, s *Source) (*Answer, error) {
	list, ok := reply.([]any)
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
	a := &Answer{encoded: fields[0], Field: fields[1]}
	err := a.readSeen()
	if err != nil {
		return nil, err
	}
	if a.Value, err = decodeValue(a.encoded, s); err != nil {
		return nil, err
	}
	for f := fields[2:]; len(f) > 0; f = f[effectFields:] {
		ttl, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil || len(f[1]) != 1 {
			return nil, errEncoding
		}
		a.Effects = append(a.Effects, Effect{
			Name: f[0], Kind: EffectKind(f[1][0]), TTL: time.Duration(ttl) * time.Millisecond,
			Ends: f[3], Digest: f[4], Before: f[5], Was: f[6],
		})
	}
	slices.SortFunc(a.Effects, func(x, y Effect) int { return strings.Compare(x.Name, y.Name) })
	return a, nil
}

// summary returns the script's effects in a form that can be compared.
func (a *Answer) summary() string {
	if len(a.Effects) == 0 {
		return ""
	}
	var b strings.Builder
	for _, e := range a.Effects {
		fmt.Fprintf(&b, "%c%d:%s", e.Kind, len(e.Name), e.Name)
	}
	return b.String()
}

// ttl returns the shortest TTL that the script set and does not give up, 0 if there is none. See Giving.
func (a *Answer) ttl(gives Giving) time.Duration {
	least := time.Duration(0)
	for _, e := range a.Effects {
		if e.TTL > 0 && !gives.up(&e) && (least == 0 || e.TTL < least) {
			least = e.TTL
		}
	}
	return least
}

// A Giving tells which keys a script gives up, as edited.givesUp has it: existing keys whose new TTL is less than Least, or less than
// the TTL that was left and no more than Round. The zero Giving gives up none.
type Giving struct{ Least, Round time.Duration }

func (g Giving) up(e *Effect) bool {
	//mutant: a script's extension by little is not promised
	return e.Kind != Created && (e.TTL < g.Least || e.TTL <= g.Round && e.isSooner())
}

// isSooner says that the key is to expire sooner than before.
func (e *Effect) isSooner() bool {
	was, err1 := strconv.ParseInt(e.Was, 10, 64)
	is, err2 := strconv.ParseInt(e.Ends, 10, 64)
	return err1 == nil && err2 == nil && is > 0 && (was < 0 || is < was)
}

// Creates says that the script has made a key that was not there.
func (a *Answer) Creates() bool {
	return slices.ContainsFunc(a.Effects, func(e Effect) bool { return e.Kind == Created })
}

// createdAs says that each created key holds the same as after another answer with the same effects.
func (a *Answer) createdAs(other *Answer) bool {
	for i := range a.Effects {
		if a.Effects[i].Kind == Created && a.Effects[i].Digest != other.Effects[i].Digest {
			return false
		}
	}
	return true
}

// Touches says that the script has changed the key.
func (a *Answer) Touches(key string) bool {
	return slices.ContainsFunc(a.Effects, func(e Effect) bool { return e.Name == key })
}

// Describe is for the error that says how masters disagree. Describe names no value of a key.
func (a *Answer) Describe() string {
	text := "answered " + a.Value.describe()
	for i, e := range a.Effects {
		if i == 2 {
			return text + " …"
		}
		text += fmt.Sprintf(" and %v %.40q", e.Kind, e.Name)
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

// CompileError is the answer of a master that could not compile the script.
func CompileError(text string) *Answer {
	return &Answer{encoded: "-" + text, Value: Value{Kind: ErrorValue, Text: text}}
}

// IsRaised says that a command of the script raised the error that is the reply.
func (a *Answer) IsRaised() bool { return a.encoded[0] == raisedValue }

// isError says that the script could not be run, or not to its end.
func (a *Answer) isError() bool { return a.Value.Kind == ErrorValue }
