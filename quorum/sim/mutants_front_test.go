package sim

// frontMutants are rules of the front end, and of the gates that it has. Worlds whose clients speak find them (package resp/sim).
var frontMutants = []mutant{
	{
		name: "the writer does not look at the validity", rule: "1 clock", file: "../resp/slot.go", front: true,
		old: "o.ttl < time.Millisecond {", new: "false {",
	},
	{
		name: "what is granted to nobody stays", rule: "12 the client is gone", file: "../resp/slot.go", front: true,
		old: "\t\ts.mu.Unlock()\n\t\to.abandon()\n\t\treturn", new: "\t\ts.mu.Unlock()\n\t\treturn",
	},
	{
		name: "what was written in part stays", rule: "12 the client is gone", file: "../resp/writer.go", front: true,
		old: "if g.end <= n {", new: "if g.end <= n || n >= 0 {",
	},
	{
		name: "who has shut down its sending side is given a lock", rule: "12 the client is gone", file: "../resp/halfclose.go", front: true,
		old: "if o.lock != nil && o.taken || sl.waits && o.done == 0 && o.err == nil {", new: "if sl.waits && o.done == 0 && o.err == nil {",
	},
	{
		name: "replies overtake each other", rule: "order of replies", file: "../resp/queue.go", front: true,
		old: "\t\ts.tail.next = sl\n\t}\n\ts.tail = sl", new: "\t\tsl.next, s.head = s.head, sl\n\t\treturn true\n\t}\n\ts.tail = sl",
	},
	{
		name: "commands overtake each other", rule: "order of commands", file: "../resp/queue.go", front: true,
		old: "\t\t\t\tfound = other\n", new: "\t\t\t\t_ = found\n",
	},
	{
		name: "the time of an attempt that is made anew begins anew", rule: "1 clock", file: "split_votes.go", front: true,
		old: "\t\treturn a.since\n", new: "\t\treturn a.start\n",
	},
	{
		name: "an attempt is made anew behind its release", rule: "order of commands", file: "../resp/slot.go", front: true,
		old: "if later.touches(sl.key) {\n\t\t\treturn false", new: "if later.touches(sl.key) {\n\t\t\treturn true",
		test: "TestAnAttemptAsksAgain", in: "../../resp",
	},
	{
		name: "what is watched may change", rule: "compare and do", file: "../resp/cmd_multi.go", front: true,
		old: "marks := t.marks()", new: "marks := t.marks()[:0]",
	},
	{
		name: "what a client saw change is as it was", rule: "compare and do", file: "../resp/transaction.go", front: true,
		old: "w.changed.Store(true)", new: "w.changed.Store(false)",
		test: "TestWhatAClientSawChange", in: "../../resp",
	},
	{
		name: "of what is watched the first counts", rule: "compare and do", file: "../resp/transaction.go", front: true, first: Spoken | Several + 1,
		old: "\treturn marks\n", new: "\treturn marks[:min(len(marks), 1)]\n",
	},
	{
		name: "MSETNX sets what is there", rule: "compare and do", file: "../resp/plan_string.go", front: true, first: Spoken | Several + 1,
		old: "if p.key(pair[0]).Exists {", new: "if p.key(pair[0]).Exists && false {",
	},
	{
		name: "what is told is not claimed", rule: "compare and do", file: "../resp/plan.go", front: true, first: Spoken | Several + 1,
		old: "k.edit.Kind = quorum.Claim", new: "k.edit.Kind = quorum.Delete",
	},
	{
		name: "a script in a transaction does not compare", rule: "release", file: "../resp/cmd_multi.go", front: true, first: Spoken | Several + 1,
		old: "case op.Op == script.Release && mine:", new: "case op.Op == script.Release:",
	},
	{
		name: "what a script takes for nobody stays", rule: "12 the client is gone", file: "../resp/slot.go", front: true, first: Spoken | Voted + 1,
		old: "if r.Lock != nil {", new: "if false {",
	},
	{
		name: "a script that is late says yes", rule: "1 clock", file: "../resp/cmd_vote.go", front: true, first: Spoken | Voted + 1,
		old: "return quorum.Value{Kind: quorum.IntValue, Int: 1}", new: "return quorum.Value{}",
	},
	{
		name: "a reader is put back only where no other came or went", rule: "4 undo", file: "script_putback.go", front: true, first: Spoken | Moved + 1,
		old: "rule.Derived && rule.Field != \"\" {", new: "rule.Derived && rule.Field == \"\" {",
	},
	{
		name: "a late release takes the lock of other readers", rule: "4 undo", file: "script_putback.go",
		old: "return holders > 1", new: "return holders > 99",
		test: "TestALateReleaseLeavesTheLockToOtherReaders", in: ".",
	},
	{
		name: "a script does not say for whom it takes", rule: "scripts", file: "../resp/cmd_vote.go", front: true, first: Spoken | Moved + 1,
		old: "rule.Field = args[i-1]", new: "_ = args[i-1]",
	},
	{
		name: "an older fence is the newest", rule: "14 fence", file: "../resp/cmd_lock.go", front: true, first: Spoken | Fenced + 1,
		old: "v.Fence == n)", new: "v.Fence >= n)",
	},
	{
		name: "a held lock is not released with its connection", rule: "hold", file: "../resp/session.go", front: true,
		old: "\ts.releaseHolds()\n", new: "",
	},
	{
		name: "a held lock is not extended", rule: "hold", file: "../resp/hold.go", front: true,
		old: "h.timer = time.AfterFunc(h.nextIn(), h.extend)", new: "h.timer = time.AfterFunc(1<<60, h.extend)",
	},
	{
		name: "a held lock is extended once", rule: "hold", file: "../resp/hold.go", front: true,
		old: "\t\th.timer.Reset(h.nextIn())", new: "",
	},
	{
		name: "a held lock that was given back is extended", rule: "hold", file: "../resp/cmd_lock.go", front: true,
		old: "\t\tc.endHoldOf(sl.key, token)\n", new: "",
	},
	{
		name: "a held lock that its client gives up by a short TTL is extended", rule: "hold", file: "../resp/hold_change.go", front: true,
		old: "\t\t\th.stop()\n\t\t\tended = append(ended, h)\n", new: "",
		test: "TestAHeldLockMayBeGivenBackAsAnyOther", in: "../../resp",
	},
	{
		name: "a held lock that its client is giving back is lost", rule: "hold", file: "../resp/hold.go", front: true,
		old: "(e.Err != nil || s.changing(h.req.Key))", new: "e.Err != nil",
		test: "TestALockThatItsClientIsGivingBackIsNotLost", in: "../../resp",
	},
	{
		name: "the loss of a held lock is not pushed", rule: "hold", file: "../resp/hold_lost.go", front: true,
		old: "if s.resp3 {", new: "if false {",
		test: "TestAHeldLockThatIsLostIsTold", in: "../../resp",
	},
	{
		name: "a loss is told to who has the lock again", rule: "hold", file: "../resp/hold_lost.go", front: true,
		old: "if !sl.out.taken || !s.lost.any() {", new: "if true {",
		test: "TestALossIsNotToldToWhoHasTheLockAgain", in: "../../resp",
	},
	{
		name: "nobody hears the bells", rule: "wait", file: "gate/queue.go", front: true,
		old: "\tg.forecast.ring(m.Master, time.Now())\n\tg.signal()", new: "",
	},
	{
		name: "waiters wake each other by turns", rule: "wait", file: "gate/forecast.go", front: true,
		old: "return free[quorum-1]", new: "return free[0]",
		test: "TestAfterARefusalItIsTriedWhenAQuorumIsFree", in: "../gate",
	},
	{
		name: "a waiter waits for the bells of all masters", rule: "wait", file: "gate/forecast.go", front: true, first: Operated | Heard + 1,
		old: "return free[quorum-1]", new: "return free[len(free)-1]",
	},
	{
		name: "the last comes first", rule: "wait", file: "gate/gate.go", front: true,
		old: "w.gate.queue = append(w.gate.queue, w)", new: "w.gate.queue = append([]*Waiter{w}, w.gate.queue...)",
	},
}
