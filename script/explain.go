package script

import (
	"fmt"
	"slices"
	"strings"
)

// Explain says how a text is treated and why, line by line, for people. mayVote says which commands a script by vote
// may call. The error names the fault of the text's first line. Only masters know whether the rest of the text is Lua.
func Explain(text string, mayVote func(command string) bool, rows ...Family) ([]string, error) {
	if len(text) > textMax {
		return nil, ErrTextTooLong
	}
	s, err := understand(text, shaOf(text), newFamilies(rows))
	if err != nil {
		return nil, err
	}
	shape, ok := shapeOf(text)
	if !ok {
		shape = "none"
	}
	lines := []string{"SHA-1  " + s.SHA, "shape  " + shape}
	if library := libraries[shape]; library != "" {
		lines = append(lines, "known  as a text of "+library)
	}
	switch {
	case s.Meaning != nil && s.Family != nil:
		lines = append(lines, s.Meaning.explain()...)
		lines = append(lines, "Where it is sent with other KEYS and ARGV, it is treated by the table of families.")
		return append(lines, s.Family.explain()...), nil
	case s.Meaning != nil:
		lines = append(lines, s.Meaning.explain()...)
		return append(lines, "Where it is sent with other KEYS and ARGV, it runs by vote."), nil
	case s.Family != nil:
		return append(lines, s.Family.explain()...), nil
	}
	lines = append(lines,
		"It is not understood as an operation on one string key, and no family is known. If masters can compile it, it runs by vote:",
		"a quorum of masters must give the same reply with the same effects on its KEYS.")
	for _, name := range guardedIn(text) {
		lines = append(lines, "It will be refused where it calls "+name+", because "+guarded[name]+".")
	}
	for _, c := range commandsIn(text) {
		if !mayVote(c) {
			lines = append(lines, "It will be refused where it calls "+strings.ToUpper(c)+", which scripts by vote may not call.")
		}
	}
	return append(lines, "If it is a lock's, a row under scripts: in the configuration makes a split vote a refusal instead of an error."), nil
}

func (f *Family) explain() []string {
	line := "It is in the table of families"
	if name := f.Name(); name != "" {
		line += ": " + name
	}
	lines := []string{line + "."}
	switch f.Kind {
	case Refused:
		return append(lines, "It is refused: "+f.Why+".")
	case Agrees:
		lines = append(lines, "A quorum of masters must give the same reply with the same effects on its KEYS.")
	case Tells:
		lines = append(lines, "A quorum of masters must answer; the commonest reply counts.")
	case Asks:
		lines = append(lines, "The reply is the largest number that a quorum of masters says at least.")
	default:
		lines = append(lines, fmt.Sprintf("It is to %v a lock; a reply grants if it is: %v. A quorum must grant.", f.Kind, f.Granted))
	}
	if f.Blind {
		lines = append(lines, "It takes the lock from whoever holds it: each master is waited for, and one that it reaches later does not run it.")
	}
	if f.Holder > 0 {
		lines = append(lines, fmt.Sprintf("A quorum must agree on the field ARGV[%d] of the hash KEYS[1]: the caller's holds.", f.Holder))
	}
	if f.Permits > 0 {
		lines = append(lines, fmt.Sprintf("It is refused where ARGV[%d], how many may hold it, is not 1.", f.Permits))
	}
	if f.Queues {
		lines = append(lines, "Who is refused waits in the queue KEYS[2]: where another is first on each master, it is settled who is.")
	}
	return lines
}

func (m *Meaning) explain() []string {
	lines := []string{"It is understood, and becomes a quorum operation of lockproxy's own:"}
	for i := range m.cases {
		lines = append(lines, "  "+m.cases[i].explain())
	}
	names := [...]string{Done: "done", Extended: "extended", NotMine: "somebody else's", Absent: "nobody's"}
	replies := "  replies:"
	for r, a := range m.answers {
		if a.known {
			replies += " " + names[r] + " " + a.value.explain() + ";"
		}
	}
	return append(lines, strings.TrimSuffix(replies, ";"))
}

func (c *choice) explain() string {
	var b strings.Builder
	for _, w := range c.when {
		not := ""
		if !w.holds {
			not = "not "
		}
		fmt.Fprintf(&b, "if %s%v %s …: ", not, w.source, w.op)
	}
	fmt.Fprintf(&b, "%v %v", c.op, c.key)
	if c.token.from != nowhere {
		fmt.Fprintf(&b, ", token %v", c.token)
	}
	switch {
	case c.ttl.kind == forever:
		b.WriteString(", without a TTL")
	case c.ttl.kind == limited && c.ttl.amount.source.from != nowhere:
		fmt.Fprintf(&b, ", TTL from %v", c.ttl.amount.source)
	case c.ttl.kind == limited:
		b.WriteString(", TTL from the text")
	}
	return b.String()
}

func (v Value) explain() string {
	switch v.Kind {
	case Nil:
		return "nil"
	case Int:
		return fmt.Sprint(v.Int)
	case Status, Bulk, Error:
		return fmt.Sprintf("%q", v.Text)
	case heldValue:
		return "the value"
	case remainingMillis, remainingSeconds:
		return "the TTL"
	}
	return "an array"
}

// guarded has the functions that the wrapper of a script by vote refuses, each with the reason.
var guarded = map[string]string{
	"load":         "what that compiles is not seen",
	"loadstring":   "what that compiles is not seen",
	"getfenv":      "it looks around the wrapper that sees its calls",
	"setfenv":      "it looks around the wrapper that sees its calls",
	"getmetatable": "what is no table has one that all scripts share; of a table it may be called",
	"set_repl":     "what the script does would be kept from the append-only file",
}

// guardedIn lists the guarded functions that a text calls by name, each once.
func guardedIn(text string) []string {
	tokens, _ := tokenize(text)
	var all []string
	for i, t := range tokens {
		if t.kind != tokName || guarded[t.text] == "" {
			continue
		}
		field := i > 0 && (tokens[i-1].is(".") || tokens[i-1].is(":"))
		if field == (t.text == "set_repl") && !slices.Contains(all, t.text) {
			all = append(all, t.text)
		}
	}
	return all
}

// commandsIn lists, in lower case and each once, the commands that a text calls by a literal name.
func commandsIn(text string) []string {
	tokens, err := tokenize(text)
	if err != nil {
		return nil
	}
	var all []string
	words := normalise(tokens)
	for i := range words {
		if words[i] == "CALL" && i+3 < len(words) && words[i+1] == "(" && words[i+3] != ".." {
			all = append(all, lower(strings.Trim(words[i+2], "'")))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
