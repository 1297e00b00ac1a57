package resp

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"lockproxy/resp/wire"
)

func runCommand(c *call) Reply {
	all := make(Array, 0, len(c.server.commands.rows))
	for _, cmd := range c.server.commands.rows {
		all = append(all, cmd.info())
	}
	return all
}

func runCommandCount(c *call) Reply { return Int(len(c.server.commands.rows)) }

func runCommandInfo(c *call) Reply {
	if len(c.args) == 2 {
		return runCommand(c)
	}
	found := make(Array, 0, len(c.args)-2)
	for _, name := range c.args[2:] {
		if cmd := c.server.commands.findFull(name); cmd != nil {
			found = append(found, cmd.info())
		} else {
			found = append(found, Null{})
		}
	}
	return found
}

// findFull finds a command or, as "container|subcommand", a subcommand.
func (t *table) findFull(name string) *command {
	name, sub, isSub := strings.Cut(name, "|")
	cmd := t.find(name)
	if cmd != nil && isSub {
		return cmd.sub(sub)
	}
	return cmd
}

// info is the command's entry in COMMAND: ten fields since Redis 7. Tips and key specifications are left empty; clients
// route by the earlier fields.
func (cmd *command) info() Reply {
	subs := Set{}
	for _, sub := range cmd.subs {
		subs = append(subs, sub.info())
	}
	return Array{
		Bulk(cmd.full), Int(cmd.arity), cmd.flags.names(),
		Int(cmd.keys.first), Int(cmd.keys.last), Int(cmd.keys.step),
		cmd.categories(), Set{}, Set{}, subs,
	}
}

func runCommandDocs(c *call) Reply {
	docs := Map{}
	if len(c.args) == 2 {
		for _, cmd := range c.server.commands.rows {
			docs = append(docs, Bulk(cmd.full), cmd.docs())
		}
	}
	for _, name := range c.args[2:] {
		if cmd := c.server.commands.findFull(name); cmd != nil {
			docs = append(docs, Bulk(cmd.full), cmd.docs())
		}
	}
	return docs
}

func (cmd *command) docs() Reply {
	doc := Map{
		Bulk("summary"), Bulk(cmd.summary),
		Bulk("since"), Bulk(cmp.Or(cmd.since, "1.0.0")),
		Bulk("group"), Bulk(cmd.group),
	}
	if arguments := cmd.arguments(); len(arguments) > 0 {
		doc = append(doc, Bulk("arguments"), arguments)
	}
	if len(cmd.subs) > 0 {
		subs := Map{}
		for _, sub := range cmd.subs {
			subs = append(subs, Bulk(sub.full), sub.docs())
		}
		doc = append(doc, Bulk("subcommands"), subs)
	}
	return doc
}

func runCommandList(c *call) Reply {
	keep, refused := parseCommandFilter(c.args)
	if refused != nil {
		return refused
	}
	names := Array{}
	for _, cmd := range c.server.commands.rows {
		for _, each := range append([]*command{cmd}, cmd.subs...) {
			if keep(each) {
				names = append(names, Bulk(each.full))
			}
		}
	}
	return names
}

func parseCommandFilter(args []string) (keep func(*command) bool, refused Reply) {
	if len(args) == 2 {
		return func(*command) bool { return true }, nil
	}
	if len(args) != 5 || !wire.EqualFold(args[2], "filterby") {
		return nil, errSyntax
	}
	switch value := wire.Lower(args[4]); wire.Lower(args[3]) {
	case "pattern":
		return func(cmd *command) bool { return wire.Match(value, cmd.full) }, nil
	case "aclcat":
		return func(cmd *command) bool { return slices.Contains(cmd.categories(), Reply(Status("@"+value))) }, nil
	case "module":
		return func(*command) bool { return false }, nil
	}
	return nil, errSyntax
}

func runCommandGetKeys(c *call) Reply {
	args := c.args[2:]
	cmd := c.server.commands.find(args[0]).row(args)
	switch {
	case cmd == nil:
		return Error("ERR Invalid command specified")
	case cmd.keys.none() || cmd.group == "pubsub": // Redis lists sharded channels as keys, but for routing only
		return Error("ERR The command has no key arguments")
	case !cmd.accepts(len(args)):
		return Error("ERR Invalid number of arguments specified for command")
	}
	if n := cmd.keys.numkeys; n > 0 {
		args = slices.Clone(args)
		args[n] = leadingInt(args[n])
	}
	names := cmd.keys.of(args)
	keys := make(Array, 0, len(names))
	for _, name := range names {
		keys = append(keys, Bulk(name))
	}
	return keys
}

// leadingInt is the number that C's atoi finds. So COMMAND GETKEYS also accepts numbers that the command itself refuses.
func leadingInt(s string) string {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	s = strings.TrimPrefix(s, "+")
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, _ := strconv.Atoi(s[:end]) // 0 if there are no digits, and the largest number if there are too many
	return strconv.Itoa(n)
}

// runHelp is HELP of any container; the errors for unknown subcommands recommend HELP. runHelp lists lockproxy's subcommands,
// in Redis's form.
func runHelp(c *call) Reply {
	container := c.server.commands.find(c.args[0])
	lines := Array{Status(wire.Upper(container.name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")}
	for _, sub := range container.subs {
		lines = append(lines, Status(wire.Upper(sub.name)), Status("    "+strings.TrimSuffix(sub.summary, ".")+"."))
	}
	return append(lines, Status("HELP"), Status("    Prints this help."))
}
