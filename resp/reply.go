package resp

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
)

// The replies of package wire by their short names: handlers are full of replies.
//
//nolint:revive // package wire documents the types
type (
	Reply     = wire.Reply
	Status    = wire.Status
	Error     = wire.Error
	Int       = wire.Int
	Bulk      = wire.Bulk
	Verbatim  = wire.Verbatim
	Double    = wire.Double
	BigNumber = wire.BigNumber
	Bool      = wire.Bool
	Null      = wire.Null
	NullArray = wire.NullArray
	Array     = wire.Array
	Set       = wire.Set
	Map       = wire.Map
	Push      = wire.Push
	Sequence  = wire.Sequence
	Raw       = wire.Raw
)

var okReply = wire.OK

// errEnding stands for the reply to a command given up while waiting. The connection is ending, and the client gets no reply.
const errEnding = Error("ERR the connection is ending")

// Error replies, in Redis's own words where Redis has words: clients compare.
const (
	errMaxClients  = Error("ERR max number of clients reached")
	errSyntax      = Error("ERR syntax error")
	errNotInt      = Error("ERR value is not an integer or out of range")
	errNoAuth      = Error("NOAUTH Authentication required.")
	errWrongPass   = Error("WRONGPASS invalid username-password pair or user is disabled.")
	errNoPassword  = Error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	errNoScript    = Error("NOSCRIPT No matching script. Please use EVAL.")
	errMayWrite    = Error("ERR Can not execute a script with write flag using *_ro command.")
	errNoCluster   = Error("ERR This instance has cluster support disabled")
	errDBRange     = Error("ERR DB index is out of range")
	errIntRange    = Error("ERR value is out of range, value must between -2147483648 and 2147483647")
	errNoProto     = Error("NOPROTO unsupported protocol version")
	errProtoInt    = Error("ERR Protocol version is not an integer or out of range")
	errNameChars   = Error("ERR Client names cannot contain spaces, newlines or special characters.")
	errKeysMany    = Error("ERR Number of keys can't be greater than number of args")
	errKeysFew     = Error("ERR Number of keys can't be negative")
	errFlushOption = Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	errExecAbort   = Error("EXECABORT Transaction discarded because of previous errors.")
	errWaitRange   = Error("ERR WAIT is a time in milliseconds, at most 86400000 (24h)")
	errHoldsMax    = Error("ERR this connection holds 1024 locks, the most that one may hold; release some, or use another connection")
	errHelloAuth   = Error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
)

// errPattern refuses a client's pattern for a search among names chosen by others.
var errPattern = Error(fmt.Sprintf("ERR the pattern has more than %d bytes; use a shorter one", wire.PatternMax))

// errMemory says that Limits.Memory is spent.
var errMemory = errors.New("ERR lockproxy holds as much for its clients as max_memory allows; try again later, or raise it")

func errArity(name string) Error {
	return Error("ERR wrong number of arguments for '" + name + "' command")
}

func errSubscribed(name string) Error {
	return Error("ERR Can't execute '" + name +
		"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
}

func errReserved(name string) Error {
	return Error("ERR lockproxy keeps the key '" + name + "' for itself; use another name")
}

func errLost(key string) Error {
	return Error("LOST the lock on '" + clip(key, echoMax) +
		"' could not be extended and may be another client's; this command was not run, the next will be")
}

func errExpire(name string) Error { return Error("ERR invalid expire time in '" + name + "' command") }

// echoMax is how many bytes of a client's own words Redis repeats in an error.
const echoMax = 128

func errUnknownCommand(args []string) Error {
	var list string
	for _, arg := range args[1:] {
		if len(list) >= echoMax {
			break
		}
		list += "'" + clip(arg, echoMax-len(list)) + "' "
	}
	return Error("ERR unknown command '" + clip(args[0], echoMax) + "', with args beginning with: " + list)
}

// onLists are the commands by which lock libraries wake waiters. whyNoLists says why the commands are unknown, behind Redis's text: clients
// look at the beginning.
var onLists = map[string]bool{
	"blpop": true, "brpop": true, "blmove": true, "brpoplpush": true, "blmpop": true, "lpush": true, "rpush": true,
	"lpushx": true, "rpushx": true, "lpop": true, "rpop": true, "lmove": true, "rpoplpush": true, "lmpop": true,
}

const whyNoLists = "; lockproxy serves no lists: each master would hand an element to another waiter; see Scripts that are refused in docs/clients.md"

func errUnknownSubcommand(container, name string) Error {
	return Error("ERR unknown subcommand '" + clip(name, echoMax) + "'. Try " + container + " HELP.")
}

// errSubcommandArity is Redis's error for subcommands that count their arguments by themselves.
func errSubcommandArity(container, name string) Error {
	return Error("ERR unknown subcommand or wrong number of arguments for '" + clip(name, echoMax) + "'. Try " + container + " HELP.")
}

// clip cuts s as C's %.*s does: to n bytes, or before the first zero byte.
func clip(s string, n int) string {
	s = s[:min(n, len(s))]
	for i := range len(s) {
		if s[i] == 0 {
			return s[:i]
		}
	}
	return s
}

// cString is s as C sees the string: to Redis an option ends before the first zero byte.
func cString(s string) string { return clip(s, len(s)) }

// errUnsupportedOption is cut as Redis cuts the end of an error made of a format.
func errUnsupportedOption(opt string) Error {
	return Error("ERR Unsupported option " + strings.TrimRight(opt, "\r\n"))
}

// Parts of refusals. ttlMaxPrefix begins the refusal of a TTL. The refusal of a script by vote contains notByVote, and ttlMaxByVote if the
// script asks for such a TTL. keyByVote precedes the name of an undeclared key.
const (
	ttlMaxPrefix = "ERR lock TTL "
	notByVote    = " cannot be run by quorum: "
	ttlMaxByVote = notByVote + "it sets a TTL above ttl_max"
	keyByVote    = "it uses the key '"
)

// errTTLMax names the TTL asked for in the client's own number and unit.
func errTTLMax(asked string, ttlMax time.Duration) Error {
	return Error(fmt.Sprintf(ttlMaxPrefix+"%s exceeds ttl_max %d ms (%s); ask for less, or raise ttl_max on every lockproxy",
		asked, ttlMax.Milliseconds(), quorum.DurationText(ttlMax)))
}

func errTTLMin(ttl, ttlMin time.Duration) Error {
	return Error(fmt.Sprintf("ERR TTL %d ms is too short: less than 1 ms of validity would be left; ask for %d ms or more",
		ttl.Milliseconds(), ttlMin.Milliseconds()))
}

// errorReply puts an engine's error on the wire.
func errorReply(err error) Reply {
	switch {
	case errors.Is(err, quorum.ErrClosed):
		return Error("ERR lockproxy is shutting down")
	case errors.Is(err, quorum.ErrTooLong):
		return Error("ERR the lock's TTL would exceed ttl_max; extend by less, or raise ttl_max on every lockproxy")
	case errors.Is(err, quorum.ErrTooShort):
		return Error("ERR TTL is too short: less than 1 ms of validity would be left; ask for a longer one")
	}
	return Error(err.Error())
}
