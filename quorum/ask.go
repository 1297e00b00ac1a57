package quorum

import (
	"slices"
	"strconv"
	"strings"
)

// Get reads a string: the value that a quorum agrees on.
func (e *Engine) Get(key Key, done func(View)) {
	e.ask(key, []any{"GET", key.Name}, 0, func(a Asked) {
		v := View{Err: a.Err, Type: "none"}
		if text, ok := a.Reply.(string); ok {
			v.Exists, v.Type, v.Value = true, "string", text
		}
		done(v)
	})
}

// Read tells all that a quorum agrees on about a key of any type.
func (e *Engine) Read(key Key, done func(View)) {
	e.look(key.DB, []string{key.Name}, &readRound{done: func(l *readRound) { done(l.first()) }})
}

// first is the outcome of a reading of one key.
func (l *readRound) first() View {
	v := l.views[0]
	v.Err = l.err
	return v
}

// Ask sends a command that only reads to every master, and tells the answer that a quorum gives. So a question about
// part of a key, as one field of a hash, has an answer even where the masters differ in the rest.
func (e *Engine) Ask(req AskRequest, done func(Asked)) {
	args := append(make([]any, 0, len(req.Command)), req.Command[0])
	for _, arg := range req.Command[1:] {
		args = append(args, arg)
	}
	e.begin(&askRound{unordered: req.Unordered, part: req.Part, done: done}, req.Key, args)
}

// ask is Ask with the command as it is sent. The answer is the value of a key, or a list.
func (e *Engine) ask(key Key, args []any, unordered int, done func(Asked)) {
	e.begin(&askRound{unordered: unordered, done: done}, key, args)
}

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

// wrongKind stands for the type of a key if a master says only that the command is for another type.
const wrongKind = "wrong type"

func (*askRound) reads() bool { return true }

func (a *askRound) read(en *entry) ballot {
	answer := opinion{exists: !isBlank(en.Reply) && !(a.part && en.Reply == ""), kind: "answer"}
	if en.Err != nil { // a wrong type is an answer, too
		if is := readError(en.Err); is.vote == Failed {
			return is
		}
		answer.exists, answer.kind = true, wrongKind
	} else if text, ok := en.Reply.(string); ok {
		answer.kind, answer.value = "text", text
	} else {
		answer.value = a.canonical(en.Reply)
	}
	return a.hear(en, sighting{opinion: answer})
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

func (a *askRound) ended(d Decision) {
	switch {
	case d == Unanswered:
		a.done(Asked{Err: a.failure()})
	case d == Won && a.agreed.kind == wrongKind:
		a.done(Asked{Err: ErrWrongType, Exists: true})
	case d == Won:
		a.done(Asked{Exists: a.agreed.exists, Reply: a.reply()})
	default:
		a.done(Asked{})
	}
}

// reply returns what was agreed on as the first master gave it.
func (a *askRound) reply() any {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := slices.IndexFunc(a.told, func(s sighting) bool { return s.opinion == a.agreed })
	return a.entries[a.told[first].master].Reply
}
