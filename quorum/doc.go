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
// the operations: acquire.go with undo.go, change.go, read.go, write.go, and exec.go with look.go, edit.go and turn.go. Clients'
// scripts: run.go, then wrapper.go (what a master does with one), answer.go and value.go (what it tells), merge.go (the
// rules, pure), putback.go, program.go.
//
// Promises: at most one token holds a resource within the validity that its Lock promises, as long as clocks drift by no
// more than Config.DriftFactor and a quorum of masters keeps what it was told. What an attempt that failed has set is
// removed, exactly, from every master that can be reached again.
//
// Not promised: a master that forgets, by a restart without its data, a flush, an eviction or a failover, or whose clock
// jumps, may let a lock be taken twice. And two attempts with the same token, made in the same millisecond through two
// proxies, cannot be told apart by an undo.
package quorum
