package quorum

import (
	"slices"

	"lockproxy/quorum/admission"
	"lockproxy/quorum/vote"
)

// All that callers ask of an Engine stands here: one method for each operation. A method makes the operation's round; the file of
// the operation has the rest. requests.go has what is asked and what is answered.

// Acquire makes one attempt to take a lock. If the lock is not granted, the keys that the attempt set on masters that answered are
// removed before done is called, or one InstanceTimeout has passed; keys on late masters are removed when these answer, and keys
// that a broken connection may have set when the next one is made. Engine.Close says how long it waits for undos.
func (e *Engine) Acquire(req AcquireRequest, done func(Acquired)) {
	e.stats.attempts.Add(1)
	(&acquireRound{req: req, asked: 1, done: done}).ask(e)
}

// Extend sets or adds to the remaining TTL of a lock that the token holds. An extension succeeds if a quorum grants it while
// validity is left, or if it gives the lock up. An extension never makes a lock that is gone (rule 11). An extension that fails, or
// is heard too late, leaves its TTL on the masters that made it. A master that has nothing of the lock is given the lock
// afterwards; see fill.go.
func (e *Engine) Extend(req ExtendRequest, done func(Extended)) {
	if req.Add {
		(&addRound{extendRound: extendRound{req: req, done: done}}).ask(e)
		return
	}
	(&extendRound{req: req, done: done}).ask(e)
}

// Release deletes the key if token holds it.
func (e *Engine) Release(key Key, token string, done func(Released)) {
	(&releaseRound{key: key, token: token, done: done}).ask(e)
}

// Ask sends a command that only reads to every master, and tells the answer that a quorum gives. So a question about
// part of a key, as one field of a hash, has an answer even where the masters differ in the rest.
func (e *Engine) Ask(req AskRequest, done func(Asked)) {
	(&askRound{unordered: req.Unordered, part: req.Part, done: done}).ask(e, req.Key, anys(req.Command))
}

// Get reads a string: the value that a quorum agrees on.
func (e *Engine) Get(key Key, done func(View)) {
	(&askRound{done: func(a Asked) { done(a.view()) }}).ask(e, key, []any{"GET", key.Name})
}

// Fence tells the newest fence of a resource, as a quorum knows it.
func (e *Engine) Fence(key Key, done func(FenceView)) {
	(&askRound{done: func(a Asked) { done(a.fence()) }}).ask(e, key, luaNewestFence.whole([]string{recordPrefix + key.Name}))
}

// GetAll tells of each key what Get tells: the value that a quorum agrees on. A key that is no string is told as absent.
func (e *Engine) GetAll(req GetAllRequest, done func([]View, error)) {
	g := &gathering{engine: e, req: req, views: make(map[string]View, len(req.Names)), sizes: make(map[string]int), done: done}
	g.measure(req.Names)
}

// Read tells all that a quorum agrees on about a key of any type.
func (e *Engine) Read(key Key, done func(View)) {
	(&readRound{done: func(l *readRound) { done(l.first()) }}).ask(e, key.DB, []string{key.Name})
}

// Peek tells of each key what Read tells, except values that are longer than shortMax. Where those are longer than longMax, masters
// compare samples of them.
func (e *Engine) Peek(db int, names []string, done func([]View, error)) {
	all := make([]View, 0, len(names))
	s := &survey{engine: e, db: db, names: names, how: sampled, done: func(err error) { done(all, err) }}
	s.each = func(_ []string, views []View, next func()) {
		all = append(all, views...)
		next()
	}
	s.next()
}

// Views asks every master what it has under a key, and waits for all of them: an InstanceTimeout, if one is late. Views
// tells what there is to tell, though fewer than a quorum answer.
func (e *Engine) Views(key Key, done func(Viewed)) {
	(&viewsRound{key: key, done: done}).ask(e)
}

// Locks tells which locks a quorum holds, through whatever proxy clients took the locks. A lock that is held from the beginning to
// the end of the search is found.
func (e *Engine) Locks(req LocksRequest, done func(FoundLocks)) {
	newSearch(e, req, done).next()
}

// Notice returns a new notice of the key. A look at the key that begins later sees what the notice does not tell.
func (e *Engine) Notice(key Key) *Notice { return e.notices.make(key) }

// Remove deletes whatever a quorum holds, and never another attempt's vote in flight.
func (e *Engine) Remove(key Key, done func(Changed)) {
	seek(e, key, func(v View) {
		if v.Err != nil || !v.Exists {
			done(Changed{Err: v.Err})
			return
		}
		(&removeRound{done: done}).ask(e, key, &v)
	})
}

// RemoveAll is Remove for each of several keys of one database, all different. It calls done for each of them.
func (e *Engine) RemoveAll(db int, names []string, done func(name string, c Changed)) {
	(&removal{engine: e, db: db, done: done}).remove(names)
}

// Expire changes the TTL of whatever a quorum holds.
func (e *Engine) Expire(req ExpireRequest, done func(Changed)) {
	seek(e, req.Key, func(v View) {
		switch {
		//mutant: what is greater than on some master is greater
		case v.Err != nil || !v.Exists || !req.Condition.Holds(req.TTL, v.TTLMost):
			done(Changed{Err: v.Err})
		case req.TTL <= 0:
			(&removeRound{done: done}).ask(e, req.Key, &v)
		default:
			(&expireRound{done: done}).ask(e, req, &v)
		}
	})
}

// Break deletes whatever any master has under a key, and rings for those that wait for it: what a quorum holds, and what
// only some have. It asks all masters and waits for each, an InstanceTimeout if one is late; what a master that is not
// reached in time has, expires there: see lastMoment. Applied says that something was there.
//
// It is an operator's means, and no rule protects whom it hits: a holder goes on believing in the lock, and an attempt
// through another proxy, a vote of which is deleted while others are being counted, may be granted one vote too few.
func (e *Engine) Break(key Key, done func(Changed)) {
	(&breakRound{removeRound: removeRound{done: done}, key: key}).ask(e)
}

// Write sets a key, whoever holds it. It is no way to take a lock: it waits for a quorum, and where it reached fewer masters
// the value stays there until its TTL is over, because it may be the value by which somebody holds the lock. A write that
// depends on what is there is made as an Exec; what that has written on too few masters is put back.
func (e *Engine) Write(req WriteRequest, done func(Written)) {
	if req.KeepTTL || req.IfExists {
		(&exchange{req: req}).exec(e, done)
		return
	}
	(&writeRound{req: req, done: done}).ask(e)
}

// Exec is compare-and-do on several keys: what GETSET, MSETNX, SET … IFEQ or KEEPTTL, and WATCH with MULTI and EXEC come to. Each
// master does all that the request's Plan says, or nothing. exec.go says why two clients cannot both win.
func (e *Engine) Exec(req ExecRequest, done func(Executed)) {
	x := &exec{engine: e, req: req, left: make([]bool, len(e.masters)), patient: e.waited().plus(execPatience * e.cfg.InstanceTimeout)}
	order := slices.Sorted(slices.Values(req.Keys))
	x.done = func(r Executed) {
		e.turns.give(req.DB, order)
		done(r)
	}
	e.turns.take(req.DB, order, x.try)
}

// Compile asks the masters whether a text is Lua, and if not, what is wrong with it, in their words. They compile the text and
// do not keep it: some masters would keep texts that nobody runs in their script caches for ever.
//
// A text that compiles by itself may be put into a wrapper (see Script).
func (e *Engine) Compile(db int, text string, done func(Compiled)) {
	(&compileRound{done: done}).ask(e, db, text)
}

// Run runs a script on every master, in one EVAL each, and merges their answers by the rule. A script that takes a lock
// is undone, where it did not win or its client is gone, as an attempt to acquire is: on masters that answered before
// done is called, or one InstanceTimeout has passed; on late ones when they answer. What a script may have done on a
// connection that broke before its answer is not known, and left to its TTL.
func (e *Engine) Run(req RunRequest, done func(Ran)) {
	e.stats.scripts.Add(1)
	if req.Rule.Merge == vote.Taking {
		e.stats.attempts.Add(1)
	}
	(&scriptRound{req: req, asked: 1, done: done}).ask(e)
}

// KillScripts ends the script that masters are busy with, on each of them (SCRIPT KILL). It does not use the lanes, which wait
// for the script. The error is nil if there was a script to end; else it is what masters answered, such as NOTBUSY, or a
// *NoQuorum if none answered.
func (e *Engine) KillScripts(done func(error)) {
	if !e.spawn(func() { done(killScripts(e)) }) {
		done(ErrClosed)
	}
}

// Poll asks every master the same question about itself, and waits for the answers of a quorum at least.
func (e *Engine) Poll(question []any, done func(Polled)) {
	(&pollRound{done: done}).ask(e, Key{}, question)
}

// Publish sends a message to the channel on every master. It is published when a quorum has it. Messages on one channel
// reach each master in the order of the calls.
func (e *Engine) Publish(channel, message string, done func(Published)) {
	(&pollRound{done: func(p Polled) { done(p.published()) }}).ask(e, Key{Name: channel}, []any{"PUBLISH", channel, seal(e.labels.next(), 0, message)})
}

// Admission holds clients back that ask for more than is answered in time. Who may ask for much asks it before each call of an
// Engine's method; the Engine itself counts, and refuses nobody.
func (e *Engine) Admission() *admission.Control { return e.load }

// Database returns the status of one. If nobody has used the database yet, its masters are being connected to from then on.
func (e *Engine) Database(db int) DatabaseStatus { return e.databases.status(db) }

// Databases returns the status of each that has lanes: of that in which clients begin, those used since, and those tended now.
func (e *Engine) Databases() []DatabaseStatus { return e.databases.statuses() }

// Masters returns the status of each master in the database in which clients begin.
func (e *Engine) Masters() []MasterStatus { return e.Database(e.cfg.FirstDatabase).Masters }

// Ready says whether a quorum can vote in the database in which clients begin.
func (e *Engine) Ready() error { return e.Database(e.cfg.FirstDatabase).Ready() }

// Stats returns the counts since the start.
func (e *Engine) Stats() Stats {
	s := e.stats.load()
	s.RoundsNow, s.RoundsLimit = e.load.Rounds()
	s.InLine = e.load.Waiting()
	return s
}

// Pending counts what the engine remembers of work that is not done: commands and undos that wait, rounds without an
// end, attempts whose fate is not known. Without requests it comes to 0, once all masters have answered.
func (e *Engine) Pending() int {
	running, _ := e.load.Rounds()
	n := e.sweeper.pending() + running + e.turns.pending()
	e.databases.each(func(l *lane) {
		n += l.queue.pending() + l.ledger.pending()
	})
	return n
}
