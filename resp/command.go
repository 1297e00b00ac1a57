package resp

import (
	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
)

// A command is a row of the command table.
type command struct {
	name    string // lower case; of a subcommand without its container's
	arity   int    // number of arguments with the name; negative: the least number
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
