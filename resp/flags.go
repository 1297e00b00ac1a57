package resp

// flags are a command's properties, in the order and by the names of COMMAND, which has no names for the last four.
type flags uint32

const (
	write flags = 1 << iota
	readOnly
	denyOOM
	admin
	pubSub
	noScript
	loading
	stale
	skipMonitor
	skipSlowlog
	fast
	noAuth // may be sent before AUTH
	allowBusy
	noMandatoryKeys
	movableKeys
	subscribedToo // allowed to a subscribed RESP2 client
	atOnce        // not queued by a transaction
	mayQueue      // may be queued without a plan: the reply is made when queued; a message is published after EXEC
	betterThere   // answered by the upstream, which knows more; by the proxy if the upstream cannot be reached
)

var flagNames = [...]string{"write", "readonly", "denyoom", "admin", "pubsub", "noscript", "loading", "stale", "skip_monitor",
	"skip_slowlog", "fast", "no_auth", "allow_busy", "no_mandatory_keys", "movablekeys"}

func (f flags) names() Set {
	names := Set{}
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, Status(name))
		}
	}
	return names
}
