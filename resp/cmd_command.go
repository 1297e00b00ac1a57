package resp

import (
	"cmp"
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

// info is the command's entry in COMMAND: ten fields since Redis 7. ACL categories, tips and key specifications are left
// empty; clients route by the earlier fields.
func (cmd *command) info() Reply {
	subs := Set{}
	for _, sub := range cmd.subs {
		subs = append(subs, sub.info())
	}
	return Array{
		Bulk(cmd.full), Int(cmd.arity), cmd.flags.names(),
		Int(cmd.keys.first), Int(cmd.keys.last), Int(cmd.keys.step),
		Set{}, Set{}, Set{}, subs,
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
