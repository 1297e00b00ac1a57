package resp

import "strings"

// Client side caching. A client that has sent CLIENT TRACKING ON OPTIN sends CLIENT CACHING YES before a command whose reply it is
// going to keep until it is told that a key has changed. No one master knows all changes of what a quorum holds. But a server may
// say at any time that a key has changed, and here it says so at once, behind the reply. So nothing that such a client keeps is
// ever out of date. The client has no benefit from its cache, but works unchanged.
//
// This needs a client that notes what it keeps before it looks at the push behind the reply, as rueidis does, which marks
// transactions. redis-rs marks single commands, and keeps a reply after it has seen the push, so the reply would stay. Therefore
// only MULTI may follow CLIENT CACHING YES; any other command is refused, and so are all behind it. The other modes of tracking are
// refused, too: in these a client may wait for a push before it asks again, as rueidislock does, and would ask without end.

// tracking is a session's part in it. Only the reader uses it.
type tracking struct {
	noLoop  bool
	caching bool     // the client is going to keep what follows
	refused bool     // what followed was no transaction
	keys    []string // that the transaction reads
	size    int      // of keys
	anyKey  bool     // there are more, or it is not known which
}

// trackedMax bounds the keys that a client is told, in bytes. If there are more, it is told that any key may have changed.
const trackedMax = 4 << 10

func runClientTracking(c *call) Reply {
	modes, refused := parseTrackingOptions(c.args[3:])
	noLoop, on := modes["noloop"], false
	switch {
	case refused != nil:
		return refused
	case equalFold(c.args[2], "off"):
		c.tracking = tracking{}
	case !equalFold(c.args[2], "on"):
		return errSyntax
	case !modes["optin"] || len(modes) != 1+count(noLoop) || !c.resp3:
		return Error("ERR lockproxy supports CLIENT TRACKING only as ON OPTIN, over RESP3; disable client side caching in the client")
	default:
		c.tracking.noLoop, on = noLoop, true
	}
	c.mu.Lock()
	c.tracks = on
	c.mu.Unlock()
	return okReply
}

func parseTrackingOptions(args []string) (modes map[string]bool, refused Reply) {
	modes = map[string]bool{}
	for i := 0; i < len(args); i++ {
		mode, more := lower(args[i]), i+1 < len(args)
		switch mode {
		case "redirect":
			if !more {
				return nil, errSyntax
			}
			i++
			if _, ok := parseInt(args[i]); !ok {
				return nil, errNotInt
			}
		case "prefix":
			if !more {
				return nil, errSyntax
			}
			i++
		case "bcast", "optin", "optout", "noloop":
		default:
			return nil, errSyntax
		}
		modes[mode] = true
	}
	return modes, nil
}

func runClientTrackingInfo(c *call) Reply {
	flags := Set{Bulk("off")}
	if c.tracks {
		flags = Set{Bulk("on"), Bulk("optin")}
		if c.tracking.caching {
			flags = append(flags, Bulk("caching-yes"))
		}
		if c.tracking.noLoop {
			flags = append(flags, Bulk("noloop"))
		}
	}
	return Map{Bulk("flags"), flags, Bulk("redirect"), Int(c.redirect()), Bulk("prefixes"), Array{}}
}

func runClientGetRedir(c *call) Reply { return Int(c.redirect()) }

func (s *Server) trackingClients() (n int) {
	for _, sess := range s.clients() {
		sess.mu.Lock()
		n += count(sess.tracks)
		sess.mu.Unlock()
	}
	return n
}

// redirect is where the client is told of changes: on its own connection, or not at all.
func (i *identity) redirect() int {
	if i.tracks {
		return 0
	}
	return -1
}

func runClientCaching(c *call) Reply {
	switch {
	case !c.tracks:
		return Error("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	case equalFold(c.args[2], "no"):
		return Error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	case !equalFold(c.args[2], "yes"):
		return errSyntax
	}
	c.tracking.caching = true
	return okReply
}

// uncacheable refuses a command whose reply the client is going to keep without having noted it in time, and all commands
// behind it except those about the connection.
func (c *call) uncacheable(cmd *command) Reply {
	if !c.tracks {
		return nil
	}
	t := &c.tracking
	row := cmd.row(c.args)
	switch {
	case c.transaction.open() && row != nil && row.full == "client|caching":
		return errNotInMulti(row.full)
	case c.transaction.open(), cmd != nil && cmd.group == "connection":
		return nil
	case t.caching && (cmd == nil || cmd.name != "multi"):
		t.caching, t.refused = false, true
	}
	if !t.refused {
		return nil
	}
	return Error("ERR lockproxy supports CLIENT CACHING YES only before MULTI; disable client side caching in the client")
}

// invalidate is called after each command. If that has ended a transaction whose replies the client keeps, it tells the client
// that all keys read in it may have changed.
func (c *call) invalidate() {
	t := &c.tracking
	if !t.caching {
		return
	}
	cmd := c.server.commands.find(c.args[0])
	if names, exact := c.reads(cmd); exact {
		t.note(names)
	} else {
		t.noteAny()
	}
	if c.transaction.open() || cmd != nil && cmd.name == "client" {
		return
	}
	if push := t.push(); c.resp3 && push != nil {
		c.answer(push)
	}
	c.tracking = tracking{noLoop: t.noLoop, refused: t.refused}
}

// reads returns the keys that the command, or the script that it runs, reads; exact is false if there may be others.
func (c *call) reads(cmd *command) (names []string, exact bool) {
	row := cmd.row(c.args)
	switch {
	case row != nil && row.accepts(len(c.args)) && (row.flags&readOnly != 0 || row.group == "scripting"):
		return row.keys.of(c.args), true
	case row != nil || c.server.cfg.Upstream == nil:
		return nil, true
	}
	commands, err := c.server.cfg.Upstream.Commands()
	if err != nil {
		return nil, false
	}
	if names, exact = commands.Keys(c.args); exact && commands.MayChange(c.args) {
		return nil, true
	}
	return names, exact
}

// note adds keys that were read.
func (t *tracking) note(names []string) {
	for _, name := range names {
		if t.size += spanSize + len(name); t.anyKey || t.size > trackedMax {
			t.noteAny()
			return
		}
		t.keys = append(t.keys, strings.Clone(name))
	}
}

// noteAny notes that it is not known which keys were read.
func (t *tracking) noteAny() { t.anyKey, t.keys = true, nil }

// push says of all keys that were read that they may have changed. It returns nil if there are none.
func (t *tracking) push() Reply {
	switch {
	case t.anyKey:
		return Push{Bulk("invalidate"), Null{}}
	case len(t.keys) == 0:
		return nil
	}
	var names Array
	for _, name := range distinct(t.keys) {
		names = append(names, Bulk(name))
	}
	return Push{Bulk("invalidate"), names}
}
