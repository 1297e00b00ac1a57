package resp

import (
	"slices"
	"sync/atomic"

	"lockproxy/quorum"
)

// A transaction is what a session has watched, and what it has queued since MULTI. It belongs to the reader.
type transaction struct {
	open    bool // MULTI was sent
	spoiled bool // a command could not be queued: EXEC refuses
	changes bool // it may change something
	// upstream: it takes place there, and nothing is queued here.
	upstream bool
	there    int          // how many commands it has queued
	ours     []ownCommand // that are ours among them
	selected *int         // the database that SELECT has queued last
	queue    []queued
	args     int // of the commands in queue
	watched  []*watched
	retained int // bytes of both, counted in the memory budget
}

// A queued is one command of a transaction. If it has a step that is its part in the plan; else if it has a reply, that is known
// already; else it runs when the transaction has taken place.
type queued struct {
	args  []string
	cmd   *command
	step  step
	also  string // a key of step that is not among the arguments where the command has its keys
	reply Reply
}

// A watched is a key and what a quorum held there; no mark if that never became known.
type watched struct {
	key     quorum.Key
	mark    quorum.Mark
	changed atomic.Bool // the client has seen it hold something else since
}

// keysMax bounds how many keys a session watches, and how many a transaction is about: the masters do nothing else while
// they compare them. queuedMax bounds how many commands are queued, and queuedArgsMax their arguments. All are bounded by
// Limits.Input, too.
const (
	keysMax       = 1024
	queuedMax     = 1024
	queuedArgsMax = 16 * 1024
)

// spoil notes that a command was refused.
func (t *transaction) spoil() { t.spoiled = t.spoiled || t.open }

// end forgets what was queued and watched.
func (t *transaction) end(memory *budget) {
	memory.sub(t.retained)
	*t = transaction{}
}

// retain counts n commands or keys that are to be queued or watched by the command, and says whether there is room for them.
func (c *call) retain(n int) bool {
	t := &c.transaction
	n = c.parser.size + n*queuedSize + len(c.args)*spanSize
	if t.retained+n > c.server.cfg.Limits.Input || !c.server.memory.keep(n) {
		return false
	}
	t.retained += n
	return true
}

// keys returns the keys of the queue, each once, those that are watched first.
func (t *transaction) keys() []string {
	var names []string
	for _, w := range t.watched {
		names = append(names, w.key.Name)
	}
	for _, q := range t.queue {
		if q.cmd.group != "pubsub" {
			names = append(names, q.cmd.keys.of(q.args)...)
		}
		if q.step != nil && q.also != "" {
			names = append(names, q.also)
		}
	}
	return distinct(names)
}

// marks returns what the watched keys must hold, in the order of keys.
func (t *transaction) marks() []quorum.Mark {
	var marks []quorum.Mark
	for _, w := range t.watched {
		if w.changed.Load() {
			w.mark = quorum.Mark{} // which no key has
		}
		marks = append(marks, w.mark)
	}
	return marks
}

// viewed is what the slot of a read calls.
func (c *call) viewed(sl *slot, name string) func(quorum.View) {
	w := c.watches(name)
	if w == nil {
		return sl.viewed
	}
	return func(v quorum.View) {
		w.sees(v)
		sl.viewed(v)
	}
}

// watches returns what the client watches by that name, or nil.
func (c *call) watches(name string) *watched {
	key := c.key(name)
	if i := slices.IndexFunc(c.transaction.watched, func(w *watched) bool { return w.key == key }); i >= 0 {
		return c.transaction.watched[i]
	}
	return nil
}

// sees notes that the client is shown something else. A mark does not tell a key that has changed, and changed back since; but a
// client that has seen it in between, as a lock that was free, goes by that.
func (w *watched) sees(v quorum.View) {
	if w != nil && v.Err == nil && v.Mark() != w.mark {
		w.changed.Store(true)
	}
}
