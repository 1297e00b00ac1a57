package quorum

import (
	"slices"
	"strconv"
	"strings"
)

// Ask sends a command that only reads to every master, and tells the answer that a quorum gives. So a question about
// part of a key, as one field of a hash, has an answer even where the masters differ in the rest.
func (e *Engine) Ask(req AskRequest, done func(Asked)) {
	a := &asking{req: req, done: done, replies: make(map[string]any)}
	args := append(make([]any, 0, len(req.Command)), req.Command[0])
	for _, arg := range req.Command[1:] {
		args = append(args, arg)
	}
	e.begin(&a.round, a, req.Key, args)
}

// AskRequest is a question about one key.
type AskRequest struct {
	Key     Key
	Command []string // with the key where the command has it
	// Unordered says that the answer is a list whose parts, of so many items each, masters may give in any order.
	Unordered int
}

// Asked is the outcome of an Ask. Reply is nil, an int64, a string or a []any of these.
type Asked struct {
	Err    error // *NoQuorum, ErrWrongType, ErrClosed
	Agreed bool  // false: no answer can have a quorum
	Reply  any
}

type asking struct {
	round
	req      AskRequest
	done     func(Asked)
	opinions []opinion // guarded by round.mu, as are replies and agreed
	replies  map[string]any
	agreed   opinion
}

const wrongKind = "wrong type"

func (a *asking) read(en *entry) (Vote, string) {
	o := opinion{exists: true, kind: "answer"}
	if en.Err != nil {
		if v, cause := ballot(en.Err); v == Failed {
			return v, cause
		}
		o.kind = wrongKind
	} else {
		o.value = a.canonical(en.Reply)
	}
	if en.proves(en.Err == nil && isBlank(en.Reply)) {
		a.opinions = append(a.opinions, o)
		if _, ok := a.replies[o.value]; !ok {
			a.replies[o.value] = en.Reply
		}
	}
	return Granted, ""
}

// isBlank says that an answer, or a part of it, rests on something not being there.
func isBlank(reply any) bool {
	if list, ok := reply.([]any); ok {
		return len(list) == 0 || slices.Contains(list, nil)
	}
	return reply == nil || reply == int64(0)
}

// canonical writes a reply so that equal ones are equal texts.
func (a *asking) canonical(reply any) string {
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
		if a.req.Unordered > 0 {
			var parts []string
			for part := range slices.Chunk(items, a.req.Unordered) {
				parts = append(parts, strings.Join(part, ""))
			}
			slices.Sort(parts)
			items = parts
		}
		return "*" + strconv.Itoa(len(r)) + " " + strings.Join(items, "")
	}
	return "-"
}

func (a *asking) decide(t Tally) Decision {
	agreed, d := decideRead(t, a.opinions)
	a.agreed = agreed
	return d
}

func (a *asking) settled(*entry) {}

func (a *asking) ended(d Decision) {
	switch {
	case d == Unanswered:
		a.done(Asked{Err: a.failure()})
	case d == Won && a.agreed.kind == wrongKind:
		a.done(Asked{Err: ErrWrongType})
	case d == Won:
		a.mu.Lock()
		reply := a.replies[a.agreed.value]
		a.mu.Unlock()
		a.done(Asked{Agreed: true, Reply: reply})
	default:
		a.done(Asked{})
	}
}
