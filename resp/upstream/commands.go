package upstream

import "strings"

// Commands says of each command of the server which of its arguments are keys, as the server's COMMAND tells. Of a nil one no
// command is known.
type Commands struct{ byName map[string]*command }

type command struct {
	name              string
	arity             int // of arguments with the name; negative: at least that many
	first, last, step int
	movable           bool // where its keys are depends on other arguments
	stateless         bool // see Commands.Stateless
	mayWait           bool // see Commands.MayWait
	mayChange         bool // see Commands.MayChange
	subs              map[string]*command
}

// Keys returns the arguments that are keys. If they are not exactly known, they are among those that it returns.
func (c *Commands) Keys(args []string) (names []string, exact bool) {
	cmd := c.find(args)
	switch {
	case cmd == nil:
		return nil, true
	case cmd.movable:
		return args[1:], false
	case cmd.first <= 0 || cmd.step <= 0:
		return nil, true
	}
	last := cmd.last
	if last < 0 {
		last += len(args)
	}
	for i := cmd.first; i <= last && i < len(args); i += cmd.step {
		names = append(names, args[i])
	}
	return names, true
}

// Name returns the command's name as the server writes it, nil if it has none such.
func (c *Commands) Name(args []string) *string {
	if cmd := c.find(args); cmd != nil {
		return &cmd.name
	}
	return nil
}

// Accepts says whether the server has such a command, and it may have so many arguments.
func (c *Commands) Accepts(args []string) bool {
	cmd := c.find(args)
	return cmd != nil && (len(args) == cmd.arity || cmd.arity < 0 && len(args) >= -cmd.arity)
}

// Has says whether the server has a command of that name.
func (c *Commands) Has(name string) bool { return lookup(c.byName, name) != nil }

// find returns the row of a command or of its subcommand, nil if there is none.
func (c *Commands) find(args []string) *command {
	if c == nil {
		return nil
	}
	cmd := lookup(c.byName, args[0])
	if cmd != nil && len(cmd.subs) > 0 && len(args) > 1 {
		if sub := lookup(cmd.subs, args[1]); sub != nil {
			cmd = sub
		}
	}
	return cmd
}

// nameMax is longer than any command's name.
const nameMax = 64

// lookup finds a name in any case, without allocating.
func lookup(rows map[string]*command, name string) *command {
	if len(name) > nameMax {
		return nil
	}
	var buf [nameMax]byte
	for i := range len(name) {
		b := name[i]
		if b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		buf[i] = b
	}
	return rows[string(buf[:len(name)])]
}

// Stateless says whether it makes no difference which connection the command comes over, and whether it is answered
// without waiting: true of those that a script may call, too, and that have keys at fixed places, and of some that are
// known by name. Modules' commands may be anything.
func (c *Commands) Stateless(args []string) bool {
	cmd := c.find(args)
	return cmd != nil && cmd.stateless
}

// MayWait says whether the command may wait for something that somebody else does. Modules' commands may be anything.
func (c *Commands) MayWait(args []string) bool {
	cmd := c.find(args)
	return cmd == nil || cmd.mayWait
}

// MayChange says whether the command may change something that others see. Modules' commands may be anything.
func (c *Commands) MayChange(args []string) bool {
	cmd := c.find(args)
	return cmd != nil && cmd.mayChange
}

// statelessByName are commands without keys that clients send often, some of them before anything else.
var statelessByName = map[string]bool{
	"command": true, "config": true, "dbsize": true, "info": true, "keys": true, "lastsave": true, "publish": true,
	"pubsub": true, "randomkey": true, "scan": true, "spublish": true,
}

// withState are flags of commands that may change what the server knows of a connection, or wait.
var withState = map[string]bool{"admin": true, "blocking": true, "module": true, "movablekeys": true, "noscript": true, "pubsub": true}

// mayWaitByName are commands that may wait, of servers older than Redis 7, whose COMMAND does not tell.
var mayWaitByName = []string{"blmove", "blpop", "brpop", "brpoplpush", "bzpopmax", "bzpopmin", "wait", "xread", "xreadgroup"}

// parseCommands reads the reply of COMMAND: since Redis 7 a command has ten fields, the last of them its subcommands.
func parseCommands(reply any) *Commands {
	list, _ := reply.([]any)
	c := &Commands{byName: parseRows(list)}
	for name := range statelessByName {
		if cmd := c.byName[name]; cmd != nil {
			cmd.stateless = true
			for _, sub := range cmd.subs {
				sub.stateless = true
			}
		}
	}
	for _, name := range mayWaitByName {
		if cmd := c.byName[name]; cmd != nil {
			cmd.mayWait = true
		}
	}
	return c
}

func parseRows(list []any) map[string]*command {
	rows := make(map[string]*command, len(list))
	for _, item := range list {
		fields, _ := item.([]any)
		if len(fields) < 6 {
			continue
		}
		name, _ := fields[0].(string)
		full := name
		if _, sub, ok := strings.Cut(name, "|"); ok {
			name = sub
		}
		row := &command{name: full, arity: number(fields[1]), first: number(fields[3]), last: number(fields[4]), step: number(fields[5])}
		row.stateless = row.first > 0
		flags, _ := fields[2].([]any)
		for _, flag := range flags {
			name, _ := flag.(string)
			row.movable = row.movable || name == "movablekeys"
			row.stateless = row.stateless && !withState[name]
			row.mayWait = row.mayWait || name == "blocking" || name == "module"
			row.mayChange = row.mayChange || name == "write" || name == "may_replicate"
		}
		if len(fields) >= 10 {
			subs, _ := fields[9].([]any)
			row.subs = parseRows(subs)
		}
		rows[strings.ToLower(name)] = row
	}
	return rows
}

func number(v any) int {
	n, _ := v.(int64)
	return int(n)
}
