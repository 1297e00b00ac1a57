package upstream

import "strings"

// Commands says of each command of the server which of its arguments are keys, as the server's COMMAND tells.
type Commands struct{ byName map[string]*command }

type command struct {
	first, last, step int
	movable           bool // where its keys are depends on other arguments
	subs              map[string]*command
}

// Keys returns the arguments that are keys. If they are not exactly known, they are among those that it returns.
func (c *Commands) Keys(args []string) (names []string, exact bool) {
	cmd := c.byName[strings.ToLower(args[0])]
	if cmd != nil && len(args) > 1 {
		if sub := cmd.subs[strings.ToLower(args[1])]; sub != nil {
			cmd = sub
		}
	}
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

// parseCommands reads the reply of COMMAND: since Redis 7 a command has ten fields, the last of them its subcommands.
func parseCommands(reply any) *Commands {
	list, _ := reply.([]any)
	return &Commands{byName: parseRows(list)}
}

func parseRows(list []any) map[string]*command {
	rows := make(map[string]*command, len(list))
	for _, item := range list {
		fields, _ := item.([]any)
		if len(fields) < 6 {
			continue
		}
		name, _ := fields[0].(string)
		if _, sub, ok := strings.Cut(name, "|"); ok {
			name = sub
		}
		row := &command{first: number(fields[3]), last: number(fields[4]), step: number(fields[5])}
		flags, _ := fields[2].([]any)
		for _, flag := range flags {
			if flag == "movablekeys" {
				row.movable = true
			}
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
