package resp

import (
	"strings"

	"lockproxy/resp/wire"
)

// A usage in the table says how a command is written, in the notation of Redis's pages: [may be left out], <one | of several>, … "..." for
// repetition, and capitals for words sent as they are. From the usage come the arguments in COMMAND DOCS, which redis-cli shows during
// typing.

// arguments are a command's arguments in COMMAND DOCS: in maps, one in another.
func (cmd *command) arguments() Array {
	words := usageWords{strings.Fields(strings.NewReplacer(
		"[", " [ ", "]", " ] ", "<", " < ", ">", " > ").Replace(cmd.usage))}
	return words.alternatives("")[0]
}

// A usageWords has the words of a usage still to be read.
type usageWords struct{ left []string }

// is takes the next word, if equal to word.
func (w *usageWords) is(word string) bool {
	if len(w.left) == 0 || w.left[0] != word {
		return false
	}
	w.left = w.left[1:]
	return true
}

// alternatives reads the alternatives between bars, up to the closing bracket or the end.
func (w *usageWords) alternatives(closing string) []Array {
	all := []Array{{}}
	for len(w.left) > 0 && !w.is(closing) {
		if w.is("|") {
			all = append(all, Array{})
			continue
		}
		last := len(all) - 1
		all[last] = append(all[last], w.argument("", nil))
	}
	return all
}

// argument reads one argument. The token is the word sent before the argument.
func (w *usageWords) argument(token string, flags Set) Map {
	word := w.left[0]
	w.left = w.left[1:]
	var of []Array
	switch {
	case word == "[":
		of, flags = w.alternatives("]"), Set{Status("optional")}
	case word == "<":
		of = w.alternatives(">")
	case word == strings.ToUpper(word) && token == "":
		if len(w.left) == 0 || strings.Contains("[]>|", w.left[0]) {
			return argumentMap(wire.Lower(word), "pure-token", word, flags, nil)
		}
		return w.argument(word, flags)
	}
	if w.is("...") {
		flags = append(flags, Status("multiple"))
	}
	switch {
	case of == nil:
		return argumentMap(word, argumentType(word), token, flags, nil)
	case len(of) == 1 && len(of[0]) == 1:
		return optional(of[0][0].(Map))
	case len(of) == 1:
		return argumentMap("arguments", "block", token, flags, of[0])
	}
	choices := Array{}
	for _, choice := range of {
		if len(choice) == 1 {
			choices = append(choices, choice[0])
		} else {
			choices = append(choices, argumentMap("arguments", "block", "", nil, choice))
		}
	}
	return argumentMap("option", "oneof", token, flags, choices)
}

func argumentType(name string) string {
	switch name {
	case "key", "pattern":
		return name
	case "unix-time-seconds", "unix-time-milliseconds":
		return "unix-time"
	case "seconds", "milliseconds", "ttl-ms", "ms", "count", "fence", "start", "end", "numkeys", "numreplicas", "timeout",
		"protover", "index", "client-id":
		return "integer"
	}
	return "string"
}

func argumentMap(name, kind, token string, flags Set, of Array) Map {
	m := Map{Bulk("name"), Bulk(name), Bulk("type"), Bulk(kind)}
	if token != "" {
		m = append(m, Bulk("token"), Bulk(token))
	}
	if len(flags) > 0 {
		m = append(m, Bulk("flags"), flags)
	}
	if of != nil {
		m = append(m, Bulk("arguments"), of)
	}
	return m
}

// optional marks an argument as optional.
func optional(m Map) Map {
	for i := 0; i < len(m); i += 2 {
		if m[i] == Bulk("flags") {
			m[i+1] = append(Set{Status("optional")}, m[i+1].(Set)...)
			return m
		}
	}
	return append(m, Bulk("flags"), Set{Status("optional")})
}
