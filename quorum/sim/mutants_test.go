package sim

import "slices"

// A mutant is one rule of the engine taken out. The text must occur once in the file.
type mutant struct {
	name  string
	rule  string // of what it breaks
	file  string // in package quorum
	old   string
	new   string
	aim   string // the class of worlds in which it is looked for; "" is those that aim at nothing
	first uint64 // the seed with which looking begins; 0 is 1
	front bool   // it is looked for in worlds whose clients speak
	// both is the mutant that breaks another rule, too, which covers what this one does: it must be caught instead.
	both string
	test string // a test by name, for what no schedule of a simulation can show, or hardly any; "" if a seed must
	in   string // where that test is, seen from here; "" is package quorum
}

func allMutants() []mutant {
	return slices.Concat(mutants, vouchMutants, fenceMutants, voteMutants, frontMutants)
}

var mutants = []mutant{
	{
		name: "an Exec does not compare", rule: "compare and do", file: "lua.go",
		old: "if kind ~= ARGV[5 * i - 4] or seen ~= ARGV[5 * i - 3] then return 0 end", new: "",
	},
	{
		name: "an Exec that lost is not put back", rule: "4 undo", file: "edit.go",
		old: "	case decision == Lost && !d.mayBeDone():\n		err := d.failure()\n		d.undo(", new: "	case decision == Lost && !d.mayBeDone():\n		err := d.failure()\n		func(f func()) { f() }(",
	},
	{
		name: "an Exec without a quorum is not put back", rule: "4 undo", file: "edit.go",
		old: "d.undo(func() { d.exec.done(Executed{Err: err}) })", new: "d.exec.done(Executed{Err: err})",
		test: "TestExecWithoutAQuorumIsPutBackOnEveryMasterThatComesBack",
	},
	{
		name: "what an Exec did late stays", rule: "4 undo", file: "edit_undo.go",
		old: "	if d.revoked {\n\t\tlate", new: "	if false {\n\t\tlate",
		test: "TestWhatAnExecDoesLateIsPutBack", in: ".",
	},
	{
		name: "validity of an Exec ignored", rule: "1 clock", file: "edit.go",
		old: "if d.engine.catchUp() >= until {", new: "if d.engine.catchUp() >= until+1<<40 {",
	},
	{
		name: "T1 of an Exec read after the round", rule: "1 clock", file: "edit.go",
		old: "until, promised = min(until, since+validity), true", new: "since = d.engine.now()\n\t\tuntil, promised = min(until, since+validity), true",
	},
	{
		name: "a TTL that is kept counts from the change", rule: "1 clock", file: "edit.go",
		old: "since = d.looked.start", new: "since = d.start",
		test: "TestATTLThatIsKept",
	},
	{
		name: "each master keeps the TTL that it has", rule: "1 clock", file: "lua.go",
		old: "if edit == 'replace' and reply[i + 1] > tonumber(at) then", new: "if edit == 'replace' and reply[i + 1] > 0 then",
		test: "IsThatOfAQuorum", in: ".",
	},
	{
		name: "a quorum is one less", rule: "majority", file: "decision.go",
		old: "return n/2 + 1 }", new: "return max(n/2, 1) }",
	},
	{
		name: "a quorum is one more", rule: "majority", file: "decision.go",
		old: "return n/2 + 1 }", new: "return n/2 + 2 }",
	},
	{
		name: "lost is called won", rule: "majority", file: "decision.go",
		old: "case t.Refused+t.Failed > t.spare() && t.Answered() >= q:\n\t\treturn Lost",
		new: "case t.Refused+t.Failed > t.spare() && t.Answered() >= q:\n\t\treturn Won",
	},
	{
		name: "a release is decided as an acquire", rule: "release in doubt", file: "decision.go",
		old: "case t.Refused > t.spare() && t.Answered() >= q:", new: "case t.Refused+t.Failed > t.spare() && t.Answered() >= q:",
	},
	{
		name: "an extension is decided as an acquire", rule: "11 extend", file: "extend.go",
		old: "{ return decideExtend(t) }", new: "{ return decideAcquire(t) }",
		test: "TestAnExtensionInDoubt",
	},
	{
		name: "a read believes one master", rule: "majority", file: "decision.go",
		old: "case most >= q:\n\t\treturn best, Won", new: "case most >= 1:\n\t\treturn best, Won",
	},
	{
		name: "validity ignored", rule: "1 clock", file: "acquire.go",
		old: "if e.catchUp() < until {", new: "if e.catchUp() < until+1<<40 {",
	},
	{
		name: "T1 read after the round", rule: "1 clock", file: "acquire.go",
		old: "until := a.began() + Validity(", new: "until := e.now() + Validity(",
	},
	{
		name: "T1 of an extension read after the round", rule: "1 clock", file: "extend.go",
		old: "until := x.start + Validity(", new: "until := x.engine.now() + Validity(",
	},
	{
		name: "validity without drift", rule: "1 clock", file: "validity.go",
		old: "return ttl - elapsed - Drift(ttl, factor)", new: "return ttl - elapsed",
		test: "TestValidity",
	},
	{
		name: "keys kept without drift and grace", rule: "1 clock", file: "validity.go",
		old: "return ceilMillis(ttl + Drift(ttl, c.DriftFactor) + c.Grace)", new: "return ceilMillis(ttl)",
	},
	{
		name: "keys kept without drift", rule: "1 clock", file: "validity.go",
		old: "return ceilMillis(ttl + Drift(ttl, c.DriftFactor) + c.Grace)", new: "return ceilMillis(ttl + c.Grace)",
	},
	{
		name: "an addition promises the longest TTL", rule: "11 extend", file: "add.go",
		old: "min(least, time.Duration(left)", new: "min(least, least+time.Duration(left)",
	},
	{
		name: "each master adds to what it has", rule: "11 extend", file: "add.go",
		old: "if a.until == 0 && ends.Hi", new: "if a.until > 0 && ends.Hi",
		test: "AnAdditionIs", in: ".",
	},
	{
		name: "an addition compares TTLs, whenever each was told", rule: "11 extend", file: "add.go",
		old: "watch.when(now, at)", new: "watch.when(now, at)\n\t\t\tend.Lo = now + time.Duration(left)*time.Millisecond\n\t\t\tend.Hi = end.Lo",
		test: "IsNotHidden", in: ".",
	},
	{
		name: "a TTL that is kept is what was left when it was told", rule: "11 extend", file: "look.go",
		old: "until = max(until, e.masters[s.master].watch.when(now, s.ends).Lo)", new: "until = max(until, l.start+s.left, now-now)",
		test: "WhenItWasTold", in: ".",
	},
	{
		name: "what is greater than on some master is greater", rule: "11 extend", file: "change.go",
		old: "req.Condition.Holds(req.TTL, v.TTLMost)", new: "req.Condition.Holds(req.TTL, v.TTL)",
		test: "ToBeGreater", in: ".",
	},
	{
		name: "order of rounds left to chance", rule: "2 order", file: "round.go",
		old: "slices.Compact(stripes)", new: "stripes[:0]",
		test: "TestARoundIsPushedWithTheMutex",
	},
	{
		name: "rounds have their order by their first keys alone", rule: "2 order", file: "round.go",
		old: "range names {", new: "range names[:1] {",
		test: "TestARoundIsPushedWithTheMutex",
	},
	{
		name: "closing counts as cancel", rule: "3 never close to cancel", file: "link.go",
		old: `[]any{"CLIENT", "KILL", "ID", last.clientID}`, new: `[]any{"PING"}`,
		test: "TestWhatIsLeftOfABrokenConnectionDoesNotRun", in: ".",
	},
	{
		name: "a request is written after its deadline", rule: "3 never close to cancel", file: "entry.go",
		old: "case now >= r.deadline || r.revoked:", new: "case r.revoked:",
		both: "a request is written after its undo", // an attempt that has ended is revoked
	},
	{
		name: "a request is written after its undo", rule: "3 never close to cancel", file: "entry.go",
		old: "case now >= r.deadline || r.revoked:", new: "case false:",
	},
	{
		name: "a script that was forgotten is not sent again", rule: "13 scripts", file: "batch.go",
		old: "if l.sendAgain(i) {", new: "if false {", test: "FlushedScriptCache",
	},
	{
		name: "what is sent again follows what has overtaken it", rule: "13 scripts", file: "program.go",
		old: "if slices.ContainsFunc(l.batch[i+1:], en.overtakenBy) {", new: "if false {", test: "SentAgainDoesNot",
	},
	{
		name: "what is sent again goes last", rule: "13 scripts", file: "program.go",
		old: "l.queue = slices.Insert(l.queue, l.repeated, r)", new: "l.queue = append(l.queue, r)", test: "NoReleaseOvertakes",
	},
	{
		name: "silence never ends a connection", rule: "3 never close to cancel", file: "lane.go",
		old: "now.since(l.busy) > l.engine.cfg.MasterDeadAfter", new: "now.since(l.busy) > 1<<60",
	},
	{
		name: "no deadline", rule: "every attempt ends", file: "round.go",
		old: "\t\ten.record(Failed, en.lane.lateness())", new: "\t\tif now := r.engine.now(); now < 0 {\n\t\t\ten.record(Failed, en.lane.lateness())\n\t\t}",
	},
	{
		name: "no undo", rule: "4 undo", file: "acquire.go",
		old: "\tpushUndos(a.engine, undos, after)", new: "\tafter()",
	},
	{
		name: "no undo of a late grant", rule: "4 undo", file: "acquire.go",
		old: "} else if a.revoked {", new: "} else if false {",
	},
	{
		name: "no undo of what a broken connection may have set", rule: "4 undo", file: "acquire.go",
		old: "possible := en.fate == unknown && !a.req.Reentrant", new: "possible := false",
	},
	{
		name: "an undo is lost with its connection", rule: "4 undo", file: "undo.go",
		old: "if !u.lane.pushUndo(u) {", new: "if u.finish(); true {",
	},
	{
		name: "an undo is not repeated after an error", rule: "4 undo", file: "undo.go",
		old: "again := u.Err != nil || !did", new: "again := !did",
		test: "TestAnUndoAnsweredWithAnErrorIsRepeated",
	},
	{
		name: "an undo does not compare the token", rule: "4 undo", file: "lua.go", aim: "crowds", first: Crowded + 1,
		old: " or redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end\nlocal at", new: " then return 0 end\nlocal at",
	},
	{
		name: "an undo does not compare the expiry", rule: "4 undo", aim: "late commands", file: "lua.go",
		old: "if math.abs(at - ARGV[2]) > slack then return 0 end", new: "",
	},
	{
		name: "a late undo takes what a re-entrant attempt counts on", rule: "4 undo", file: "lua.go",
		old: "elseif at < guarded - slack then", new: "elseif false then",
		test: "TestALateUndoTakesNoVote", in: ".",
	},
	{
		name: "a re-entrant attempt of unknown fate is undone", rule: "4 undo", file: "acquire.go",
		old: "possible := en.fate == unknown && !a.req.Reentrant", new: "possible := en.fate == unknown",
		test: "TestAReentryWithoutAnAnswer", in: ".",
	},
	{
		name: "a re-entrant extension is undone", rule: "4 undo", file: "acquire.go",
		old: "case int64(2): // it held the lock already, and has extended it\n", new: "case int64(2):\n\t\ten.took = true\n",
	},
	{
		name: "two keys with one token expire alike", rule: "4 undo", file: "expiry.go",
		old: "at = *last + gap", new: "at = *last",
		test: "TestAnUndoDoesNotTakeAVoteOfTheSameBatch",
	},
	{
		name: "an attempt gets the instant of one that is being undone", rule: "4 undo", file: "expiry.go",
		old: " || e.isUndone(hash, at, gap)", new: "",
		test: "TestAnUndoThatIsRepeated",
	},
	{
		name: "a release that was not sent is not owed", rule: "4 undo", file: "release_owed.go",
		old: "\t\tl.owed[sig] = debt{max(l.owed[sig].place, place), l.pushed}", new: "",
		test: "Release",
	},
	{
		name: "a release that was not sent is owed by who came after it", rule: "4 undo", file: "release_owed.go",
		old: "return l.owed[sig].place > place", new: "return l.owed[sig].place > 0",
		test: "TestALateReleaseComesBeforeWhatCameAfterIt", in: ".",
	},
	{
		name: "of attempts that are lost only the last is owed for", rule: "4 undo", file: "release_owed.go",
		old: "append(l.broken[sig], en)", new: "[]*entry{en}",
		test: "TestAReleaseIsMadeLateWhereSeveral", in: ".",
	},
	{
		name: "a release that a master missed is not made late", rule: "4 undo", file: "release_late.go",
		old: "sig != nil && !en.missed {", new: "sig != nil && false {",
		test: "TestAReleaseThatAMasterMisses", in: ".",
	},
	{
		name: "a release that was lost is not made late", rule: "4 undo", file: "entry.go",
		old: "en.round.owner.missed(en)\n\ten.round.vote(", new: "if f == dropped {\n\t\ten.round.owner.missed(en)\n\t}\n\ten.round.vote(",
		test: "TestAReleaseThatIsLost", in: ".",
	},
	{
		name: "a release that most masters missed is not made late", rule: "4 undo", file: "round.go",
		old: "o.missed(&r.entries[i])", new: "_ = i",
		test: "TestAReleaseThatNoQuorum", in: ".",
	},
	{
		name: "a release that was answered with an error is not made late", rule: "4 undo", file: "entry.go",
		old: "en.lane.complain(en.Err, now)\n\t\ten.round.owner.missed(en)", new: "en.lane.complain(en.Err, now)",
		test: "TestAReleaseThatIsAnsweredWithAnError", in: ".",
	},
	{
		name: "a release of an extended lock is not made late", rule: "4 undo", file: "extend.go",
		old: "en.lane.granted(sig.hash(), en.round.place.Load(), at)", new: "_ = at",
		test: "TestAReleaseOfAnExtendedLock", in: ".",
	},
	{
		name: "a release of a lock that was added to is not made late", rule: "4 undo", file: "extend.go",
		old: "at, ok = sum[1].(int64)", new: "at, ok = 1, true",
		test: "TestAReleaseIsMadeLateInWhateverWay", in: ".",
	},
	{
		name: "a release of a lock that EXPIRE extended is not made late", rule: "4 undo", file: "lua.go",
		old: "luaProlong + `return prolong(KEYS[1], ARGV[3])`", new: "`return redis.call('PEXPIRE', KEYS[1], ARGV[3])`",
		test: "TestAReleaseIsMadeLateInWhateverWay", in: ".",
	},
	{
		name: "a release of a lock that was put is not made late", rule: "4 undo", file: "release_late.go",
		old: "en.lane.granted(k.hash, d.place.Load(), at)", new: "_ = at",
		test: "TestAReleaseOfALockThatWasPut", in: ".",
	},
	{
		name: "a release of a lock that was filled is not made late", rule: "4 undo", file: "fill.go",
		old: "f.lane.granted(f.gap.signature().hash(), f.lane.engine.rounds.Load(), f.ends)", new: "",
		test: "TestAReleaseOfALockThatWasFilled", in: ".",
	},
	{
		name: "of grants in several databases one is known", rule: "4 undo", file: "release_late.go",
		old: "+uint64(l.db)*31", new: "",
		test: "TestAReleaseIsMadeLateInItsDatabase", in: ".",
	},
	{
		name: "a release is not made late where an extension is late", rule: "4 undo", file: "release_late.go",
		old: "en.lane.owes(sig, place) {", new: "false && place > 0 {",
		test: "TestAReleaseIsMadeLateWhere", in: ".",
	},
	{
		name: "a release is not made late where a re-entry is late", rule: "4 undo", file: "acquire.go",
		old: "case owed:", new: "case false:",
		test: "TestAReleaseIsMadeLateWhere", in: ".",
	},
	{
		name: "a late release goes by the token", rule: "4 undo", file: "release_late.go",
		old: "newUndo(l, sig, expires, left)", new: "newUndo(l, sig, expires, left)\n\t\tu.Args = luaRelease.whole([]string{sig.name}, sig.token)",
		test: "TestALateReleaseLeavesTheNextLock", in: ".",
	},
	{
		name: "a late release takes what an extension left at a guarded instant", rule: "4 undo", file: "lua.go",
		old: "at % (4 * gap) + 2 * gap", new: "at % (4 * gap) + 3 * gap",
		test: "TestALateReleaseTakesNoVoteOfAReentry", in: ".",
	},
	{
		name: "an undo that is repeated takes what an extension left", rule: "4 undo", file: "lua.go",
		old: "local to = at - at % (4 * gap) + 2 * gap", new: "local to = at",
		test: "TestAnUndoThatIsRepeated", in: ".",
	},
	{
		name: "a release is made late over and over", rule: "memory stays flat", file: "release_late.go",
		old: " || g.undone.Swap(of) == of ||", new: " || of == 0 ||",
		test: "TestAReleaseIsMadeLateOnce", in: ".",
	},
	{
		name: "everybody's release of a grant is made late", rule: "memory stays flat", file: "release_late.go",
		old: " || g.undos.Add(1) > lateMax {", new: " {",
		test: "TestReleasesByOthers", in: ".",
	},
	{
		name: "a late release knows a lock only in the way in which it was taken", rule: "4 undo", file: "release_late.go",
		old: "(hash>>32+uint64(l.db)*31)", new: "(hash+uint64(l.db)*31)",
		test: "TestAReleaseIsMadeLateThough", in: ".",
	},
	{
		name: "a late release follows what came after it", rule: "2 order", file: "batch.go",
		old: "if len(l.batch) < n {", new: "if len(l.batch) > n {",
		test: "TestALateReleaseComesBefore", in: ".",
	},
	{
		name: "of two keys that are put late one stays", rule: "4 undo", file: "edit_undo.go",
		old: "return en.newUndo(sig, ", new: "en.undoing = true\n\t\t\treturn en.newUndo(sig, ",
		test: "TestEachOfTwoLocks", in: ".",
	},
	{
		name: "an undo in a later batch goes unsent", rule: "4 undo", file: "undo.go",
		old: "u.gone = now + u.kept + Drift(u.kept, u.lane.engine.cfg.DriftFactor)", new: "u.gone = now",
	},
	{
		name: "the undo of what may still run is not repeated", rule: "3 late commands", file: "undo.go",
		old: "u.unknown && u.lane.loose", new: "false",
		test: "TestAnUndoIsRepeatedForWhatMayStillRun", in: ".",
	},
	{
		name: "a release does not compare", rule: "release", file: "lua.go",
		old: "luaRelease = newLua(luaIfHeld + luaFree)", new: "luaRelease = newLua(`if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end ` + luaFree)",
	},
	{
		name: "an extension does not compare", rule: "11 extend", aim: "extensions", file: "lua.go",
		old: "luaExtend = newLua(luaProlong + luaIfHeld + `", new: "luaExtend = newLua(luaProlong + `if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end\n",
	},
	{
		name: "an extension makes a lock that is gone", rule: "11 extend", file: "lua.go", aim: "crowds", first: Crowded + 1,
		old: "luaExtend = newLua(luaProlong + luaIfHeld",
		new: "luaExtend = newLua(luaProlong + `redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])\n` + luaIfHeld",
	},
	{
		name: "no master is given what it lacks", rule: "11 extend", aim: "rolling", first: Operated + 1, file: "extend.go",
		old: "\tx.fill()\n\tx.lock", new: "\tx.lock",
	},
	{
		name: "a master where another has a vote for a moment is not given what it lacks", rule: "11 extend", file: "extend.go",
		old: "if en.Reply != int64(absent) && en.Reply != int64(other) {", new: "if en.Reply != int64(absent) {",
		test: "TestAMasterIsGivenALockThatOthersAskFor", in: ".",
	},
	{
		name: "a fill is not tried again", rule: "11 extend", file: "fill.go",
		old: "f.tries < fillTries {", new: "false {",
		test: "TestAMasterIsGivenALockThatOthersAskFor", in: ".",
	},
	{
		name: "each extension has a master filled that is being filled", rule: "11 extend", file: "fill.go",
		old: "if l.filling[sig] {", new: "if false {",
		test: "TestALockThatIsExtendedAgainAndAgain", in: ".",
	},
	{
		name: "a fill that has given up keeps others away", rule: "11 extend", file: "fill.go",
		old: "delete(l.filling, sig)", new: "_ = sig",
		test: "TestALockThatIsExtendedAgainAndAgain", in: ".",
	},
	{
		name: "a fill that is done keeps others away", rule: "11 extend", file: "fill.go",
		old: "\t\tf.over()\n\t\tf.lane.granted", new: "\t\tf.lane.granted",
		test: "TestAMasterIsGivenALockThatItWasGivenJustBefore", in: ".",
	},
	{
		name: "a fill that was not sent keeps others away", rule: "11 extend", file: "lane.go",
		old: "\t\t\tr.over()\n", new: "",
		test: "TestAFillThatIsNotSent", in: ".",
	},
	{
		name: "what was filled stays where the lock is gone", rule: "11 extend", file: "fill.go",
		old: "case !there && f.ends != 0:", new: "case false:",
		test: "TestALockThatIsGoneIsNotBroughtBack", in: ".",
	},
	{
		name: "a gap is filled at once", rule: "11 extend", file: "fill.go",
		old:  "(&fill{lane: en.lane, gap: g}).wait()",
		new:  "(&fill{lane: en.lane, gap: g}).look()",
		test: "TestALockThatIsBeingGivenBackIsNotBroughtBack", in: ".",
	},
	{
		name: "a fill does not wait for slower proxies", rule: "11 extend", file: "fill.go",
		old: "e.bounds.Load().Patience", new: "e.cfg.InstanceTimeout",
		test: "TestALockThatIsGivenBackSlowlyIsNotBroughtBack", in: ".",
	},
	{
		name: "attempts wait for fills", rule: "every attempt ends", file: "fill.go",
		old: "e.fills.add(f)", new: "e.sweeper.add(f)",
		test: "TestAnAttemptDoesNotWaitForAFill", in: ".",
	},
	{
		name: "a fill outlives the lock", rule: "11 extend", file: "fill.go",
		old: "f.kept = min(f.kept, l.engine.lasts(s.left))", new: "",
		test: "TestAFillLivesNoLongerThanTheLock", in: ".",
	},
	{
		name: "a lock that is gone is filled", rule: "11 extend", file: "fill.go",
		old: "case there && f.ends == 0:", new: "case f.ends == 0:",
		test: "TestALockThatHasBeenGivenBackByAScript", in: ".",
	},
	{
		name: "what was filled is looked at at once", rule: "11 extend", file: "fill.go",
		old: "f.ends)\n\t\tf.wait()", new: "f.ends)\n\t\tf.look()",
		test: "TestALockThatIsGivenBackBesideAFillIsNotBroughtBack", in: ".",
	},
	{
		name: "what was filled stays where the lock may be gone", rule: "11 extend", file: "fill.go",
		old: "same >= Quorum(", new: "same+1 >= Quorum(",
		test: "TestALockThatMayBeGoneIsNotBroughtBack", in: ".",
	},
	{
		name: "what was filled stays where the lock has changed", rule: "11 extend", file: "fill.go",
		old: "same, filled := 0, f.ends == 0", new: "same, filled := 0, true",
		test: "TestALockThatHasChangedIsNotBroughtBack", in: ".",
	},
	{
		name: "what may have been filled stays", rule: "4 undo", file: "fill.go",
		old: "func (f *fill) lost(string) { f.takeBack() }", new: "func (f *fill) lost(string) {}",
		test: "TestWhatMayHaveBeenFilledIsUndone", in: ".",
	},
	{
		name: "a master in quarantine is filled", rule: "6 quarantine", file: "fill.go",
		old: ` || l.quarantineCause() != ""`, new: "",
		test: "TestAMasterInQuarantineIsNotFilled", in: ".",
	},
	{
		name: "what was forgotten is filled", rule: "6 quarantine", file: "lua.go",
		old: " or redis.call('GET', KEYS[2]) ~= ARGV[4]", new: "",
		test: "TestAMasterThatHasForgottenIsNotFilled", in: ".",
	},
	{
		name: "a gap is filled when the validity is over", rule: "11 extend", file: "lua.go",
		old: "if time[1] * 1000 + math.floor(time[2] / 1000) >= tonumber(ARGV[3]) or", new: "if",
		test: "TestNothingIsFilledWhenTheValidityIsOver", in: ".",
	},
	{
		name: "a fill takes another's place", rule: "11 extend", file: "lua.go",
		old: "\n  or redis.call('EXISTS', KEYS[1]) == 1 then", new: " then",
		test: "TestNothingIsFilledWhereSomebodyElseHasAVote", in: ".",
	},
	{
		name: "a part of a lock is filled", rule: "11 extend", file: "lua.go",
		old: "\n  and (kind == 'string' or kind == 'hash' and #redis.call('HGETALL', KEYS[1]) == 2) then", new: " then",
		test: "TestOnlyAWholeLockIsFilled/of_several", in: ".",
	},
	{
		name: "what masters do not agree on is filled", rule: "11 extend", file: "fill.go",
		old: "case there && f.ends == 0:", new: "case f.ends == 0:",
		test: "TestOnlyAWholeLockIsFilled/counted", in: ".",
	},
	{
		name: "what has keys of other names is filled", rule: "11 extend", file: "script_run.go",
		old: "Extending || r.req.Rule.Derived {", new: "Extending {",
		test: "TestOnlyAWholeLockIsFilled/with_keys", in: ".",
	},
	{
		name: "what nobody knows is filled", rule: "11 extend", file: "script_run.go",
		old: "if r.req.Rule.Merge != Extending || r.req", new: "if r.req",
		test: "TestOnlyAWholeLockIsFilled/by_a_script", in: ".",
	},
	{
		name: "a re-entrant attempt takes any lock", rule: "majority", file: "lua.go",
		old: "if v == ARGV[1] then\n  local at, slack", new: "if v then\n  local at, slack",
	},
	{
		name: "a re-entrant attempt that is late shortens a lock", rule: "3 late commands", file: "lua.go",
		old: "if at < tonumber(ARGV[2]) then\n    redis", new: "if true then\n    redis",
		test: "TestALateReentry", in: ".",
	},
	{
		name: "an old vote joins new ones", rule: "6 quarantine", file: "acquire.go",
		old: "return grantedIfClean // it may", new: "return granted // it may",
		test: "TestAVoteOfAnOlderCopy",
	},
	{
		name: "an older copy of a lock is extended", rule: "6 quarantine", file: "extend.go",
		old: "return grantedIfClean // an older", new: "return granted // an older",
		test: "TestAnOlderCopyOfALockIsNotExtended", in: ".",
	},
	{
		name: "an older copy tells that a lock is not held", rule: "6 quarantine", file: "ballot.go",
		old: "case int64(absent), int64(other): // what an older", new: "case int64(other):\n\t\treturn refused\n\tcase int64(absent): // what an older",
		test: "TestAHolderIsNotToldByAnOlderCopy", in: ".",
	},
	{
		name: "an older copy tells that nobody holds a key", rule: "6 quarantine", file: "decision.go",
		old: "could = max(could, same+old)", new: "could = max(could, same)",
		test: "TestAHolderIsNotToldByAnOlderCopy", in: ".",
	},
	{
		name: "an older copy of a lock tells who holds it", rule: "6 quarantine", file: "acquire.go",
		old: "len(list) == 2 && en.clean {", new: "len(list) == 2 {",
		test: "TestAnOlderCopyOfALock", in: ".",
	},
	{
		name: "an older copy of a lock tells who holds it, when masters are asked again", rule: "6 quarantine", file: "acquire.go",
		old: "&looking{every: true, done: func(l *looking) {\n\t\ttold", new: "&looking{done: func(l *looking) {\n\t\ttold",
		test: "TestAnOlderCopyOfALock", in: ".",
	},
	{
		name: "an older copy of a lock is extended by a script", rule: "6 quarantine", file: "script_run.go",
		old: "	case Agreeing, Extending:", new: "	case Agreeing:",
		test: "TestAnOlderCopyOfALockIsNotExtended", in: ".",
	},
	{
		name: "an old vote joins new ones, of scripts that nobody knows", rule: "6 quarantine", file: "script_run.go",
		old: "	case Agreeing, Extending:\n		return true", new: "	case Agreeing, Extending:\n		return len(a.effects) == 0",
		test: "TestAScriptDoesNotJoinAVoteOfAnOlderCopy",
	},
	{
		name: "an older copy of a value is taken once more, by a script", rule: "6 quarantine", file: "script_run.go",
		old:  "	case Agreeing, Extending:\n		return true",
		new:  "	case Agreeing, Extending:\n		return slices.ContainsFunc(a.effects, func(e effect) bool { return e.kind != deleted })",
		test: "TestAnOlderCopyOfAValueIsNotTakenTwice", in: ".",
	},
	{
		name: "an older copy is replaced once more", rule: "6 quarantine", file: "edit.go",
		old: "if d.releases != nil {\n\t\t\treturn granted", new: "if d.keys[0].was.Exists {\n\t\t\treturn granted",
		test: "TestAnOlderCopyOfAValue", in: ".",
	},
	{
		name: "an older copy is replaced once more, by SET with GET", rule: "6 quarantine", file: "write.go",
		old: "if w.req.WantOld { // of", new: "if w.req.WantOld && !old.exists { // of",
		test: "TestAnOlderCopyOfAValue", in: ".",
	},
	{
		name: "what is told is deleted in doubt", rule: "compare and do", file: "edit.go", aim: "crowds", first: Crowded + 1,
		old: "edits[0].Kind == Delete {", new: "edits[0].Kind >= Delete {",
	},
	{
		name: "what may be done is done again", rule: "compare and do", file: "edit.go",
		old: "decision == Lost && !d.mayBeDone():", new: "decision == Lost:",
		test: "TestAValueIsNotPutTwice", in: ".",
	}, {
		name: "what a try has left is not added to the next", rule: "4 undo", file: "edit_undo.go",
		old: "d.exec.left[en.master] || d.mayHaveApplied", new: "d.mayHaveApplied",
		test: "TestAValueIsNotPutByTwoTries", in: ".",
	},
	{
		name: "nobody has a key that masters differ about", rule: "compare and do", file: "exec.go",
		old: "err == nil && l.unclear", new: "err == nil && l.unclear && false",
		test: "TestAnExecDoesNotTell", in: ".",
	},
	{
		name: "a deletion that is left is looked at again", rule: "4 undo", file: "edit_undo.go",
		old: "again = again && deletes == 0", new: "_ = deletes",
		test: "TestNobodyIsToldThatNothingIsThereWhich", in: ".",
	},
	{
		name: "an older copy changes what is watched", rule: "compare and do", file: "exec.go",
		old: "a.epoch != b.epoch ||", new: "",
		test: "TestAWatchedKeyChanges", in: "..",
	},
	{
		name: "an extension by little is not promised", rule: "1 clock", file: "extend.go",
		old: " && x.number(Granted, isSooner) > 0", new: " || x.number(Granted, isSooner) > 100",
		test: "TestWhoGivesALockUp", in: ".",
	},
	{
		name: "a script's extension by little is not promised", rule: "1 clock", file: "script_answer.go",
		old: "e.ttl <= g.round && e.isSooner()", new: "e.ttl <= g.round",
		test: "TestWhoGivesALockUp", in: ".",
	},
	{
		name: "a clock that was set changes what is watched", rule: "compare and do", file: "exec.go",
		old: "b.drops = a.drops", new: "_ = a.drops",
		test: "TestAWatchedKeyChanges", in: "..",
	},
	{
		name: "who told of what is watched is not waited for", rule: "compare and do", file: "look.go",
		old: " || slices.ContainsFunc(l.marks, l.awaits)", new: "",
		test: "TestExecWaitsForTheMastersThatWatchHeard", in: "..",
	},
	{
		name: "what is watched changes unseen where a master is away", rule: "compare and do", file: "exec.go",
		old: "compared < len(m.told)", new: "compared < 0",
		test: "TestAWatchedKeyIsExtendedWhereWatchHasNotLooked", in: "..",
	},
	{
		name: "a try that has lost waits for who was not told", rule: "compare and do", file: "edit.go",
		old: "en.vote == Pending && en.fate == sent {", new: "en.vote == Pending {",
		test: "TestATryThatHasLost", in: ".",
	},
	{
		name: "a master that missed a change is not repaired", rule: "15 repair", file: "edit.go",
		old: "d.repair()\n	d.exec.done(done)", new: "d.exec.done(done)",
		test: "TestAMasterThatMissedAChangeIsBroughtUpToDateByTheNext", in: ".",
	},
	{
		name: "a repair takes whatever is there", rule: "15 repair", file: "lua.go", aim: "crowds", first: Crowded + 1,
		old: "stale = stale or kind == 'string' and math.abs(ends - ARGV[i + 1]) <= 2 * slack and", new: "stale = stale or kind == 'string' or",
	},
	{
		name: "a repair does not compare the expiry", rule: "15 repair", file: "lua.go", aim: "crowds", first: Crowded + 1,
		old: "kind == 'string' and math.abs(ends - ARGV[i + 1]) <= 2 * slack and", new: "kind == 'string' and",
	},
	{
		name: "a repair is not undone with its Exec", rule: "15 repair", file: "edit_undo.go",
		old: "undos = append(undos, r.undos()...)", new: "_ = r.undos",
		test: "TestARepairIsTakenBackWithItsExec", in: ".",
	},
	{
		name: "what was taken away is repaired", rule: "15 repair", file: "repair.go",
		old: "|| !d.missedBy(r.master) {", new: "{",
		test: "TestARepairDoesNotBringBackWhatWasTakenAway", in: ".",
	},
	{
		name: "a deletion by doubt is repaired", rule: "15 repair", file: "repair.go",
		old: "if d.tally.Granted < Quorum(len(d.entries)) {", new: "if false {",
		test: "TestADeletionThatFewMade", in: ".",
	},
	{
		name: "what few masters have released is repaired", rule: "15 repair", file: "repair.go",
		old: "(gone || k.Kind", new: "(gone && false || k.Kind",
		test: "TestARepairDoesNotBringBackWhatWasReleased", in: ".",
	},
	{
		name: "a checkup goes by an older copy", rule: "15 repair", file: "look.go",
		old: "if l.every || slices", new: "if slices",
		test: "TestACheckupDoesNotGoByAnOlderCopy", in: ".",
	},
	{
		name: "a checkup takes what was put anew for the past", rule: "15 repair", file: "repair.go",
		old: "case d.missedBy(s.master) && d.isStale(k, s):", new: "case d.isStale(k, s):",
		test: "TestACheckupLeavesWhatWasPutAnew", in: ".",
	},
	{
		name: "a checkup takes another's value for its own", rule: "15 repair", file: "repair.go",
		old: "d.mayHaveApplied(en) && isNear(s.ends, d.lasts(en, k))", new: "d.mayHaveApplied(en)",
		test: "TestACheckupDoesNotFillWithAnotherTTL", in: ".",
	},
	{
		name: "what was put anew is undone", rule: "4 undo", file: "edit_undo.go",
		old: "u.once = k.KeepTTL", new: "u.once = false",
		test: "TestAnUndoThatIsRepeatedTakesNothing", in: ".",
	},
	{
		name: "what is put back begins to live anew", rule: "4 undo", file: "edit_undo.go",
		old: "u.gone = d.start + kept", new: "_ = d.start + kept",
		test: "TestAValueWhoseTimeIsOver", in: ".",
	},
	{
		name: "what comes back is not undone", rule: "4 undo", file: "undo.go",
		old: "|| !u.once && u.misses <= undoMisses)", new: ")",
		test: "TestWhatComesBackIsUndone", in: ".",
	},
	{
		name: "what may come back is not reckoned with", rule: "4 undo", file: "undo.go",
		old: "u.clean.Store(did)", new: "u.clean.Store(u.Err == nil)",
		test: "TestAnExecEndsWhereWhatItHasPutMayComeBack", in: ".",
	},
	{
		name: "what a put displaced is looked for again", rule: "4 undo", file: "edit_undo.go",
		old: "again = again && !d.displaces(", new: "_ = !d.displaces(",
		test: "TestNobodyIsToldThatNothingIsThereWhere", in: ".",
	},
	{
		name: "what is not clear is nothing", rule: "compare and do", file: "write.go",
		old: "w.req.WantOld && agreed != Won", new: "w.req.WantOld && agreed == Undecided",
		test: "TestOneClientIsToldThatIt", in: ".",
	},
	{
		name: "who holds a lock is what one master says", rule: "compare and do", file: "acquire.go",
		old: "seen[token] >= Quorum(len(a.entries))", new: "seen[token] > 0",
		test: "TestWhoHoldsARefusedLock",
	},
	{
		name: "a key is set by a vague clock", rule: "5 vouch", file: "entry.go",
		old: "case r.dates && en.lane.clockUnsure:", new: "case false:",
		test: "TestNoKeyIsSetByAVagueClock", // and seed 1795282492091334283, which is with the regressions
	},
	{
		name: "what the machine slept is not counted", rule: "1 clock", file: "clock.go",
		old: "raise(&e.suspended, int64(e.cfg.Slept(now)))", new: "raise(&e.suspended, 0)",
		test: "MachineSlept",
	},
	{
		name: "an abandoned lock is not undone", rule: "12 the client is gone", file: "lock.go",
		old: "func (l *Lock) Abandon() { ", new: "func (l *Lock) Abandon() { if l != nil { return }; ",
	},
	{
		name: "validity by the clock of patience", rule: "8 clock of the proxy", file: "acquire.go",
		old: "if e.catchUp() < until {", new: "if instant(e.waited()) < until {",
		test: "ByPatience",
	},
	{
		name: "attempts of broken connections are never forgotten", rule: "memory stays flat", file: "link.go",
		old: "l.down, l.current, l.broken = \"\", next, nil", new: "l.down, l.current = \"\", next",
	},
}
