package resp

import (
	"slices"
	"strings"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
)

// Where a command is served, if there is an upstream: what is about a lock's name, here, by vote; everything else there.
// Commands without keys go there too, except what concerns the connection to this proxy, and what any server answers alike, as TIME.

// A place is where a command is served.
type place uint8

const (
	here  place = iota // by the proxy
	there              // by the upstream
)

// neverForwarded are commands that would turn the connection into something else.
var neverForwarded = map[string]bool{"sync": true, "psync": true, "replconf": true}

// isLock says whether the name is a lock's: a pattern of lock_keys matches the name, or its {tag}. As in a cluster of Redis, names
// with the same tag belong together, so a lock's channels and queues follow the lock.
func (s *Server) isLock(name string) bool {
	if s.matchesLock(name) {
		return true
	}
	_, rest, _ := strings.Cut(name, "{")
	tag, _, closed := strings.Cut(rest, "}")
	return closed && tag != "" && s.matchesLock(tag)
}

func (s *Server) matchesLock(name string) bool {
	return slices.ContainsFunc(s.cfg.LockKeys, func(pattern string) bool { return wire.Match(pattern, name) })
}

// place returns where the command is served. cmd is its row, or nil if this proxy does not have it.
func (c *call) place(cmd *command) (place, Reply) {
	row := cmd.row(c.args)
	switch {
	case row == nil:
		return c.placeUnknown(cmd)
	case row.group == "lock" && row.keys.none():
		return here, nil
	case row.group == "lock":
		return here, c.mustBeLock(row)
	case row.group == "pubsub":
		return c.placePubSub(cmd, row)
	case !row.keys.none():
		if !row.accepts(len(c.args)) {
			return there, nil // its error is as good as ours
		}
		if row.keys.numkeys > 0 {
			return c.placeScript(row.keys)
		}
		return c.placeKeys(row.keys)
	case row.full == "info" && c.onlyOurInfo():
		return here, nil
	case cmd.flags&betterThere != 0:
		return there, nil
	}
	return here, nil
}

// placeKeys returns the place of a command by its keys. All must have the same.
func (c *call) placeKeys(spec keySpec) (place, Reply) {
	first, last, step := spec.span(c.args)
	var n sides
	for i := first; i <= last; i += step {
		if refused := n.add(c, c.args[i]); refused != nil {
			return here, refused
		}
	}
	return n.place(c)
}

// A sides says on which sides the names of one command are, with the last name of either side.
type sides struct {
	lock, other   string
	locks, others bool
}

// place returns the place of a command with these names. It refuses a command with names on both sides.
func (n *sides) place(c *call) (place, Reply) {
	switch {
	case !n.locks:
		return there, nil
	case !n.others:
		return here, nil
	}
	return here, c.split(errMixed(c.args[0], n.lock, n.other))
}

// add takes the next names. It refuses one that is lockproxy's own.
func (n *sides) add(c *call, names ...string) Reply {
	for _, name := range names {
		switch {
		case quorum.Reserved(name):
			return errReserved(name)
		case c.server.isLock(name):
			n.lock, n.locks = name, true
		default:
			n.other, n.others = name, true
		}
	}
	return nil
}

// placeUnknown is for commands that this proxy does not have. The upstream's own COMMAND tells which arguments are keys. A
// subcommand that the proxy does not have, of a container that it has, is the upstream's, too, unless it is about connections.
func (c *call) placeUnknown(cmd *command) (place, Reply) {
	name := wire.Lower(c.args[0])
	if neverForwarded[name] || cmd != nil && (cmd.name == "client" || cmd.name == "cluster") ||
		name == "script" && len(c.args) > 1 && wire.EqualFold(c.args[1], "debug") {
		return here, nil
	}
	commands, err := c.server.cfg.Upstream.Commands()
	if err != nil {
		return here, c.server.upstreamFailed(err)
	}
	keys, exact := commands.Keys(c.args)
	if !exact {
		if !c.anyLock(keys) {
			return there, nil
		}
		if keys, err = c.server.cfg.Upstream.GetKeys(c.args); err != nil {
			return here, c.server.upstreamFailed(err)
		}
	}
	if (name == "fcall" || name == "fcall_ro") && len(c.args) > 2 && c.args[2] == "0" {
		return there, c.mustDeclare()
	}
	var n sides
	if refused := n.add(c, keys...); refused != nil {
		return here, refused
	}
	at, refused := n.place(c)
	if at == here && refused == nil {
		refused = c.split(errNotForLocks(c.args[0], n.lock))
	}
	return at, refused
}

func (c *call) anyLock(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return quorum.Reserved(name) || c.server.isLock(name) })
}

// mustDeclare refuses a script that declares no keys but is given a lock's name: at the upstream, it could take a lock that no
// majority has.
func (c *call) mustDeclare() Reply {
	for _, arg := range c.args[scriptKeys.numkeys+1:] {
		if c.server.isLock(arg) {
			return c.splitAs("ERR a script that lockproxy is to run on the lock '"+Error(clip(arg, echoMax))+"' must have it in KEYS; this one declares no keys",
				"a script has in ARGV what looks like a lock's name, and declares no keys")
		}
	}
	return nil
}

// mustBeLock refuses a lock command on a name that is no lock's: the name would be a lock here and something else at the upstream.
func (c *call) mustBeLock(row *command) Reply {
	if len(c.args) > 1 && row.accepts(len(c.args)) && !c.server.isLock(c.args[1]) {
		return Error("ERR '" + clip(c.args[1], echoMax) + "' is no lock's name, as no pattern of lock_keys matches it; use one that is, or add a pattern")
	}
	return nil
}

// placePubSub is for pub/sub. A message on a lock's channel goes to the masters, where the lock's scripts publish. Subscriptions
// are made on both sides (cmd_pubsub.go), except those to a lock's channel: these are made, and counted, here alone.
func (c *call) placePubSub(cmd, row *command) (place, Reply) {
	switch {
	case row.name == "numsub" || row.name == "shardnumsub":
		return c.placeChannels(c.args[2:])
	case cmd.name == "pubsub":
		return there, nil
	case row.name != "publish" && row.name != "spublish":
		return here, nil
	case len(c.args) > 1:
		return c.placeChannels(c.args[1:2])
	}
	return there, nil
}

// placeChannels is placeKeys for channels.
func (c *call) placeChannels(channels []string) (place, Reply) {
	var n sides
	for _, channel := range channels {
		if strings.HasPrefix(channel, reservedPrefix) || c.server.isLock(channel) {
			n.lock, n.locks = channel, true
		} else {
			n.other, n.others = channel, true
		}
	}
	return n.place(c)
}

// onlyOurInfo says whether nothing but sections of the proxy's own are asked for.
func (c *call) onlyOurInfo() bool {
	for _, name := range c.args[1:] {
		if !wire.EqualFold(name, "lockproxy") {
			return false
		}
	}
	return len(c.args) > 1
}

func errMixed(command, lock, other string) Error {
	return Error("ERR '" + clip(wire.Lower(command), echoMax) + "' names a lock, '" + clip(lock, echoMax) + "', and another key, '" +
		clip(other, echoMax) + "': lockproxy keeps them on different servers; send a command for each, or let lock_keys match both or none")
}

func errNotForLocks(command, lock string) Error {
	return Error("ERR lockproxy does not run '" + clip(wire.Lower(command), echoMax) + "' on locks, and lock_keys makes '" +
		clip(lock, echoMax) + "' one; use another name, or let lock_keys not match this one")
}
