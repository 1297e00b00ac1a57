package quorum

import (
	"slices"

	"lockproxy/quorum/admission"
	"lockproxy/quorum/vote"
)

// The methods of an Engine, one for each operation. A method makes the operation's round; the file of the operation has the rest.
// requests.go has the requests and the outcomes.

// Acquire makes one attempt to take a lock. If the lock is not granted, the attempt's keys are removed: before done is called, or one
// InstanceTimeout has passed, on masters that answered; on late masters when these answer; and after a broken connection when the next
// connection is made. Engine.Close says how long the engine waits for undos.
func (e *Engine) Acquire(req AcquireRequest, done func(Acquired)) {
	e.stats.attempts.Add(1)
	(&acquireRound{req: req, asked: 1, done: done}).ask(e)
}

// Extend sets or adds to the remaining TTL of a lock that the token holds. An extension succeeds if a quorum grants the extension while
// validity is left, or if the client gives the lock up. An extension never makes a lock that is gone (rule 11). An extension that fails,
// or is heard too late, leaves its TTL on the masters that made the extension. A master that has nothing of the lock is given the lock
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

// HandOver is Release, and behind the release one Acquire, of a client that waits for the resource: both go to each master together, in
// this order, so the next holder has the lock one round trip after the release was asked for. Nothing else connects the two: the
// release may fail and the attempt succeed, or the other way round.
func (e *Engine) HandOver(h HandOver, released func(Released), acquired func(Acquired)) {
	e.databases.together(h.Next.Key.DB, func() {
		//mutant: an attempt goes before the release that frees the lock
		(&releaseRound{key: h.Next.Key, token: h.Token, done: released}).askNamed(e, h.Bell)
		e.Acquire(h.Next, acquired)
	})
}

// Ask sends a reading command to every master, and returns the answer of a quorum. So a question about a part of a key, such as a
// field of a hash, has an answer even where the masters differ in the rest.
func (e *Engine) Ask(req AskRequest, done func(Asked)) {
	words := make([]any, len(req.Command))
	for i, word := range req.Command {
		words[i] = word
	}
	begin(e, &askRound{unordered: req.Unordered, part: req.Part, done: done}, req.Key, words)
}

// Get reads a string: the value that a quorum agrees on.
func (e *Engine) Get(key Key, done func(View)) {
	begin(e, &askRound{done: func(a Asked) { done(a.view()) }}, key, []any{"GET", key.Name})
}

// Fence returns the newest fence of a resource, as known to a quorum.
func (e *Engine) Fence(key Key, done func(FenceView)) {
	a := &askRound{done: func(a Asked) { done(a.fence()) }}
	begin(e, a, key, a.runs(luaNewestFence, []string{recordPrefix + key.Name}))
}

// GetAll is Get for several keys: the agreed values of a quorum. A key that is no string is told as absent.
func (e *Engine) GetAll(req GetAllRequest, done func([]View, error)) {
	g := &gathering{engine: e, req: req, views: make(map[string]View, len(req.Names)), sizes: make(map[string]int), done: done}
	g.measure(req.Names)
}

// Read tells everything that a quorum agrees on about a key of any type.
func (e *Engine) Read(key Key, done func(View)) {
	(&readRound{done: func(l *readRound) { done(l.first()) }}).ask(e, key.DB, []string{key.Name})
}

// Peek is Read for several keys, without the values that are longer than shortMax. Of values that are longer than longMax, masters
// compare samples.
func (e *Engine) Peek(db int, names []string, done func([]View, error)) {
	all := make([]View, 0, len(names))
	s := &survey{engine: e, db: db, names: names, how: sampled, done: func(err error) { done(all, err) }}
	s.each = func(_ []string, views []View, next func()) {
		all = append(all, views...)
		next()
	}
	s.next()
}

// Present says for each key whether a quorum agrees on its content, compared as for Peek.
func (e *Engine) Present(db int, names []string, done func([]bool, error)) {
	all := make([]bool, 0, len(names))
	s := &survey{engine: e, db: db, names: names, how: sampled, timeless: true, done: func(err error) { done(all, err) }}
	s.each = func(_ []string, views []View, next func()) {
		for i := range views {
			all = append(all, views[i].Exists)
		}
		next()
	}
	s.next()
}

// Views asks every master for its view of a key, and waits for all masters: an InstanceTimeout, if a master is late. Views also tells the
// answers of fewer than a quorum.
func (e *Engine) Views(key Key, done func(Viewed)) {
	(&viewsRound{key: key, done: done}).ask(e)
}

// Locks returns the locks that a quorum holds, through any proxy. A lock that is held from the beginning to the end of the search is
// found.
func (e *Engine) Locks(req LocksRequest, done func(FoundLocks)) {
	newSearch(e, req, done).next()
}

// Notice returns a new notice of the key. A later look at the key sees every change that the notice does not tell.
func (e *Engine) Notice(key Key) *Notice { return e.notices.make(key) }

// Remove deletes the key that a quorum holds, and never another attempt's vote in flight.
func (e *Engine) Remove(key Key, done func(Changed)) {
	seek(e, key, func(v View) {
		if v.Err != nil || !v.Exists {
			done(Changed{Err: v.Err})
			return
		}
		(&removeRound{done: done}).ask(e, key, &v)
	})
}

// RemoveAll is Remove for several different keys of one database. RemoveAll calls done for each key.
func (e *Engine) RemoveAll(db int, names []string, done func(name string, c Changed)) {
	(&removal{engine: e, db: db, done: done}).remove(names)
}

// Expire changes the TTL of the key that a quorum holds.
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

// Break deletes a key on every master, whether a quorum or only some masters have the key, and rings for the clients that wait. Break
// asks all masters and waits for each, an InstanceTimeout if a master is late. A master that is not reached in time keeps the key until
// its TTL: see lastMoment. Applied says that a master had the key.
//
// Break is an operator's means, and no rule protects the clients: a holder goes on believing in the lock, and an attempt through another
// proxy that loses a vote during its count may be granted with a vote too few.
func (e *Engine) Break(key Key, done func(Changed)) {
	(&breakRound{removeRound: removeRound{done: done}, key: key}).ask(e)
}

// Write sets a key, whoever holds the key. Write is no way to take a lock: Write waits for a quorum, and a value that reached fewer
// masters stays there until its TTL is over, because a client may hold the lock by the same value. A write that depends on the present
// value is made as an Exec, and put back on the masters if too few masters made the write.
func (e *Engine) Write(req WriteRequest, done func(Written)) {
	if req.KeepTTL || req.IfExists {
		(&exchange{req: req}).exec(e, done)
		return
	}
	(&writeRound{req: req, done: done}).ask(e)
}

// Exec is compare-and-do on several keys: GETSET, MSETNX, SET … IFEQ or KEEPTTL, and WATCH with MULTI and EXEC. Each master does
// everything in the request's Plan, or nothing. exec.go says why two clients cannot both win.
func (e *Engine) Exec(req ExecRequest, done func(Executed)) {
	x := &exec{engine: e, req: req, left: make([]bool, len(e.masters)), patient: e.waited().plus(execPatience * e.cfg.InstanceTimeout)}
	order := slices.Sorted(slices.Values(req.Keys))
	x.done = func(r Executed) {
		e.turns.give(req.DB, order)
		done(r)
	}
	e.turns.take(req.DB, order, x.try)
}

// Compile asks the masters whether a text is Lua, and returns the masters' own refusal if not. The masters compile the text without
// keeping the text: some masters would keep unused texts in their script caches for ever.
//
// A text that compiles by itself may be put into a wrapper (see Script).
func (e *Engine) Compile(db int, text string, done func(Compiled)) {
	(&compileRound{done: done}).ask(e, db, text)
}

// Run runs a script on every master, in one EVAL each, and merges the answers by the rule. A script that takes a lock is undone if the
// script did not win, or its client is gone, just as an attempt is: on masters that answered before done is called, or one
// InstanceTimeout has passed; on late masters when these answer. The effects of a script whose connection broke before the answer are not
// known, and left to their TTL.
func (e *Engine) Run(req RunRequest, done func(Ran)) {
	e.stats.scripts.Add(1)
	if req.Rule.Merge == vote.Taking {
		e.stats.attempts.Add(1)
	}
	(&scriptRound{req: req, asked: 1, done: done}).ask(e)
}

// KillScripts ends the running script on each master (SCRIPT KILL). KillScripts does not use the lanes, which wait for the script. The
// error is nil if a script was ended; else the masters' answer, such as NOTBUSY, or a *NoQuorum if no master answered.
func (e *Engine) KillScripts(done func(error)) {
	if !e.spawn(func() { done(killScripts(e)) }) {
		done(ErrClosed)
	}
}

// Poll asks every master the same question about itself, and waits for the answers of a quorum at least.
func (e *Engine) Poll(question []any, done func(Polled)) {
	begin(e, &pollRound{done: done}, Key{}, question)
}

// Publish sends a message to the channel on every master. The message is published when a quorum has the message. Messages on a channel
// reach each master in the order of the calls.
func (e *Engine) Publish(channel, message string, done func(Published)) {
	command := []any{"PUBLISH", channel, seal(e.labels.next(), 0, message)}
	begin(e, &pollRound{done: func(p Polled) { done(p.published()) }}, Key{Name: channel}, command)
}

// Admission holds clients back whose requests cannot be answered in time. A caller with many calls asks Admission before each call of
// an Engine's method; the Engine itself counts, and refuses nobody.
func (e *Engine) Admission() *admission.Control { return e.load }

// Database returns the status of a database. The first call for an unused database has its masters connected to.
func (e *Engine) Database(db int) DatabaseStatus { return e.databases.status(db) }

// Databases returns the status of each database with lanes: the first database of clients, those used since, and those tended now.
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

// Pending counts the work that is not done: waiting commands and undos, rounds without an end, attempts of unknown fate. Without requests
// Pending comes to 0, once all masters have answered.
func (e *Engine) Pending() int {
	running, _ := e.load.Rounds()
	n := e.sweeper.pending() + running + e.turns.pending()
	e.databases.each(func(l *lane) {
		n += l.queue.pending() + l.ledger.pending()
	})
	return n
}
