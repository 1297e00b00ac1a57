package resp

import (
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"lockproxy/quorum"
	"lockproxy/quorum/pubsub"
	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
	"lockproxy/script"
)

// A router says where a command is served, if there is an upstream. A command about a lock's name is served here, by vote; a command about
// any other name, there. Commands without keys go there too, with two exceptions: commands about the connection to this proxy, and commands
// that any server answers alike, as TIME.
//
// The destination follows from the settings, the command's row and arguments, and the known scripts. The upstream is asked only for its
// command table, and for the keys of a command with keys in unusual places.
type router struct {
	patterns []string // the setting lock_keys
	upstream *upstream.Redis
	scripts  *script.Cache
	routes   *lru.Cache[script.Digest, *scriptRoute] // by the script's SHA-1
}

// A destination is where a command is served.
type destination uint8

const (
	here  destination = iota // by the proxy
	there                    // by the upstream
)

// A refusal says why a command has no destination. The zero refusal is of a command with a destination.
type refusal struct {
	reply  Error
	split  string // for the log, if lock_keys splits the command; "": reply is the only reason
	failed error  // why the upstream could not be asked; reply is empty then
}

func (r refusal) is() bool { return r != refusal{} }

func refuse(reply Error) refusal { return refusal{reply: reply} }

// splits refuses a command because lock_keys matches some of its names and not others, or a name must be a lock's and is not.
func splits(reply Error) refusal { return refusal{reply: reply, split: string(reply)} }

// neverForwarded are commands that change the nature of the connection.
var neverForwarded = map[string]bool{"sync": true, "psync": true, "replconf": true}

// isLock says whether the name is a lock's: a pattern of lock_keys matches the name, or its {tag}. As in a cluster of Redis, names with the
// same tag belong together, so a lock's channels and queues follow the lock.
func (r *router) isLock(name string) bool {
	if r.matchesLock(name) {
		return true
	}
	_, rest, _ := strings.Cut(name, "{")
	tag, _, closed := strings.Cut(rest, "}")
	return closed && tag != "" && r.matchesLock(tag)
}

func (r *router) matchesLock(name string) bool {
	return slices.ContainsFunc(r.patterns, func(pattern string) bool { return wire.Match(pattern, name) })
}

// newRouter returns a router by the settings; nil if there is no upstream.
func newRouter(cfg *Config, scripts *script.Cache) *router {
	if cfg.Upstream == nil {
		return nil
	}
	return &router{patterns: cfg.LockKeys, upstream: cfg.Upstream, scripts: scripts, routes: newCache[script.Digest, *scriptRoute](routesMax)}
}

// isThere says whether the upstream has the topic, too: all topics but the channels of locks.
func (r *router) isThere(t pubsub.Topic) bool { return t.Kind == pubsub.Pattern || !r.isLock(t.Name) }

// destination returns where the command is served, or why nowhere. cmd is the command's row, nil if unknown to the proxy.
func (r *router) destination(args []string, cmd *command) (destination, refusal) {
	row := cmd.row(args)
	switch {
	case row == nil:
		return r.byUnknown(args, cmd)
	case row.group == "lock" && row.keys.none():
		return here, refusal{}
	case row.group == "lock":
		return here, r.mustBeLock(args, row)
	case row.group == "pubsub":
		return r.byPubSub(args, cmd, row)
	case !row.keys.none():
		if !row.accepts(len(args)) {
			return there, refusal{} // the upstream's error is as good as ours
		}
		if row.keys.numkeys > 0 {
			return r.byScript(args, row)
		}
		return r.byKeys(args, row.keys)
	case row.full == "info" && onlyOurInfo(args):
		return here, refusal{}
	case cmd.flags&betterThere != 0:
		return there, refusal{}
	}
	return here, refusal{}
}

// byKeys returns the destination of a command by its keys. All keys must have the same destination.
func (r *router) byKeys(args []string, spec keySpec) (destination, refusal) {
	first, last, step := spec.span(args)
	var n sides
	for i := first; i <= last; i += step {
		if refused := n.add(r, args[i]); refused.is() {
			return here, refused
		}
	}
	return n.destination(args[0])
}

// A sides says on which sides the names of one command are, with the last name of either side.
type sides struct {
	lock, other   string
	locks, others bool
}

// destination returns the destination of a command with these names. Names on both sides are refused.
func (n *sides) destination(command string) (destination, refusal) {
	switch {
	case !n.locks:
		return there, refusal{}
	case !n.others:
		return here, refusal{}
	}
	return here, splits(errMixed(command, n.lock, n.other))
}

// add takes the next names. Reserved names are refused.
func (n *sides) add(r *router, names ...string) refusal {
	for _, name := range names {
		switch {
		case quorum.Reserved(name):
			return refuse(errReserved(name))
		case r.isLock(name):
			n.lock, n.locks = name, true
		default:
			n.other, n.others = name, true
		}
	}
	return refusal{}
}

// byUnknown is for commands unknown to this proxy. The upstream's own COMMAND tells which arguments are keys. A subcommand unknown to the
// proxy, of a container known to the proxy, is the upstream's, too, unless the subcommand is about connections.
func (r *router) byUnknown(args []string, cmd *command) (destination, refusal) {
	name := wire.Lower(args[0])
	if neverForwarded[name] || cmd != nil && (cmd.name == "client" || cmd.name == "cluster") ||
		name == "script" && len(args) > 1 && wire.EqualFold(args[1], "debug") {
		return here, refusal{}
	}
	commands, err := r.upstream.Commands()
	if err != nil {
		return here, refusal{failed: err}
	}
	keys, exact := commands.Keys(args)
	if !exact {
		if !r.anyLock(keys) {
			return there, refusal{}
		}
		if keys, err = r.upstream.GetKeys(args); err != nil {
			return here, refusal{failed: err}
		}
	}
	if (name == "fcall" || name == "fcall_ro") && len(args) > 2 && args[2] == "0" {
		return there, r.mustDeclare(args)
	}
	var n sides
	if refused := n.add(r, keys...); refused.is() {
		return here, refused
	}
	at, refused := n.destination(args[0])
	if at == here && !refused.is() {
		refused = splits(errNotForLocks(args[0], n.lock))
	}
	return at, refused
}

func (r *router) anyLock(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return quorum.Reserved(name) || r.isLock(name) })
}

// mustDeclare refuses a script that declares no keys but gets a lock's name in ARGV: at the upstream, such a script could take a lock
// without a majority.
func (r *router) mustDeclare(args []string) refusal {
	for _, arg := range args[scriptKeys.numkeys+1:] {
		if r.isLock(arg) {
			return refusal{
				reply: "ERR a script that lockproxy is to run on the lock '" + Error(clip(arg, echoMax)) + "' must have it in KEYS; this one declares no keys",
				split: "a script has in ARGV what looks like a lock's name, and declares no keys", // the name itself may be a token
			}
		}
	}
	return refusal{}
}

// mustBeLock refuses a lock command on any name but a lock's: the name would be a lock here and something else at the upstream.
func (r *router) mustBeLock(args []string, row *command) refusal {
	if len(args) > 1 && row.accepts(len(args)) && !r.isLock(args[1]) {
		return refuse("ERR '" + Error(clip(args[1], echoMax)) + "' is no lock's name, as no pattern of lock_keys matches it; use one that is, or add a pattern")
	}
	return refusal{}
}

// byPubSub is for pub/sub. A message on a lock's channel goes to the masters, where the lock's scripts publish. Subscriptions are made on
// both sides (cmd_pubsub.go), except subscriptions to a lock's channel, which are made, and counted, here alone.
func (r *router) byPubSub(args []string, cmd, row *command) (destination, refusal) {
	switch {
	case row.name == "numsub" || row.name == "shardnumsub":
		return r.byChannels(args[0], args[2:])
	case cmd.name == "pubsub":
		return there, refusal{}
	case row.name != "publish" && row.name != "spublish":
		return here, refusal{}
	case len(args) > 1:
		return r.byChannels(args[0], args[1:2])
	}
	return there, refusal{}
}

// byChannels is byKeys for channels.
func (r *router) byChannels(command string, channels []string) (destination, refusal) {
	var n sides
	for _, channel := range channels {
		if strings.HasPrefix(channel, reservedPrefix) || r.isLock(channel) {
			n.lock, n.locks = channel, true
		} else {
			n.other, n.others = channel, true
		}
	}
	return n.destination(command)
}

// onlyOurInfo says whether INFO asks for the proxy's own sections alone.
func onlyOurInfo(args []string) bool {
	for _, name := range args[1:] {
		if !wire.EqualFold(name, "lockproxy") {
			return false
		}
	}
	return len(args) > 1
}

func errMixed(command, lock, other string) Error {
	return Error("ERR '" + clip(wire.Lower(command), echoMax) + "' names a lock, '" + clip(lock, echoMax) + "', and another key, '" +
		clip(other, echoMax) + "': lockproxy keeps them on different servers; send a command for each, or let lock_keys match both or none")
}

func errNotForLocks(command, lock string) Error {
	return Error("ERR lockproxy does not run '" + clip(wire.Lower(command), echoMax) + "' on locks, and lock_keys makes '" +
		clip(lock, echoMax) + "' one; use another name, or let lock_keys not match this one")
}
