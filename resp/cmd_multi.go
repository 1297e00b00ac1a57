package resp

import (
	"fmt"
	"slices"
	"sync/atomic"

	"lockproxy/quorum"
	"lockproxy/quorum/pubsub"
	"lockproxy/script"
)

// MULTI and EXEC are one Engine.Exec on all keys of the commands and all watched keys. So EXEC does as in Redis: all
// commands at one moment, or none if a watched key has changed. A transaction may hold two sorts of commands without keys:
//   - commands that change nothing: the reply is made when the command is queued;
//   - messages: published after EXEC has taken place.

func runMulti(c *call) Reply {
	if c.session.transaction.open() {
		return Error("ERR MULTI calls can not be nested")
	}
	c.session.transaction.stage = queuing
	return okReply
}

func runDiscard(c *call) Reply {
	if !c.session.transaction.open() {
		return Error("ERR DISCARD without MULTI")
	}
	c.session.transaction.end()
	return okReply
}

// runWatch notes a quorum's state of the keys. For a key watched already, the first note counts.
func runWatch(c *call) Reply {
	t := &c.session.transaction
	if t.open() {
		return Error("ERR WATCH inside MULTI is not allowed")
	}
	var fresh []*watched
	var names []string
	for _, name := range distinct(c.args[1:]) {
		if c.session.transaction.watches(c.key(name)) == nil {
			fresh = append(fresh, &watched{key: c.key(name)})
			names = append(names, name)
		}
	}
	if len(fresh) == 0 {
		return okReply
	}
	if len(t.watched)+len(fresh) > keysMax {
		return Error(fmt.Sprintf("ERR more than %d keys are watched; UNWATCH, or watch fewer", keysMax))
	}
	sl := c.claimTogether(overlapNone, names, func(*outcome) Reply { return okReply })
	if sl == nil {
		return nil
	}
	if err := t.retain(c, len(fresh)); err != nil {
		sl.onExecuted(quorum.Executed{Err: err}, nil)
		return nil
	}
	for _, w := range fresh {
		w.notice = c.server.engine.Notice(w.key)
	}
	t.watched = append(t.watched, fresh...)
	look := func(now []quorum.View) []quorum.Edit {
		for i, v := range now {
			fresh[i].mark = v.Mark()
		}
		return nil
	}
	c.server.engine.Exec(quorum.ExecRequest{DB: c.session.identity.db, Keys: names, Brief: slices.Repeat([]bool{true}, len(names)), Plan: look}, func(x quorum.Executed) { sl.onExecuted(x, nil) })
	return nil
}

func runUnwatch(c *call) Reply {
	if !c.session.transaction.open() { // else UNWATCH was queued, and EXEC ends the watch
		c.session.transaction.end()
	}
	return okReply
}

func errNotInMulti(name string) Error {
	return Error("ERR lockproxy does not run '" + name + "' inside MULTI; send it before MULTI or after EXEC")
}

// enqueue keeps a command for EXEC.
func enqueue(c *call) Reply {
	t := &c.session.transaction
	q := newQueued(c.cmd, c.args)
	var refused Reply
	switch {
	case c.cmd.group == "scripting" && !c.cmd.keys.none():
		refused = queueScript(c, q)
	case q.step != nil:
	case c.cmd.flags&mayQueue == 0:
		refused = errNotInMulti(c.cmd.full)
	case c.cmd.full == "script|load":
		s, wrong, decided := loadScript(c, q.args[2])
		switch {
		case !decided:
			refused = wrong
		case wrong != nil:
			q.reply = wrong
		default:
			q.reply = Bulk(s.SHA)
		}
	case c.cmd.group != "pubsub":
		q.reply = c.cmd.run(c)
	case isOwnChannel(q.args[1]):
		q.reply = errOwnChannel
	}
	if refused == nil {
		err := t.add(c, q)
		if err == nil {
			return Status("QUEUED")
		}
		refused = errorReply(err)
	}
	t.spoil()
	return refused
}

// runExec runs the queued commands. The transaction is over in any case, even if no command ran.
func runExec(c *call) Reply {
	t := &c.session.transaction
	if !t.open() {
		return Error("ERR EXEC without MULTI")
	}
	queue, names := t.queue, t.keys()
	var refused Reply
	switch {
	case t.stage == spoiled:
		refused = errExecAbort
	case slices.ContainsFunc(t.watched, func(w *watched) bool { return w.key.DB != c.session.identity.db }):
		refused = Error("ERR the watched keys are in another database; lockproxy runs a transaction in one only: SELECT before WATCH")
	case len(names) > keysMax:
		refused = Error(fmt.Sprintf("ERR a transaction on more than %d keys; make several of it", keysMax))
	}
	if refused != nil {
		t.end()
		return refused
	}
	if len(names) == 0 {
		sl := c.claimTogether(overlapAny, nil, made)
		if sl == nil {
			return nil
		}
		t.end()
		replies := repliesSoFar(queue)
		publishQueued(c.server, queue, replies, func() { sl.resolve(outcome{done: 1, reply: replies}) })
		return nil
	}
	return execute(c, names, queue, func() ([]quorum.Mark, step) {
		//mutant: what is watched may change
		marks := t.marks()
		t.end()
		return marks, func(p *plan) Reply {
			replies := repliesSoFar(queue)
			for i, q := range queue {
				if q.step != nil {
					replies[i] = q.step(p)
				}
			}
			return replies
		}
	})
}

// repliesSoFar returns the replies known before EXEC, and null for the others.
func repliesSoFar(queue []*queued) Array {
	replies := make(Array, len(queue))
	for i, q := range queue {
		if replies[i] = q.reply; q.reply == nil {
			replies[i] = Null{}
		}
	}
	return replies
}

// publishQueued publishes the messages of a transaction after EXEC, fills in the messages' replies, and then calls done.
func publishQueued(s *Server, queue []*queued, reply Reply, done func()) {
	replies, _ := reply.(Array)
	var left atomic.Int32
	left.Store(1)
	oneLess := func() {
		if left.Add(-1) == 0 {
			done()
		}
	}
	for i, q := range queue {
		if q.step != nil || q.reply != nil {
			continue
		}
		left.Add(1)
		kind := pubsub.Channel
		if q.cmd.name == "spublish" {
			kind = pubsub.Shard
		}
		publish(s, pubsub.Topic{Kind: kind, Name: q.args[1]}, q.args[2], func(n int, err error) {
			if replies[i] = Int(n); err != nil {
				replies[i] = errorReply(err)
			}
			oneLess()
		})
	}
	oneLess()
}

// queueScript makes a step of a recognised script; other scripts cannot be part of a transaction. If the command or the
// script's text is wrong, the error becomes the command's reply within the reply of EXEC.
func queueScript(c *call, q *queued) (refused Reply) {
	find, keys, argv, wrong := scriptWords(c)
	if wrong != nil {
		q.reply = wrong
		return nil
	}
	s, wrong, decided := find(c, q.args[1])
	switch {
	case !decided: // the script may be unfit for a transaction, so the whole transaction is refused
		q.reply = wrong
		return wrong
	case wrong != nil:
		q.reply = wrong
		return nil
	}
	m := s.Meaning
	if m == nil || !m.Fits(keys, argv) || c.cmd.flags&readOnly != 0 {
		return Error("ERR script " + s.SHA + " is not understood as a lock's, so that lockproxy does not run it inside MULTI; send it before MULTI or after EXEC")
	}
	op, err := m.Bind(slices.Clone(keys), slices.Clone(argv))
	if err != nil && op.Op == 0 {
		return errorReply(err)
	}
	if quorum.Reserved(op.Key) {
		return errReserved(op.Key)
	}
	if !slices.Contains(keys, op.Key) {
		q.also = op.Key
	}
	q.step = func(p *plan) Reply {
		k := p.key(op.Key)
		switch {
		case !k.isString() && op.Alien.Fails():
			return valueReply(op.Alien.Answer(0))
		case err != nil && (op.Op != script.Extend || k.holds(op.Token)):
			return errorReply(err)
		case !k.isString():
			return valueReply(op.Alien.Answer(max(k.TTL, 0)))
		}
		return p.script(m, op)
	}
	return nil
}

// script plans a recognised script's changes to the key.
func (p *plan) script(m *script.Meaning, op script.Call) Reply {
	ttl := op.TTL
	if op.Forever {
		ttl = p.ttlMax
	}
	k := p.key(op.Key)
	o := script.Outcome{Result: script.NotMine, Value: k.Value, TTL: max(k.TTL, 0)}
	mine := k.holds(op.Token)
	if op.Add && mine {
		ttl += k.TTLMost
	}
	if refused := checkTTLMax(ttl, p.ttlMax); refused != nil {
		return refused
	}
	if !k.Exists {
		o.Result = script.Absent
	}
	switch {
	case op.Op == script.Query:
		o.Result = op.Result(k.Exists, k.Value)
	//mutant: a script in a transaction does not compare
	case op.Op == script.Release && mine:
		k.remove()
		o.Result = script.Done
	case mine && (op.Op == script.Extend || op.Op == script.AcquireOrExtend):
		k.expire(ttl)
		o.Result = script.Done
	case !k.Exists && (op.Op == script.Acquire || op.Op == script.AcquireOrExtend):
		k.put(op.Token, ttl)
		o.Result = script.Done
	}
	return valueReply(m.Answer(o))
}
