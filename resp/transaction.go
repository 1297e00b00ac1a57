package resp

import (
	"fmt"
	"slices"
	"sync/atomic"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
)

// A transaction is what a session has watched, and what it has queued since MULTI. It belongs to the reader.
type transaction struct {
	memory   *account
	most     int // bytes of what is queued and watched: Limits.Input
	stage    stage
	queue    []*queued
	args     int // of the commands in queue
	watched  []*watched
	retained int // bytes of both, counted in the memory budget
}

// A stage is how far a transaction is.
type stage uint8

const (
	noMulti       stage = iota
	watchingThere       // no MULTI yet, but keys are watched at the upstream
	queuing             // commands are queued here
	queuingThere        // the transaction takes place at the upstream, and nothing is queued here
	spoiled             // a command could not be queued: EXEC refuses
)

// open says whether MULTI was sent.
func (t *transaction) open() bool { return t.stage >= queuing }

// A queued is one command of a transaction. A command with a step takes part in the plan. A command with a reply has been answered
// before EXEC. A command with neither publishes a message, when the transaction has taken place.
type queued struct {
	args  []string
	cmd   *command
	step  step
	also  string // a key of step that is not among the keys that the command names
	reply Reply
}

// newQueued copies a command. If it has a plan, that is its step.
func newQueued(cmd *command, args []string) *queued {
	q := &queued{cmd: cmd, args: slices.Clone(args)}
	if cmd.plan != nil {
		q.step = func(p *plan) Reply {
			p.cmd = cmd
			return cmd.plan(p, q.args)
		}
	}
	return q
}

// A watched is a key, and the mark of what a quorum held there; it has no mark if that never became known.
//
// A mark does not show a change that leaves value and expiry as they were. The notice does, if the change is made through this proxy.
//
// Nor does a mark show that a key was there for a while and is gone again. But a client may have been told meanwhile that the key
// was there, and relies on it: the lock was held, perhaps by the client itself. So every reply about a watched key is compared with
// the mark, too. For this, each command that has a plan runs as one (see runWatching). After any other command that tells of the
// key, it is noted that the client may have found the key there.
type watched struct {
	key     quorum.Key
	mark    quorum.Mark
	notice  *quorum.Notice
	changed atomic.Bool // the client has changed it, or seen it hold something else
	found   atomic.Bool // the client may have been told that it is there
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
func (t *transaction) spoil() {
	if t.open() {
		t.stage = spoiled
	}
}

// end forgets what was queued and watched.
func (t *transaction) end() {
	for _, w := range t.watched {
		w.notice.End()
	}
	t.memory.drop(t.retained)
	*t = transaction{memory: t.memory, most: t.most}
}

// retain counts the memory of a command that queues or watches n commands or keys. An error says why there is no room.
func (t *transaction) retain(c *call, n int) error {
	size := c.session.reader.parser.Size + n*queuedSize + len(c.args)*wire.SpanSize
	switch {
	case t.retained+size > t.most:
		return t.errFull()
	case !t.memory.keep(size):
		return errMemory
	}
	t.retained += size
	return nil
}

func (t *transaction) errFull() error {
	return fmt.Errorf("ERR a transaction with the keys that it watches takes more than %d commands, %d arguments or %s (max_input); make several of it",
		queuedMax, queuedArgsMax, wire.SizeText(t.most))
}

// add queues a command. It returns why there is no room for it, if there is none.
func (t *transaction) add(c *call, q *queued) error {
	if len(t.queue) >= queuedMax || t.args+len(q.args) > queuedArgsMax {
		return t.errFull()
	}
	if err := t.retain(c, 1); err != nil {
		return err
	}
	t.queue = append(t.queue, q)
	t.args += len(q.args)
	return nil
}

// keys returns the keys of the queue, each once, those that are watched first.
func (t *transaction) keys() []string {
	var names []string
	for _, w := range t.watched {
		names = append(names, w.key.Name)
	}
	for _, q := range t.queue {
		names = append(names, q.keys()...)
	}
	return distinct(names)
}

// keys returns the keys that the command is about.
func (q *queued) keys() (names []string) {
	if q.cmd.group != "pubsub" {
		names = q.cmd.keys.of(q.args)
	}
	if q.also != "" {
		names = append(names, q.also)
	}
	return names
}

// marks returns what the watched keys must hold, in the order of keys.
func (t *transaction) marks() []quorum.Mark {
	var marks []quorum.Mark
	for _, w := range t.watched {
		if w.changed.Load() || w.notice.Changed() || w.found.Load() && w.mark.Same(quorum.View{Type: "none"}) {
			w.mark = quorum.Mark{} // a mark that no key has
		}
		marks = append(marks, w.mark)
	}
	//mutant: of what is watched the first counts
	return marks
}

// watches returns what is watched under the key, or nil.
func (t *transaction) watches(key quorum.Key) *watched {
	if i := slices.IndexFunc(t.watched, func(w *watched) bool { return w.key == key }); i >= 0 {
		return t.watched[i]
	}
	return nil
}

// sees notes what a plan has found under the key, and what it makes of it.
func (w *watched) sees(v quorum.View, edit quorum.Edit) {
	if w != nil && (edit.Kind != quorum.Keep || !w.mark.Same(v)) {
		//mutant: what a client saw change is as it was
		w.changed.Store(true)
	}
}

// finds notes that the client may be told that the key is there.
func (w *watched) finds() {
	if w != nil {
		w.found.Store(true)
	}
}

// runWatching runs a command of a client that watches keys, if it must know about that.
func runWatching(c *call) (Reply, bool) {
	q := newQueued(c.cmd, c.args)
	script := c.cmd.group == "scripting" && !c.cmd.keys.none()
	if script {
		queueScript(c, q) // a script that cannot be queued has no step
		if q.reply != nil {
			return q.reply, false // the arguments or the text are wrong: nothing is looked at
		}
	}
	names := q.keys()
	isWatched := func(name string) bool { return c.session.transaction.watches(c.key(name)) != nil }
	switch {
	case c.cmd.group == "transactions" || !slices.ContainsFunc(names, isWatched):
	case q.step != nil:
		return runStep(c, q), false
	case script || c.cmd.flags&readOnly == 0: // other reads note by themselves what they find; TestWatchKnowsWhatEveryReadHasTold
		for _, name := range names {
			c.session.transaction.watches(c.key(name)).finds()
		}
	}
	return nil, true
}
