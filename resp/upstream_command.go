package resp

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"lockproxy/resp/upstream"
)

// COMMAND where there is an upstream: it lists what the upstream has, and what only this proxy has.

// onlyOurs returns the rows of the table that the upstream does not have.
func (s *Server) onlyOurs() []*command {
	known := s.commandsThere()
	if known == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.commands.rows), func(cmd *command) bool { return known.Has(cmd.name) })
}

// onlyOursNamed returns for each name its row, if only this proxy has that command, else nil; and whether some, or all, have one.
func (s *Server) onlyOursNamed(names []string) (rows []*command, some, all bool) {
	own := s.onlyOurs()
	all = true
	for _, name := range names {
		row := s.commands.find(name)
		if !slices.Contains(own, row) {
			row = nil
		}
		rows, some, all = append(rows, row), some || row != nil, all && row != nil
	}
	return rows, some, all
}

// askCommands asks the upstream for its commands and adds ours. It returns nil if the upstream's reply needs no addition, or if
// here says that only this proxy knows what is asked for. row is COMMAND or its subcommand, nil if there is no such subcommand.
func (c *call) askCommands(row *command) (reply Reply, here bool) {
	if row == nil {
		return nil, false
	}
	resp3 := c.resp3
	var edit func(reply []byte) []byte
	switch name := row.name; name {
	case "command":
		edit = c.addInfo()
	case "count":
		edit = func(reply []byte) []byte { return addCount(reply, len(c.server.onlyOurs())) }
	case "list":
		keep, refused := parseCommandFilter(c.args)
		if refused != nil {
			return nil, false
		}
		var names []byte
		n := 0
		for _, each := range listCommands(c.server.onlyOurs(), keep) {
			names, n = each.appendTo(names, resp3), n+1
		}
		edit = func(reply []byte) []byte { return addItems(reply, n, names) }
	case "getkeys":
		_, _, all := c.server.onlyOursNamed(c.args[2:min(3, len(c.args))])
		return nil, all && len(c.args) > 2
	case "info", "docs":
		if len(c.args) == 2 && name == "info" {
			edit = c.addInfo()
			break
		}
		rows, some, all := c.server.onlyOursNamed(c.args[2:])
		if all && len(rows) > 0 {
			return nil, true
		}
		if len(rows) > 0 && !some {
			return nil, false
		}
		if name == "info" {
			edit = func(reply []byte) []byte { return fillNulls(reply, rows, resp3) }
			break
		}
		if len(rows) == 0 {
			rows = c.server.onlyOurs()
		}
		edit = addDocs(rows, resp3)
	default:
		return nil, false
	}
	return c.askThere(func(reply []byte) Reply { return Raw(edit(reply)) }, c.args...), false
}

// addInfo adds the entries of our commands to those of the upstream.
func (c *call) addInfo() func([]byte) []byte {
	own := c.server.onlyOurs()
	var b []byte
	for _, cmd := range own {
		b = cmd.info().appendTo(b, c.resp3)
	}
	return func(reply []byte) []byte { return addItems(reply, len(own), b) }
}

func addDocs(rows []*command, resp3 bool) func([]byte) []byte {
	var b []byte
	n := 0
	for _, cmd := range rows {
		if cmd != nil {
			b = Sequence{Bulk(cmd.full), cmd.docs()}.appendTo(b, resp3)
			n++
		}
	}
	if !resp3 {
		n *= 2
	}
	return func(reply []byte) []byte { return addItems(reply, n, b) }
}

// addItems makes an aggregate longer by n items. Whatever else the upstream replied stays as it is.
func addItems(reply []byte, n int, items []byte) []byte {
	head, rest, _ := bytes.Cut(reply, []byte("\r\n"))
	if len(head) < 2 || strings.IndexByte("*~%", head[0]) < 0 {
		return reply
	}
	had, err := strconv.Atoi(string(head[1:]))
	if err != nil || had < 0 {
		return reply
	}
	b := upstream.AppendHeader(nil, head[0], had+n)
	return append(append(b, rest...), items...)
}

// addCount adds n to a number.
func addCount(reply []byte, n int) []byte {
	if had, err := strconv.Atoi(string(bytes.TrimSpace(reply[1:]))); err == nil && reply[0] == ':' {
		return Int(had+n).appendTo(nil, false)
	}
	return reply
}

// fillNulls puts our rows where the upstream says that it has none of that name.
func fillNulls(reply []byte, rows []*command, resp3 bool) []byte {
	head, items := splitItems(reply)
	if len(items) != len(rows) {
		return reply
	}
	b := append([]byte(nil), head...)
	for i, item := range items {
		if isNull := item[0] == '_' || item[1] == '-'; isNull && rows[i] != nil {
			b = rows[i].info().appendTo(b, resp3)
		} else {
			b = append(b, item...)
		}
	}
	return b
}

// splitItems returns the header of an array, and its items, each with the messages before it; no items if it is anything else.
func splitItems(reply []byte) (head []byte, items [][]byte) {
	end := bytes.IndexByte(reply, '\n') + 1
	if reply[0] != '*' {
		return reply, nil
	}
	var f upstream.Framer
	for rest := reply[end:]; len(rest) > 0; {
		before := messagesBefore(rest)
		n, ends, err := f.Next(rest[before:])
		if err != nil || !ends {
			return reply, nil
		}
		n += before
		items, rest = append(items, rest[:n]), rest[n:]
	}
	return reply[:end], items
}

// messagesBefore returns how many bytes of b are messages that come before an item: see upstream.Framer.
func messagesBefore(b []byte) (n int) {
	var f upstream.Framer
	for n < len(b) && b[n] == '>' {
		k, ends, err := f.Next(b[n:])
		if err != nil || !ends {
			return n
		}
		n += k
	}
	return n
}
