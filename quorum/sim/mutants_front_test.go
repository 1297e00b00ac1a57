package sim

// frontMutants are rules of the front end, and of the gates that it has. Worlds whose clients speak find them (package resp/sim).
var frontMutants = []mutant{
	{
		name: "the writer does not look at the validity", rule: "1 clock", front: true,
		change: never,
	},
	{
		name: "what is granted to nobody stays", rule: "12 the client is gone", front: true,
		change: skip,
	},
	{
		name: "what was written in part stays", rule: "12 the client is gone", front: true,
		change: becomes("g.end <= n || n >= 0"),
	},
	{
		name: "who has shut down its sending side is given a lock", rule: "12 the client is gone", front: true,
		change: becomes("sl.waits && o.done == 0 && o.err == nil"),
	},
	{
		name: "replies overtake each other", rule: "order of replies", front: true,
		change: becomes(`sl.next, r.head = r.head, sl
		return true`),
	},
	{
		name: "commands overtake each other", rule: "order of commands", front: true,
		change: becomes("_ = found"),
	},
	{
		name: "the time of an attempt that is made anew begins anew", rule: "1 clock", front: true,
		change: becomes("return a.start"),
	},
	{
		name: "an attempt is made anew behind its release", rule: "order of commands", front: true,
		change: becomes("return true"),
		test:   "TestAnAttemptAsksAgain", in: "../../resp",
	},
	{
		name: "what is watched may change", rule: "compare and do", front: true,
		change: becomes("marks := t.marks()[:0]"),
	},
	{
		name: "what a client saw change is as it was", rule: "compare and do", front: true,
		change: becomes("w.changed.Store(false)"),
		test:   "TestWhatAClientSawChange", in: "../../resp",
	},
	{
		name: "of what is watched the first counts", rule: "compare and do", front: true, classes: Spoken | Several,
		change: becomes("return marks[:min(len(marks), 1)]"),
	},
	{
		name: "a repair brings back what was deleted meanwhile", rule: "compare and do", front: true, classes: Spoken | Several,
		change: skip,
	},
	{
		name: "MSETNX sets what is there", rule: "compare and do", front: true, classes: Spoken | Several,
		change: becomes("p.key(pair[0]).Exists && false"),
	},
	{
		name: "what is told is not claimed", rule: "compare and do", front: true, classes: Spoken | Several,
		change: becomes("k.edit.Kind = quorum.Delete"),
	},
	{
		name: "a script in a transaction does not compare", rule: "release", front: true, classes: Spoken | Several,
		change: becomes("op.Op == script.Release"),
	},
	{
		name: "what a script takes for nobody stays", rule: "12 the client is gone", front: true, classes: Spoken | Voted,
		change: never,
	},
	{
		name: "a script that is late says yes", rule: "1 clock", front: true, classes: Spoken | Voted,
		change: becomes("return vote.Value{}"),
	},
	{
		name: "a reader is put back only where no other came or went", rule: "4 undo",
		change: becomes(`rule.Derived && rule.Field == ""`),
		test:   "TestAReaderIsPutBack", in: ".",
	},
	{
		name: "a late release takes the lock of other readers", rule: "4 undo",
		change: becomes("return holders > 99"),
		test:   "TestALateReleaseLeavesTheLockToOtherReaders", in: ".",
	},
	{
		name: "a script does not say for whom it takes", rule: "scripts", front: true,
		change: becomes("_ = args[i-1]"),
		test:   "TestOfALockThatCountsHolds", in: "../../resp",
	},
	{
		name: "an older fence is the newest", rule: "14 fence", front: true, classes: Spoken | Fenced,
		change: becomes("sl.resolve(outcome{err: v.Err, done: count(n > 0 && v.Fence >= n)})"),
	},
	{
		name: "a held lock is not released with its connection", rule: "hold", front: true,
		change: skip,
	},
	{
		name: "a held lock is not extended", rule: "hold", front: true,
		change: becomes("h.timer = time.AfterFunc(1<<60, h.extend)"),
	},
	{
		name: "a held lock is extended once", rule: "hold", front: true,
		change: skip,
	},
	{
		name: "a hold shortens what its client has added", rule: "hold", front: true,
		change: never,
		test:   "TestAHeldLockKeepsTheTTL", in: "../../resp",
	},
	{
		name: "a held lock that was given back is extended", rule: "hold", front: true,
		change: skip,
	},
	{
		name: "a held lock that its client gives up by a short TTL is extended", rule: "hold", front: true,
		change: becomes("continue"),
		test:   "TestAHeldLockMayBeGivenBackAsAnyOther", in: "../../resp",
	},
	{
		name: "a held lock that its client is giving back is lost", rule: "hold", front: true,
		change: becomes("left > 0 && e.Err != nil"),
		test:   "TestALockThatItsClientIsGivingBackIsNotLost", in: "../../resp",
	},
	{
		name: "the loss of a held lock is not pushed", rule: "hold", front: true,
		change: never,
		test:   "TestAHeldLockThatIsLostIsTold", in: "../../resp",
	},
	{
		name: "a loss is told to who has the lock again", rule: "hold", front: true,
		change: always,
		test:   "TestALossIsNotToldToWhoHasTheLockAgain", in: "../../resp",
	},
	{
		name: "nobody hears the bells", rule: "wait", front: true,
		change: becomes("return"),
	},
	{
		name: "waiters wake each other by turns", rule: "wait", front: true,
		change: becomes("return free[0]"),
		test:   "TestAfterARefusalItIsTriedWhenAQuorumIsFree", in: "../gate",
	},
	{
		name: "a waiter waits for the bells of all masters", rule: "wait", front: true, classes: Operated | Spoken | Queued,
		change: becomes("return free[len(free)-1]"),
	},
	{
		name: "the last comes first", rule: "wait", front: true,
		change: becomes("w.gate.queue = append([]*Waiter{w}, w.gate.queue...)"),
	},
	{
		name: "an attempt goes before the release that frees the lock", rule: "wait",
		change: becomes("defer (&releaseRound{key: h.Next.Key, token: h.Token, done: released}).askNamed(e, h.Bell)"),
		test:   "TestALockIsHandedOverInOneRoundTrip",
	},
	{
		name: "whoever names a token has the lock handed over", rule: "wait",
		change: becomes("known || gate != nil"),
		test:   "TestOnlyTheHolderHandsOver", in: "../gate",
	},
	{
		name: "the waiters of one proxy keep a resource for themselves", rule: "wait",
		change: becomes("!known"),
		test:   "TestTheWaitersOfOneProxyLetOthersHaveTheLock", in: "../gate",
	},
	{
		name: "a waiter tries beside its handover", rule: "wait",
		change: never,
		test:   "TestBellsOfOtherReleasesDuringAHandoverCount", in: "../gate",
	},
	{
		name: "a handover counts as no try of its waiter", rule: "wait",
		change: skip,
		test:   "TestOneReleaseHandsOverOnce|TestAWaitThatEndsDuringItsHandover", in: "../gate",
	},
	{
		name: "the bells of a handover wake the next waiter", rule: "wait",
		change: becomes(`strings.HasPrefix(m.Payload, "")`),
		test:   "TestBellsOfAHandoverAreLate", in: "../gate",
	},
	{
		name: "bells that come after a handover that failed are not heard", rule: "wait",
		change: skip,
		test:   "TestTheBellsOfAHandoverThatFailedCount", in: "../gate",
	},
	{
		name: "bells that came before a handover failed are forgotten", rule: "wait",
		change: becomes("0"),
		test:   "TestTheBellsOfAHandoverThatFailedCount", in: "../gate",
	},
	{
		name: "bells of other releases during a handover are forgotten", rule: "wait",
		change: never,
		test:   "TestBellsOfOtherReleasesDuringAHandoverCount", in: "../gate",
	},
	{
		name: "a handover that failed is told to its waiter", rule: "wait",
		change: becomes("w.over = a.Lock != nil || a.Err != nil || w.late"),
		test:   "TestTheBellsOfAHandoverThatFailedCount", in: "../gate",
	},
	{
		name: "a lock is handed over to a waiter who hears no bells", rule: "wait",
		change: becomes("gate == nil || g.closed"),
		test:   "TestNobodyIsHandedALockBeforeItHearsTheBells", in: "../gate",
	},
}
