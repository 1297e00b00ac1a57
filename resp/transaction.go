package resp

import (
	"fmt"
	"slices"
	"sync/atomic"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
)

// A transaction has the keys watched by a session, and the commands queued since MULTI. The transaction belongs to the reader.
type transaction struct {
	memory   *account
	most     int // the limit on retained: Limits.Input
	stage    stage
	queue    []*queued
	args     int // number of arguments of the commands in queue
	watched  []*watched
	retained int // bytes of queue and watched, counted in the memory budget
}

// A stage is how far a transaction is.
type stage uint8

const (
	noMulti       stage = iota
	watchingThere       // no MULTI yet, but keys are watched at the upstream
	queuing             // commands are queued here
	queuingThere        // the transaction takes place at the upstream, and nothing is queued here
	spoiled             // a command was not queued: EXEC refuses
)

// open says whether MULTI was sent.
func (t *transaction) open() bool { return t.stage >= queuing }

// A queued is one command of a transaction. A command with a step takes part in the plan. A command with a reply was answered when queued.
// A command with neither publishes a message, after the transaction.
type queued struct {
	args  []string
	cmd   *command
	step  step
	also  string // a key of step that the command does not name
	reply Reply
}

// newQueued copies a command. The step is the command's plan, if the command has a plan.
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

// A watched is a watched key, with the mark of its state at a quorum. The mark is zero if the state never became known.
//
// Two kinds of change leave no trace in the mark:
//
//   - A change may leave value and expiry the same. The notice shows such a change, if made through this proxy.
//   - A key may have come and gone. The client may have been told of the key meanwhile, and rely on a lock held, perhaps by the client itself.
//
// For the second kind, every reply about a watched key is compared with the mark. So each command with a plan runs as a plan (see
// runWatching). After any other command that tells of the key, found notes that the client may have seen the key.
type watched struct {
	key     quorum.Key
	mark    quorum.Mark
	notice  *quorum.Notice
	changed atomic.Bool // the client has changed the key, or seen another value
	found   atomic.Bool // the client may have been told that the key exists
}

// keysMax bounds the keys watched by a session, and the keys of a transaction: masters do nothing else while they compare. queuedMax bounds
// the queued commands, and queuedArgsMax their arguments. Limits.Input bounds all, too.
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

// add queues a command. An error says why there is no room.
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

// keys returns the keys of watched and queue, each once, watched keys first.
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

// keys returns the command's keys.
func (q *queued) keys() (names []string) {
	if q.cmd.group != "pubsub" {
		names = q.cmd.keys.of(q.args)
	}
	if q.also != "" {
		names = append(names, q.also)
	}
	return names
}

// marks returns the marks of the watched keys, in the order of keys.
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

// watches returns the watched of the key, or nil.
func (t *transaction) watches(key quorum.Key) *watched {
	if i := slices.IndexFunc(t.watched, func(w *watched) bool { return w.key == key }); i >= 0 {
		return t.watched[i]
	}
	return nil
}

// sees notes the view v that a plan had of the key, and the plan's edit.
func (w *watched) sees(v quorum.View, edit quorum.Edit) {
	if w != nil && (edit.Kind != quorum.Keep || !w.mark.Same(v)) {
		//mutant: what a client saw change is as it was
		w.changed.Store(true)
	}
}

// finds notes that the client may be told of the key's existence.
func (w *watched) finds() {
	if w != nil {
		w.found.Store(true)
	}
}

// runWatching runs a command about a watched key: as a plan, or with a note that the client may have seen the key.
func runWatching(c *call) (Reply, bool) {
	q := newQueued(c.cmd, c.args)
	script := c.cmd.group == "scripting" && !c.cmd.keys.none()
	if script {
		queueScript(c, q) // a script that cannot be queued has no step
		if q.reply != nil {
			return q.reply, false // wrong arguments or text: no key is read
		}
	}
	names := q.keys()
	isWatched := func(name string) bool { return c.session.transaction.watches(c.key(name)) != nil }
	switch {
	case c.cmd.group == "transactions" || !slices.ContainsFunc(names, isWatched):
	case q.step != nil:
		return runStep(c, q), false
	case script || c.cmd.flags&readOnly == 0: // other reads note found themselves; TestWatchKnowsWhatEveryReadHasTold
		for _, name := range names {
			c.session.transaction.watches(c.key(name)).finds()
		}
	}
	return nil, true
}
