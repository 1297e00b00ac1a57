// Package quorum is Redlock over N independent masters, and knows nothing of RESP.
//
// The life of one attempt:
//
//	Acquire          reads the clock (T1) and makes a round: a command for each master
//	lanes            one for each master: gather what waits, write it, read the replies, hand them out
//	round            turns each reply into a vote and asks, after each, the rule: package rules
//	attempt          takes the decision. Won: is validity left? Then it is a Lock.
//	                 Else what it set is undone, through the same lanes, before the caller is told.
//	sweeper          ends the rounds that masters do not answer in time
//
// The same as function calls: begin and push; then, in the lane's loop, gather, entry.take, exchange, handOut and entry.reply;
// then round.vote. It asks the operation of the round to read the reply and to decide, and at the end, once, calls its ended. All that
// an operation may be asked is in the interface operation (round.go).
//
// The files, in reading order:
//
//	api.go, requests.go, config.go,  the view of callers; the parts of an Engine
//	engine.go
//	package rules                    the rules, pure
//	round.go, entry.go, failure.go   how a command travels to N masters, and its answers come back as votes
//	lane.go, batch.go, flight.go,    a lane: its loop, and its batches; its queue; its connections
//	queue.go, connection.go,
//	master.go, databases.go,
//	sweeper.go
//	clock.go, suspend_*.go           the engine's time, and how long masters have had to answer
//	acquire.go, undo.go, expiry.go,  an attempt to take a lock, and how that is taken back
//	ledger.go
//	release.go, extend.go, fill.go   giving a lock back, or taking it away; extending it; giving it to masters without it
//	ask.go, read.go, views.go,       the agreed view of a quorum; of many keys, or long values, piece by piece
//	pieces.go, get_all.go, locks.go
//	write.go                         SET, whoever holds the lock
//	exec.go, edit.go, edit_undo.go,  compare and do: EXEC, GETSET and their like
//	repair.go, history.go, notice.go
//	fence.go, fence_lua.go           locks with a fencing number
//	status.go                        for operators
//	publish.go                       messages; package pubsub hears them
//	lua.go, program.go               the Lua that all these have masters run, and how it gets there
//	script*.go                       clients' scripts, run by vote: script_run.go is the round, script_outcome.go what follows, script_undo.go
//	                                 how it is taken back, script_wrapper.go with script_wrapper.lua and script_own.lua what a master
//	                                 runs, script_queue.go who is next where clients queue. Package vote has the rules, pure
//
// Whether a master may vote is asked in this order:
//
//	handshake        who answers, what its clock shows, and, by the marks on its data, whether it may have forgotten locks.
//	                 If so it gets new marks, which every proxy sees, and is in quarantine: then its grants do not count
//	proof            with each batch: are the marks the same, and did its clock run as ours did? Else the batch does not count,
//	                 and the master is assessed anew
//	checkEpochs      when votes are about to win: has none of these masters got new marks since?
//	monitor          beside all this: ends quarantines, by what the other masters remember; finds out whose clock jumped
//
// A lane holds one of each type that judges its master; none of these knows the lane, but for the two methods of an examiner:
//
//	assessor         may the master vote? Its handshake, its marks, its proofs
//	laneClock        the master's clock: what it shows, when keys are set to expire
//	horizon          until when a lock that was granted there may live
//	epochs           the masters' epochs in this database, and which master is to be told
//	recovery         the master's quarantine; its own mutex
//
// As function calls: dialer.handshake with assessor.inquire, laneClock.meet, assessor.assess, mark and adopt; assessor.vouch and, if
// need be, lane.reassess; round.cast; monitor.explain and recovery.seeThrough. The files:
//
//	assess.go, marks.go, witness.go  the handshake's part
//	vouching.go                      the proof that every batch ends with; the questions that come with a heartbeat
//	lane_clock.go, watch.go          clocks
//	roster.go                        the epochs of all masters, and how the others are told of a new one
//	horizon.go, quarantine.go,       how long a master that has forgotten must wait; who sees to that; do other proxies take the
//	monitor.go                       same names for locks?
//	package vouch                    the rules of all these, pure
//	initialise.go, inspect.go        lockproxy init and check
//
// Lock order of rounds and lanes: each is locked before those to its right.
//
//	databases.mu | tasks.mu | Engine.order | round.mu of a release, or of a script, or that raises a fence | round.mu of an attempt |
//	recovery.mu | ledger.mu | laneQueue.mu | watch.mu, master.mu
//
// Package admission says whether an operation may begin now. Where clients ask for more than can be answered in time, they wait
// in line before T1 is read.
//
// Promises: at most one token holds a resource within the validity that its Lock promises, as long as clocks drift by no
// more than Config.DriftFactor. Masters may forget, restart, be replaced, stall, and step their clocks: a vote that
// nothing vouches for does not count. What an attempt that failed has set is removed, exactly, from every master that
// can be reached again. docs/safety.md has the assumptions, and each rule with the hole that it closes.
//
// Not promised: two attempts with the same token on one resource, through two proxies, whose keys expire in the same
// millisecond cannot be told apart by an undo.
package quorum
