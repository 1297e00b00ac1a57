package upstream

import "strings"

// Commands is the server's own account of its commands, by COMMAND: which arguments are keys, and more. A nil *Commands
// knows no command.
type Commands struct{ byName map[string]*command }

type command struct {
	name              string
	arity             int // number of arguments with the name; negative: at least so many
	first, last, step int
	movable           bool // where its keys are depends on other arguments
	stateless         bool // see Commands.Stateless
	mayWait           bool // see Commands.MayWait
	subs              map[string]*command
}

// Keys returns the arguments that are keys. If the keys are not exactly known, Keys returns more arguments, the keys
// among them.
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

// Name returns the command's name as the server writes it; nil if the server does not have the command.
func (c *Commands) Name(args []string) *string {
	if cmd := c.find(args); cmd != nil {
		return &cmd.name
	}
	return nil
}

// Accepts says whether the server has the command, and the command may have so many arguments.
func (c *Commands) Accepts(args []string) bool {
	cmd := c.find(args)
	return cmd != nil && (len(args) == cmd.arity || cmd.arity < 0 && len(args) >= -cmd.arity) && !c.LacksSubcommand(args)
}

// LacksSubcommand says whether the server has the command, with other subcommands than the one in args. Servers older
// than Redis 7 do not tell of subcommands.
func (c *Commands) LacksSubcommand(args []string) bool {
	cmd := c.find(args)
	return cmd != nil && len(cmd.subs) > 0 && len(args) > 1
}

// find returns the row of a command or of its subcommand, nil if there is none.
func (c *Commands) find(args []string) *command {
	if c == nil {
		return nil
	}
	cmd := Lookup(c.byName, args[0])
	if cmd != nil && len(cmd.subs) > 0 && len(args) > 1 {
		if sub := Lookup(cmd.subs, args[1]); sub != nil {
			cmd = sub
		}
	}
	return cmd
}

// nameMax is longer than any command's name.
const nameMax = 64

// Lookup finds the row of a command by its name, in any case, without allocating. Lookup returns nil if there is none.
func Lookup[row any](rows map[string]*row, name string) *row {
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

// Stateless says whether the command leaves nothing at the server but data, and is answered without waiting. Commands
// are stateless if scripts may call them and their keys are at fixed places. Some more are known by name. Commands of
// modules may do anything, and are not stateless.
func (c *Commands) Stateless(args []string) bool {
	cmd := c.find(args)
	return cmd != nil && cmd.stateless
}

// MayWait says whether the command may wait for another client's command. Commands of modules, and unknown commands,
// may.
func (c *Commands) MayWait(args []string) bool {
	cmd := c.find(args)
	return cmd == nil || cmd.mayWait
}

// statelessByName are commands without keys that clients send often, some of them first of all.
var statelessByName = map[string]bool{
	"command": true, "dbsize": true, "info": true, "keys": true, "lastsave": true, "publish": true,
	"pubsub": true, "randomkey": true, "scan": true, "spublish": true,
}

// withState are flags of commands that may leave more than data, or wait.
var withState = map[string]bool{"admin": true, "blocking": true, "module": true, "movablekeys": true, "noscript": true, "pubsub": true}

// mayWaitByName are commands that may wait, of which the COMMAND of servers older than Redis 7 does not say so.
var mayWaitByName = []string{"blmove", "blpop", "brpop", "brpoplpush", "bzpopmax", "bzpopmin", "wait", "xread", "xreadgroup"}

// parseCommands reads the reply of COMMAND: since Redis 7 a command has ten fields, with its subcommands in the last.
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
