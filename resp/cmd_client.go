package resp

import (
	"strings"

	"lockproxy/resp/wire"
)

func runClientID(c *call) Reply { return Int(c.session.id) }

func runClientSetName(c *call) Reply {
	if refused := c.session.identity.setName(c.args[2], &c.session.memory); refused != nil {
		return refused
	}
	return okReply
}

func runClientGetName(c *call) Reply {
	if c.session.identity.name == "" {
		return Null{}
	}
	return Bulk(c.session.identity.name)
}

// runClientSetInfo accepts the same names and values as Redis 7.2.
func runClientSetInfo(c *call) Reply {
	name := wire.Lower(c.args[2])
	switch {
	case name != "lib-name" && name != "lib-ver":
		return Error("ERR Unrecognized option '" + c.args[2] + "'")
	case !validName(c.args[3]):
		return Error("ERR " + name + " cannot contain spaces, newlines or special characters.")
	}
	c.session.identity.setLibrary(name, c.args[3])
	return okReply
}

func runClientInfo(c *call) Reply { return Verbatim("txt" + c.session.describe()) }

// runOnOff accepts a switch without effect on the proxy.
func runOnOff(c *call) Reply {
	if !wire.EqualFold(c.args[2], "on") && !wire.EqualFold(c.args[2], "off") {
		return errSyntax
	}
	return okReply
}

// muting is the effect of CLIENT REPLY.
type muting struct {
	off     bool
	skip    int  // commands still without a reply, with the current command
	current bool // the command being run gets none
}

// advance is called between commands.
func (m *muting) advance() {
	if m.skip > 0 {
		m.skip--
	}
	m.current = m.off || m.skip > 0
}

func runClientReply(c *call) Reply {
	m := &c.session.mute
	switch wire.Lower(c.args[2]) {
	case "on":
		*m = muting{}
	case "off":
		*m = muting{off: true, current: true}
	case "skip":
		if !m.off {
			*m = muting{skip: 2, current: true}
		}
	default:
		return errSyntax
	}
	return okReply
}

func runClientList(c *call) Reply {
	selected, refused := parseClientList(c.args[2:])
	if refused != nil {
		return refused
	}
	var b strings.Builder
	for _, s := range c.server.sessions.there() {
		if selected(s) {
			b.WriteString(s.describe())
		}
	}
	return Verbatim("txt" + b.String())
}

func parseClientList(args []string) (func(*session) bool, Reply) {
	switch {
	case len(args) == 0:
		return func(*session) bool { return true }, nil
	case len(args) == 2 && wire.EqualFold(args[0], "type"):
		return byType(args[1])
	case len(args) > 1 && wire.EqualFold(args[0], "id"):
		wanted := map[int64]bool{}
		for _, arg := range args[1:] {
			id, ok := wire.ParseInt(arg)
			if !ok {
				return nil, Error("ERR Invalid client ID")
			}
			wanted[id] = true
		}
		return func(s *session) bool { return wanted[s.id] }, nil
	}
	return nil, errSyntax
}

// byType selects the sessions with subscriptions, the sessions without, or none.
func byType(name string) (func(*session) bool, Reply) {
	switch wire.Lower(name) {
	case "normal":
		return func(s *session) bool { return !s.subscriptions.any() }, nil
	case "pubsub":
		return func(s *session) bool { return s.subscriptions.any() }, nil
	case "master", "replica", "slave":
		return func(*session) bool { return false }, nil
	}
	return nil, Error("ERR Unknown client type '" + cString(name) + "'")
}

func runClientKill(c *call) Reply {
	filters := c.args[2:]
	if len(filters) == 1 {
		filters = []string{"addr", filters[0], "skipme", "no"}
	}
	selected, refused := parseClientKill(c, filters)
	if refused != nil {
		return refused
	}
	killed, self := 0, false
	for _, s := range c.server.sessions.there() {
		if !selected(s) {
			continue
		}
		killed++
		if s == c.session {
			self = true
			continue
		}
		s.kill("CLIENT KILL")
	}
	var reply Reply = Int(killed)
	if len(c.args) == 3 {
		reply = okReply
		if killed == 0 {
			reply = Error("ERR No such client")
		}
	}
	if self {
		c.session.answer(reply)
		c.session.stop("CLIENT KILL")
		return nil
	}
	return reply
}

func parseClientKill(c *call, args []string) (func(*session) bool, Reply) {
	filters := []func(*session) bool{}
	skipMe := true
	for i := 0; i < len(args); i += 2 {
		if i+1 == len(args) {
			return nil, errSyntax
		}
		value := strings.Clone(args[i+1])
		switch wire.Lower(args[i]) {
		case "id":
			id, ok := wire.ParseInt(value)
			if !ok || id < 1 {
				return nil, Error("ERR client-id should be greater than 0")
			}
			filters = append(filters, func(s *session) bool { return s.id == id })
		case "type":
			f, refused := byType(value)
			if refused != nil {
				return nil, refused
			}
			filters = append(filters, f)
		case "addr":
			filters = append(filters, func(s *session) bool { return s.addr() == value })
		case "laddr":
			filters = append(filters, func(s *session) bool { return s.conn.LocalAddr().String() == value })
		case "user":
			if value != defaultUser && !hasUser(c.server.cfg.Users, value) {
				return nil, Error("ERR No such user '" + cString(value) + "'")
			}
			filters = append(filters, func(s *session) bool { return s.identity.isUser(value) })
		case "skipme":
			switch wire.Lower(value) {
			case "yes":
				skipMe = true
			case "no":
				skipMe = false
			default:
				return nil, errSyntax
			}
		default:
			return nil, errSyntax
		}
	}
	return func(s *session) bool {
		for _, f := range filters {
			if !f(s) {
				return false
			}
		}
		return !skipMe || s != c.session
	}, nil
}
