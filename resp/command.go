package resp

import (
	"slices"
	"strings"

	"lockproxy/quorum"
	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
)

// A command is a row of the command table.
type command struct {
	name    string // lower case; of a subcommand without its container's
	arity   int    // number of arguments with the name; negative: the least number, and no largest
	flags   flags
	keys    keySpec
	group   string
	since   string
	usage   string // of its arguments (usage.go)
	summary string
	run     func(*call) Reply
	plan    planner // the command's part in a transaction; nil: none
	brief   bool    // plan needs no key's value, and changes no value
	subs    []*command

	full string // "client|id"; set by the table
}

// A table finds commands by name.
type table struct {
	rows   []*command
	byName map[string]*command
}

func newTable(rows []*command) *table {
	t := &table{rows: rows, byName: map[string]*command{}}
	for _, cmd := range rows {
		cmd.full = cmd.name
		t.byName[cmd.name] = cmd
		for _, sub := range cmd.subs {
			sub.full = cmd.name + "|" + sub.name
			sub.group = cmd.group
		}
	}
	return t
}

// find looks a name up in any case. find returns nil for an unknown name.
func (t *table) find(name string) *command { return upstream.Lookup(t.byName, name) }

// row returns the row meant by the arguments: for a container, the subcommand's, nil if unknown.
func (cmd *command) row(args []string) *command {
	if cmd != nil && len(cmd.subs) > 0 && len(args) > 1 {
		return cmd.sub(args[1])
	}
	return cmd
}

// sub returns the named subcommand, or nil.
func (cmd *command) sub(name string) *command {
	for _, sub := range cmd.subs {
		if wire.EqualFold(sub.name, name) {
			return sub
		}
	}
	return nil
}

func (cmd *command) accepts(n int) bool {
	return n == cmd.arity || cmd.arity < 0 && n >= -cmd.arity
}

// flags are a command's properties, in the order and by the names of COMMAND, which has no names for the last four.
type flags uint32

const (
	write flags = 1 << iota
	readOnly
	denyOOM
	admin
	pubSub
	noScript
	loading
	stale
	skipMonitor
	skipSlowlog
	fast
	noAuth // may be sent before AUTH
	allowBusy
	noMandatoryKeys
	movableKeys
	subscribedToo // allowed to a subscribed RESP2 client
	atOnce        // not queued by a transaction
	mayQueue      // may be queued without a plan: the reply is made when queued; a message is published after EXEC
	betterThere   // answered by the upstream, which knows more; by the proxy if the upstream cannot be reached
)

var flagNames = [...]string{"write", "readonly", "denyoom", "admin", "pubsub", "noscript", "loading", "stale", "skip_monitor",
	"skip_slowlog", "fast", "no_auth", "allow_busy", "no_mandatory_keys", "movablekeys"}

func (f flags) names() Set {
	names := Set{}
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, Status(name))
		}
	}
	return names
}

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

// moreCategories are ACL categories, beside those implied by flags and group, of commands and their subcommands.
var moreCategories = map[string][]string{
	"command": {"connection"}, "readonly": {"connection"}, "readwrite": {"connection"}, "wait": {"connection"},
	"info": {"dangerous"}, "lastsave": {"admin", "dangerous"}, "role": {"admin", "dangerous"},
}

// categories are the command's ACL categories.
func (cmd *command) categories() Set {
	container, _, _ := strings.Cut(cmd.full, "|")
	more := moreCategories[container]
	set := Set{}
	add := func(name string, yes bool) {
		if yes || slices.Contains(more, name) {
			set = append(set, Status("@"+name))
		}
	}
	f, contains := cmd.flags, len(cmd.subs) > 0
	add("keyspace", cmd.group == "generic" && !cmd.keys.none())
	add("read", f&readOnly != 0 && cmd.group != "scripting")
	add("write", f&write != 0)
	add("string", cmd.group == "string")
	add("pubsub", f&pubSub != 0)
	add("hash", cmd.group == "hash")
	add("admin", f&admin != 0)
	add("fast", f&fast != 0)
	add("slow", f&fast == 0)
	add("dangerous", f&admin != 0)
	add("connection", cmd.group == "connection" && !contains)
	add("transaction", cmd.group == "transactions")
	add("scripting", cmd.group == "scripting" && !contains)
	return set
}
