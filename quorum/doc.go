// Package quorum is Redlock over N independent masters, and knows nothing of RESP.
//
// The life of one attempt:
//
//	Acquire          reads the clock (T1) and makes a round: the same command for every master
//	lanes            one for each master: gather what waits, write it, read the replies, hand them out
//	round            turns each reply into a vote and asks, after each, the rule: Decide
//	attempt          takes the decision. Won: is validity left? Then it is a Lock.
//	                 Else what it set is undone, through the same lanes, before the caller is told.
//	sweeper          ends the rounds that masters do not answer in time
//
// Reading order: decision.go and validity.go (the rules, pure), round.go, lane.go and link.go (how commands travel), then
// the operations: acquire.go with undo.go, expiry.go and owe.go, release.go, extend.go, read.go with agreement.go, change.go,
// write.go, and exec.go with look.go, edit.go and turn.go; fence.go, for locks with a fencing number; for operators views.go and
// break.go. The Lua that they have masters run is in lua.go. Clients' scripts: compile.go, run.go, then script.go, wrapper.go
// and wrapper.lua (what a master does with one), answer.go, answer_clocks.go and value.go (what it tells), merge.go (the rules, pure),
// putback.go, program.go.
//
// Then why votes count: vouching.go, with watch.go, horizon.go and warden.go, and the pure rules in package vouch.
//
// Promises: at most one token holds a resource within the validity that its Lock promises, as long as clocks drift by no
// more than Config.DriftFactor. Masters may forget, restart, be replaced, stall, and step their clocks: a vote that
// nothing vouches for does not count. What an attempt that failed has set is removed, exactly, from every master that
// can be reached again. docs/safety.md has the assumptions, and each rule with the hole that it closes.
//
// Not promised: two attempts with the same token on one resource, through two proxies, whose keys expire in the same
// millisecond cannot be told apart by an undo.
package quorum
