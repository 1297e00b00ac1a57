package resp

import (
	"slices"
	"strings"
)

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

// moreCategories are ACL categories, beside those implied by flags and group, of commands and their subcommands.
var moreCategories = map[string][]string{
	"command": {"connection"}, "readonly": {"connection"}, "readwrite": {"connection"}, "wait": {"connection"},
	"info": {"dangerous"}, "lastsave": {"admin", "dangerous"}, "role": {"admin", "dangerous"},
}

// categories are the command's ACL categories.
func (cmd *command) categories() Set {
	container, _, _ := strings.Cut(cmd.full, "|")
	more := moreCategories[container]
	set := Set{}
	add := func(name string, yes bool) {
		if yes || slices.Contains(more, name) {
			set = append(set, Status("@"+name))
		}
	}
	f, contains := cmd.flags, len(cmd.subs) > 0
	add("keyspace", cmd.group == "generic" && !cmd.keys.none())
	add("read", f&readOnly != 0 && cmd.group != "scripting")
	add("write", f&write != 0)
	add("string", cmd.group == "string")
	add("pubsub", f&pubSub != 0)
	add("hash", cmd.group == "hash")
	add("admin", f&admin != 0)
	add("fast", f&fast != 0)
	add("slow", f&fast == 0)
	add("dangerous", f&admin != 0)
	add("connection", cmd.group == "connection" && !contains)
	add("transaction", cmd.group == "transactions")
	add("scripting", cmd.group == "scripting" && !contains)
	return set
}
