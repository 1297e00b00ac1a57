package resp

import (
	"lockproxy/quorum"
	"lockproxy/resp/wire"
)

// A keySpec says which arguments are keys: from first to last, in steps; a negative last counts from the end. If numkeys is set, the
// argument at numkeys says how many keys follow. The zero keySpec is of a command without keys.
type keySpec struct{ first, last, step, numkeys int }

// Where commands have their keys.
var (
	oneKey     = keySpec{first: 1, last: 1, step: 1}
	secondKey  = keySpec{first: 2, last: 2, step: 1}
	allKeys    = keySpec{first: 1, last: -1, step: 1}
	everyOther = keySpec{first: 1, last: -1, step: 2}
	scriptKeys = keySpec{numkeys: 2}
)

// none says that the command has no keys.
func (k keySpec) none() bool { return k == keySpec{} }

// of returns the keys among the arguments: none if numkeys is no valid number.
func (k keySpec) of(args []string) []string {
	first, last, step := k.span(args)
	var names []string
	for i := first; i <= last; i += step {
		names = append(names, args[i])
	}
	return names
}

// reserved returns the first reserved key among the arguments, or "".
func (k keySpec) reserved(args []string) string {
	first, last, step := k.span(args)
	for i := first; i <= last; i += step {
		if quorum.Reserved(args[i]) {
			return args[i]
		}
	}
	return ""
}

// span returns the places of the first and the last key, and the step between keys; no keys if last is before first.
func (k keySpec) span(args []string) (first, last, step int) {
	switch {
	case k.numkeys > 0:
		n, ok := wire.ParseInt(args[k.numkeys])
		if !ok || n < 0 || n > int64(len(args)-1-k.numkeys) {
			return 0, -1, 1
		}
		return k.numkeys + 1, k.numkeys + int(n), 1
	case k.first == 0:
		return 0, -1, 1
	case k.last < 0:
		return k.first, k.last + len(args), k.step
	}
	return k.first, k.last, k.step
}

// untold says that the keys cannot be told, because numkeys is no valid number.
func (k keySpec) untold(args []string) bool {
	first, _, _ := k.span(args)
	return k.numkeys > 0 && first == 0
}
