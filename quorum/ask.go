package quorum

import (
	"slices"
	"strconv"
	"strings"

	"lockproxy/quorum/rules"
)

// AskRequest is a question about one key.
type AskRequest struct {
	Key     Key
	Command []string // with the key where the command has it
	// Unordered says that the answer is a list whose parts, of so many items each, masters may give in any order.
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

// An askRound is a round that reads a key by a command. What a master tells of the key is its reply.
type askRound struct {
	round
	agreement
	unordered int
	part      bool
	done      func(Asked)
}

// ask makes the round of a command as it is sent.
func (a *askRound) ask(e *Engine, key Key, args []any) { begin(e, a, key, args) }

// anys returns the words of a command as arguments.
func anys(words []string) []any {
	args := make([]any, len(words))
	for i, word := range words {
		args[i] = word
	}
	return args
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

// isBlank says that an answer, or a part of it, rests on something not being there.
func isBlank(reply any) bool {
	if list, ok := reply.([]any); ok {
		return len(list) == 0 || slices.Contains(list, nil)
	}
	return reply == nil || reply == int64(0)
}

// canonical writes a reply so that equal ones are equal texts.
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

// reply returns what was agreed on as the first master gave it.
func (a *askRound) reply() any {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := slices.IndexFunc(a.told, func(s sighting) bool { return s.Opinion == a.agreed })
	return a.entries[a.told[first].master].Reply
}
