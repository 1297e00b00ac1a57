package resp

import (
	"slices"

	"lockproxy/quorum"
)

// Reads of hash locks, such as Redisson's. Each command goes unchanged to every master, and the client gets the answer of
// a quorum. If no answer has a quorum, nobody holds the lock, and the client gets the answer for a missing key.

// runAsk makes the handler of a command whose reply does not depend on the arguments; see askMasters.
func runAsk(unordered int, reply func(any) Reply) func(*call) Reply {
	return func(c *call) Reply { return askMasters(c, quorum.AskRequest{Unordered: unordered}, reply) }
}

// runHMGet answers null for every field if no answer has a quorum.
func runHMGet(c *call) Reply {
	fields := len(c.args) - 2
	return askMasters(c, quorum.AskRequest{}, func(r any) Reply {
		items, ok := r.([]any)
		if !ok {
			items = make([]any, fields)
		}
		return Array(dataReplies(items))
	})
}

// askMasters sends the command to the masters; req gives the kind of answer. If no answer has a quorum, the reply is the reply for nil.
func askMasters(c *call, req quorum.AskRequest, reply func(any) Reply) Reply {
	return c.begin(overlapAny, c.args[c.cmd.keys.first], made, func(sl *slot) {
		w := c.session.transaction.watches(sl.key)
		req.Key, req.Command = sl.key, slices.Clone(c.args)
		c.server.engine.Ask(req, func(a quorum.Asked) {
			if a.Exists {
				w.finds()
			}
			sl.resolve(outcome{err: a.Err, done: 1, reply: reply(a.Reply)})
		})
	})
}

func intReply(r any) Reply {
	n, _ := r.(int64)
	return Int(n)
}

func listReply(r any) Reply {
	items, _ := r.([]any)
	return Array(dataReplies(items))
}

func mapReply(r any) Reply {
	items, _ := r.([]any)
	return Map(dataReplies(items))
}

func dataReply(r any) Reply {
	switch r := r.(type) {
	case int64:
		return Int(r)
	case string:
		return Bulk(r)
	case []any:
		return Array(dataReplies(r))
	}
	return Null{}
}

func dataReplies(items []any) []Reply {
	replies := make([]Reply, len(items))
	for i, item := range items {
		replies[i] = dataReply(item)
	}
	return replies
}
