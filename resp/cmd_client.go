package resp

import (
	"errors"
	"strings"

	"lockproxy/resp/wire"
)

var errReplyOff = errors.New("ERR lockproxy answers every command: CLIENT REPLY OFF and SKIP are refused, and the connection ends")

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

// runClientReply refuses to leave commands without a reply, and ends the connection: a client that does not expect the error would take
// each later reply for the reply to another command.
func runClientReply(c *call) Reply {
	switch wire.Lower(c.args[2]) {
	case "on":
		return okReply
	case "off", "skip":
		c.session.refuse(errReplyOff)
		return nil
	}
	return errSyntax
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

// Client side caching. No one master knows all changes of a value that a quorum holds, so the proxy cannot say when a cached reply is out
// of date, and a client may cache nothing. rueidis demands CLIENT TRACKING ON OPTIN when it connects, whether the application caches or
// not, so this mode is accepted. In this mode a client announces each reply that it is going to cache, by CLIENT CACHING YES. The proxy
// refuses that, and the command behind it, too: a client that does not look at the first error caches the reply to the second command.
// All other modes are refused, because in these a client caches without a word.

const (
	errTracking = Error("ERR lockproxy supports CLIENT TRACKING only as ON OPTIN, over RESP3; disable client side caching in the client")
	errCaching  = Error("ERR lockproxy has no client side caching: CLIENT CACHING YES is refused, and so is the next command; " +
		"disable client side caching in the client")
)

func runClientTracking(c *call) Reply {
	switch mode := wire.Lower(strings.Join(c.args[2:], " ")); {
	case mode == "off", c.session.identity.resp3 && (mode == "on optin" || mode == "on optin noloop" || mode == "on noloop optin"):
		return okReply
	}
	return errTracking
}

func runClientCaching(c *call) Reply {
	c.session.caching = !wire.EqualFold(c.args[2], "no")
	return errCaching
}
