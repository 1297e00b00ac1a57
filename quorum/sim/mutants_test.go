package sim

import "slices"

// A mutant is one rule of the shipping code taken out. Its marker in the code says where, by the mutant's name.
type mutant struct {
	name    string
	rule    string // of what it breaks
	change  change
	aim     string // the class of worlds in which it is looked for; "" is those that aim at nothing
	classes Class  // of the seeds among which it is looked for
	front   bool   // it is looked for in worlds whose clients speak
	// both is the mutant that breaks another rule, too, which covers what this one does: it must be caught instead.
	both string
	test string // a test by name, for what no schedule of a simulation can show, or hardly any; "" if a seed must
	in   string // where that test is, seen from here; "" is package quorum
}

func allMutants() []mutant {
	return slices.Concat(mutants, flightMutants, vouchMutants, fenceMutants, voteMutants, frontMutants)
}

var mutants = []mutant{
	{
		name: "an Exec does not compare", rule: "compare and do",
		change: skip,
	},
	{
		name: "an Exec that lost is not put back", rule: "4 undo",
		change: becomes(`func(f func()) { f() }(func() {
			if d.noteLeft() {
				d.exec.again(err)
			} else {
				d.exec.done(Executed{Err: err})
			}
		})`),
		test: "TestExecThatLosesPutsBackAndLooksAgain",
	},
	{
		name: "an Exec without a quorum is not put back", rule: "4 undo",
		change: becomes("d.exec.done(Executed{Err: err})"),
		test:   "TestExecWithoutAQuorumIsPutBackOnEveryMasterThatComesBack",
	},
	{
		name: "two Execs that were beaten by each other go on in step", rule: "compare and do",
		change: becomes("x.beaten > 1<<40"),
		test:   "TestClientsThatReplaceAValueAtOnce", in: ".",
	},
	{
		name: "what an Exec did late stays", rule: "4 undo",
		change: never,
		test:   "TestWhatAnExecDoesLateIsPutBack", in: ".",
	},
	{
		name: "validity of an Exec ignored", rule: "1 clock",
		change: becomes("d.engine.catchUp() >= until+1<<40"),
	},
	{
		name: "T1 of an Exec read after the round", rule: "1 clock",
		change: becomes(`since = d.engine.now()
		until, promised = min(until, since+validity), true`),
		test: "TestExecTooLateToBeValidIsPutBack",
	},
	{
		name: "a TTL that is kept counts from the change", rule: "1 clock",
		change: becomes("since = d.start"),
		test:   "TestATTLThatIsKept",
	},
	{
		name: "each master keeps the TTL that it has", rule: "1 clock",
		change: becomes("if edit == 'replace' and reply[i + 1] > 0 then at = string.format('%.0f', reply[i + 1]) end"),
		test:   "IsThatOfAQuorum", in: ".",
	},
	{
		name: "a quorum is one less", rule: "majority",
		change: becomes("return max(n/2, 1)"),
	},
	{
		name: "a quorum is one more", rule: "majority",
		change: becomes("return n/2 + 2"),
	},
	{
		name: "lost is called won", rule: "majority",
		change: becomes("return Won"),
	},
	{
		name: "a release is decided as an acquire", rule: "release in doubt",
		change: becomes("t.Refused+t.Failed > t.Spare() && t.Answered() >= q"),
		test:   "TestNoLaterVoteOverturnsADecision", in: "../rules",
	},
	{
		name: "an extension is decided as an acquire", rule: "11 extend",
		change: becomes("return rules.DecideAcquire(t)"),
		test:   "TestAnExtensionInDoubt",
	},
	{
		name: "a read believes one master", rule: "majority",
		change: becomes("most >= 1"),
	},
	{
		name: "validity ignored", rule: "1 clock",
		change: becomes("e.catchUp() < until+1<<40"),
	},
	{
		name: "T1 read after the round", rule: "1 clock",
		change: becomes("until := e.now() + rules.Validity(a.req.TTL, 0, e.cfg.DriftFactor)"),
	},
	{
		name: "T1 of an extension read after the round", rule: "1 clock",
		change: becomes("until := x.engine.now() + rules.Validity(ttl, 0, e.cfg.DriftFactor)"),
		test:   "TestExtendCountsOnAQuorum",
	},
	{
		name: "validity without drift", rule: "1 clock",
		change: becomes("return ttl - elapsed"),
		test:   "TestValidity", in: "../rules",
	},
	{
		name: "keys kept without drift and grace", rule: "1 clock",
		change: becomes("return CeilMillis(ttl)"),
	},
	{
		name: "keys kept without drift", rule: "1 clock",
		change: becomes("return CeilMillis(ttl + grace)"),
	},
	{
		name: "an addition promises the longest TTL", rule: "11 extend",
		change: becomes("least = min(least, least+time.Duration(left)*time.Millisecond)"),
	},
	{
		name: "each master adds to what it has", rule: "11 extend",
		change: becomes("a.until > 0 && ends.Hi-ends.Lo > a.engine.uncertainty()"),
		test:   "AnAdditionIs", in: ".",
	},
	{
		name: "an addition compares TTLs, whenever each was told", rule: "11 extend",
		change: becomes(`end := en.lane.master.watch.when(now, at)
			end.Lo = now + time.Duration(left)*time.Millisecond
			end.Hi = end.Lo`),
		test: "IsNotHidden", in: ".",
	},
	{
		name: "a TTL that is kept is what was left when it was told", rule: "11 extend",
		change: becomes("until = max(until, l.start+s.left, now-now)"),
		test:   "WhenItWasTold", in: ".",
	},
	{
		name: "what is greater than on some master is greater", rule: "11 extend",
		change: becomes("v.Err != nil || !v.Exists || !req.Condition.Holds(req.TTL, v.TTL)"),
		test:   "ToBeGreater", in: ".",
	},
	{
		name: "order of rounds left to chance", rule: "2 order",
		change: becomes("stripes = stripes[:0]"),
		test:   "TestARoundIsPushedWithTheMutex",
	},
	{
		name: "rounds have their order by their first keys alone", rule: "2 order",
		change: becomes("names[:1]"),
		test:   "TestARoundIsPushedWithTheMutex",
	},
	{
		name: "closing counts as cancel", rule: "3 never close to cancel",
		change: becomes(`kill := &masters.Call{Args: []any{"PING"}}`),
		test:   "TestWhatIsLeftOfABrokenConnectionDoesNotRun", in: ".",
	},
	{
		name: "a request is written after its deadline", rule: "3 never close to cancel",
		change: becomes("r.revoked"),
		both:   "a request is written after its undo", // an attempt that has ended is revoked
	},
	{
		name: "a request is written after its undo", rule: "3 never close to cancel",
		change: never,
	},
	{
		name: "a script that was forgotten is not sent again", rule: "13 scripts",
		change: never, test: "FlushedScriptCache",
	},
	{
		name: "what is sent again follows what has overtaken it", rule: "13 scripts",
		change: never, test: "SentAgainDoesNot",
	},
	{
		name: "what is sent again goes last", rule: "13 scripts",
		change: becomes("q.requests = append(q.requests, r)"), test: "NoReleaseOvertakes",
	},
	{
		name: "silence never ends a connection", rule: "3 never close to cancel",
		change: becomes("q.batchSince != idle && !q.handing && now.since(q.batchSince) > 1<<60 && q.current != nil"),
	},
	{
		name: "no deadline", rule: "every attempt ends",
		change: becomes(`if now := r.engine.now(); now < 0 {
			en.record(rules.Failed, en.lane.queue.lateness())
		}`),
	},
	{
		name: "no undo", rule: "4 undo",
		change: becomes("after(); _ = undos"),
	},
	{
		name: "no undo of a late grant", rule: "4 undo",
		change: never,
	},
	{
		name: "no undo of what a broken connection may have set", rule: "4 undo",
		change: becomes("possible := false"),
		test:   "TestAnAttemptOnABrokenConnectionIsKilledThenUndone",
	},
	{
		name: "an undo is lost with its connection", rule: "4 undo",
		change: becomes("u.finish(); true"),
	},
	{
		name: "an undo is not repeated after an error", rule: "4 undo",
		change: becomes("again := !did && (u.unknown && u.lane.dialer.loose || !u.once && u.misses <= undoMisses)"),
		test:   "TestAnUndoAnsweredWithAnErrorIsRepeated",
	},
	{
		name: "an undo does not compare the token", rule: "4 undo", aim: "crowds", classes: Crowded,
		change: becomes("if redis.call('TYPE', KEYS[1]).ok ~= 'string' then return 0 end"),
	},
	{
		name: "an undo does not compare the expiry", rule: "4 undo", aim: "late commands",
		change: skip,
	},
	{
		name: "a late undo takes what a re-entrant attempt counts on", rule: "4 undo",
		change: becomes("elseif false then"),
		test:   "TestALateUndoTakesNoVote", in: ".",
	},
	{
		name: "a re-entrant attempt of unknown fate is undone", rule: "4 undo",
		change: becomes("possible := en.fate == unknown"),
		test:   "TestAReentryWithoutAnAnswer", in: ".",
	},
	{
		name: "a re-entrant extension is undone", rule: "4 undo",
		change: becomes(`en.took = true
		en.lane.ledger.granted(a.hash, a.place.Load(), en.expires)`),
	},
	{
		name: "two keys with one token expire alike", rule: "4 undo",
		change: becomes("at = *last"),
		test:   "TestAnUndoDoesNotTakeAVoteOfTheSameBatch",
	},
	{
		name: "an attempt gets the instant of one that is being undone", rule: "4 undo",
		change: becomes("at%(4*gap) > gap"),
		test:   "TestAnUndoThatIsRepeated",
	},
	{
		name: "a release that is turned away is not owed", rule: "4 undo",
		change: skip,
		test:   "TestAnAttemptThatIsAnsweredWhileItsReleaseIsTurnedAwayIsUndone",
	},
	{
		name: "a release that was not sent is not owed", rule: "4 undo",
		change: becomes("_ = pushed"),
		test:   "Release",
	},
	{
		name: "a release that was not sent is owed by who came after it", rule: "4 undo",
		change: becomes("return l.owed[sig].place > 0"),
		test:   "TestALateReleaseComesBeforeWhatCameAfterIt", in: ".",
	},
	{
		name: "of attempts that are lost only the last is owed for", rule: "4 undo",
		change: becomes("l.broken[sig] = []*entry{en}"),
		test:   "TestAReleaseIsMadeLateWhereSeveral", in: ".",
	},
	{
		name: "a release that a master missed is not made late", rule: "4 undo",
		change: becomes("sig != nil && false"),
		test:   "TestAReleaseThatAMasterMisses", in: ".",
	},
	{
		name: "a release that was lost is not made late", rule: "4 undo",
		change: becomes(`if f == dropped {
		en.round.operation.missed(en)
	}`),
		test: "TestAReleaseThatIsLost", in: ".",
	},
	{
		name: "a release that most masters missed is not made late", rule: "4 undo",
		change: becomes("_ = i"),
		test:   "TestAReleaseThatNoQuorum", in: ".",
	},
	{
		name: "a release that was answered with an error is not made late", rule: "4 undo",
		change: skip,
		test:   "TestAReleaseThatIsAnsweredWithAnError", in: ".",
	},
	{
		name: "a release of an extended lock is not made late", rule: "4 undo",
		change: becomes("_ = at"),
		test:   "TestAReleaseOfAnExtendedLock", in: ".",
	},
	{
		name: "a release of a lock that was added to is not made late", rule: "4 undo",
		change: becomes("at, ok = 1, true"),
		test:   "TestAReleaseIsMadeLateInWhateverWay", in: ".",
	},
	{
		name: "a release of a lock that EXPIRE extended is not made late", rule: "4 undo",
		change: becomes("luaExpireSeen = newLua(luaIfSeen + `return redis.call('PEXPIRE', KEYS[1], ARGV[3])`)"),
		test:   "TestAReleaseIsMadeLateInWhateverWay", in: ".",
	},
	{
		name: "a release of a lock that was put is not made late", rule: "4 undo",
		change: becomes("_ = at"),
		test:   "TestAReleaseOfALockThatWasPut", in: ".",
	},
	{
		name: "a release of a lock that was filled is not made late", rule: "4 undo",
		change: skip,
		test:   "TestAReleaseOfALockThatWasFilled", in: ".",
	},
	{
		name: "of grants in several databases one is known", rule: "4 undo",
		change: becomes("return &g[(hash>>32)%uint64(len(g))]"),
		test:   "TestAReleaseIsMadeLateInItsDatabase", in: ".",
	},
	{
		name: "a release is not made late where an extension is late", rule: "4 undo",
		change: becomes("false && place > 0"),
		test:   "TestAReleaseIsMadeLateWhere", in: ".",
	},
	{
		name: "a release is not made late where a re-entry is late", rule: "4 undo",
		change: never,
		test:   "TestAReleaseIsMadeLateWhere", in: ".",
	},
	{
		name: "a late release goes by the token", rule: "4 undo",
		change: becomes(`u := newUndo(l.lane, sig, expires, left)
		u.Args = luaRelease.whole([]string{sig.name}, sig.token)`),
		test: "TestALateReleaseLeavesTheNextLock", in: ".",
	},
	{
		name: "a late release takes what an extension left at a guarded instant", rule: "4 undo",
		change: becomes("local to = at - at % (4 * gap) + 3 * gap"),
		test:   "TestALateReleaseTakesNoVoteOfAReentry", in: ".",
	},
	{
		name: "an undo that is repeated takes what an extension left", rule: "4 undo",
		change: becomes("local to = at"),
		test:   "TestAnUndoThatIsRepeated", in: ".",
	},
	{
		name: "a release is made late over and over", rule: "memory stays flat",
		change: becomes("g.round.Load() > round || of == 0 || g.undos.Add(1) > lateMax"),
		test:   "TestAReleaseIsMadeLateOnce", in: ".",
	},
	{
		name: "everybody's release of a grant is made late", rule: "memory stays flat",
		change: becomes("g.round.Load() > round || g.undone.Swap(of) == of"),
		test:   "TestReleasesByOthers", in: ".",
	},
	{
		name: "a late release knows a lock only in the way in which it was taken", rule: "4 undo",
		change: becomes("return &g[(hash+uint64(l.lane.db)*31)%uint64(len(g))]"),
		test:   "TestAReleaseIsMadeLateThough", in: ".",
	},
	{
		name: "a late release follows what came after it", rule: "2 order",
		change: becomes("len(b.requests) > n"),
		test:   "TestALateReleaseComesBefore", in: ".",
	},
	{
		name: "of two keys that are put late one stays", rule: "4 undo",
		change: becomes(`en.undoing = true
			return en.newUndo(sig, k.ends[en.master], d.engine.cfg.kept(k.TTL))`),
		test: "TestEachOfTwoLocks", in: ".",
	},
	{
		name: "an undo in a later batch goes unsent", rule: "4 undo",
		change: becomes("u.gone = now + 0*rules.Drift(u.kept, 0)"),
	},
	{
		name: "the undo of what may still run is not repeated", rule: "3 late commands",
		change: becomes("again := u.Err != nil || !did && (false || !u.once && u.misses <= undoMisses)"),
		test:   "TestAnUndoIsRepeatedForWhatMayStillRun", in: ".",
	},
	{
		name: "a release does not compare", rule: "release",
		change: becomes("luaRelease = newLua(`if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end ` + luaFree)"),
	},
	{
		name: "an extension does not compare", rule: "11 extend", aim: "extensions",
		change: becomes("luaExtend = newLua(luaProlong + `if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end\nreturn prolong(KEYS[1], ARGV[2])`)"),
	},
	{
		name: "an extension makes a lock that is gone", rule: "11 extend", aim: "crowds", classes: Crowded,
		change: becomes("luaExtend = newLua(luaProlong + `redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])\n` + luaIfHeld + `return prolong(KEYS[1], ARGV[2])`)"),
	},
	{
		name: "no master is given what it lacks", rule: "11 extend", aim: "rolling", classes: Operated,
		change: skip,
	},
	{
		name: "a master where another has a vote for a moment is not given what it lacks", rule: "11 extend",
		change: becomes("en.Reply != int64(absent)"),
		test:   "TestAMasterIsGivenALockThatOthersAskFor", in: ".",
	},
	{
		name: "a fill is not tried again", rule: "11 extend",
		change: never,
		test:   "TestAMasterIsGivenALockThatOthersAskFor", in: ".",
	},
	{
		name: "each extension has a master filled that is being filled", rule: "11 extend",
		change: never,
		test:   "TestALockThatIsExtendedAgainAndAgain", in: ".",
	},
	{
		name: "a fill that has given up keeps others away", rule: "11 extend",
		change: becomes("_ = sig"),
		test:   "TestALockThatIsExtendedAgainAndAgain", in: ".",
	},
	{
		name: "a fill that is done keeps others away", rule: "11 extend",
		change: skip,
		test:   "TestAMasterIsGivenALockThatItWasGivenJustBefore", in: ".",
	},
	{
		name: "a fill that was not sent keeps others away", rule: "11 extend",
		change: skip,
		test:   "TestAFillThatIsNotSent", in: ".",
	},
	{
		name: "what was filled stays where the lock is gone", rule: "11 extend",
		change: never,
		test:   "TestALockThatIsGoneIsNotBroughtBack", in: ".",
	},
	{
		name: "a gap is filled at once", rule: "11 extend",
		change: becomes("(&fill{lane: en.lane, gap: g}).look()"),
		test:   "TestALockThatIsBeingGivenBackIsNotBroughtBack", in: ".",
	},
	{
		name: "a fill does not wait for slower proxies", rule: "11 extend",
		change: becomes("f.at = e.waited().plus(e.cfg.InstanceTimeout)"),
		test:   "TestALockThatIsGivenBackSlowlyIsNotBroughtBack", in: ".",
	},
	{
		name: "attempts wait for fills", rule: "every attempt ends",
		change: becomes("e.sweeper.add(f.at, f)"),
		test:   "TestAnAttemptDoesNotWaitForAFill", in: ".",
	},
	{
		name: "a fill outlives the lock", rule: "11 extend",
		change: skip,
		test:   "TestAFillLivesNoLongerThanTheLock", in: ".",
	},
	{
		name: "a lock that is gone is filled", rule: "11 extend",
		change: becomes("f.ends == 0"),
		test:   "TestALockThatHasBeenGivenBackByAScript", in: ".",
	},
	{
		name: "what was filled is looked at at once", rule: "11 extend",
		change: becomes("f.look()"),
		test:   "TestALockThatIsGivenBackBesideAFillIsNotBroughtBack", in: ".",
	},
	{
		name: "what was filled stays where the lock may be gone", rule: "11 extend",
		change: becomes("return filled && same+1 >= rules.Quorum(len(l.entries))"),
		test:   "TestALockThatMayBeGoneIsNotBroughtBack", in: ".",
	},
	{
		name: "what was filled stays where the lock has changed", rule: "11 extend",
		change: becomes("same, filled := 0, true"),
		test:   "TestALockThatHasChangedIsNotBroughtBack", in: ".",
	},
	{
		name: "what may have been filled stays", rule: "4 undo",
		change: skip,
		test:   "TestWhatMayHaveBeenFilledIsUndone", in: ".",
	},
	{
		name: "a master in quarantine is filled", rule: "6 quarantine",
		change: becomes("now >= f.at.plus(l.engine.cfg.InstanceTimeout) || l.clock.unsure"),
		test:   "TestAMasterInQuarantineIsNotFilled", in: ".",
	},
	{
		name: "what was forgotten is filled", rule: "6 quarantine",
		change: becomes("if time[1] * 1000 + math.floor(time[2] / 1000) >= tonumber(ARGV[3])"),
		test:   "TestAMasterThatHasForgottenIsNotFilled", in: ".",
	},
	{
		name: "a gap is filled when the validity is over", rule: "11 extend",
		change: becomes("if redis.call('GET', KEYS[2]) ~= ARGV[4]"),
		test:   "TestNothingIsFilledWhenTheValidityIsOver", in: ".",
	},
	{
		name: "a fill takes another's place", rule: "11 extend",
		change: becomes("then return 0 end"),
		test:   "TestNothingIsFilledWhereSomebodyElseHasAVote", in: ".",
	},
	{
		name: "a part of a lock is filled", rule: "11 extend",
		change: becomes("then return 1 end"),
		test:   "TestOnlyAWholeLockIsFilled/of_several", in: ".",
	},
	{
		name: "what masters do not agree on is filled", rule: "11 extend",
		change: becomes("f.ends == 0"),
		test:   "TestOnlyAWholeLockIsFilled/counted", in: ".",
	},
	{
		name: "what has keys of other names is filled", rule: "11 extend",
		change: becomes("r.req.Rule.Merge != vote.Extending"),
		test:   "TestOnlyAWholeLockIsFilled/with_keys", in: ".",
	},
	{
		name: "what nobody knows is filled", rule: "11 extend",
		change: becomes("r.req.Rule.Derived"),
		test:   "TestOnlyAWholeLockIsFilled/by_a_script", in: ".",
	},
	{
		name: "a re-entrant attempt takes any lock", rule: "majority",
		change: becomes("if v then"),
	},
	{
		name: "a re-entrant attempt that is late shortens a lock", rule: "3 late commands",
		change: becomes("if true then"),
		test:   "TestALateReentry", in: ".",
	},
	{
		name: "an old vote joins new ones", rule: "6 quarantine",
		change: becomes("return granted"),
		test:   "TestAVoteOfAnOlderCopy",
	},
	{
		name: "an older copy of a lock is extended", rule: "6 quarantine",
		change: becomes("return granted"),
		test:   "TestAnOlderCopyOfALockIsNotExtended", in: ".",
	},
	{
		name: "an older copy tells that a lock is not held", rule: "6 quarantine",
		change: becomes(`int64(other):
		return refused
	case int64(absent)`),
		test: "TestAHolderIsNotToldByAnOlderCopy", in: ".",
	},
	{
		name: "an older copy tells that nobody holds a key", rule: "6 quarantine",
		change: becomes("could = max(could, same)"),
		test:   "TestAHolderIsNotToldByAnOlderCopy", in: ".",
	},
	{
		name: "an older copy of a lock tells who holds it", rule: "6 quarantine",
		change: becomes("len(list) == 2"),
		test:   "TestAnOlderCopyOfALock", in: ".",
	},
	{
		name: "an older copy of a lock tells who holds it, when masters are asked again", rule: "6 quarantine",
		change: becomes(`(&readRound{done: func(l *readRound) {
		told.Holder = l.views[0].Value
		a.done(told)
	}}).ask(a.engine, a.req.Key.DB, []string{a.req.Key.Name})`),
		test: "TestAnOlderCopyOfALock", in: ".",
	},
	{
		name: "an older copy of a lock is extended by a script", rule: "6 quarantine",
		change: becomes("vote.Agreeing"),
		test:   "TestAnOlderCopyOfALockIsNotExtended", in: ".",
	},
	{
		name: "an old vote joins new ones, of scripts that nobody knows", rule: "6 quarantine",
		change: becomes("return len(a.Effects) == 0"),
		test:   "TestAScriptDoesNotJoinAVoteOfAnOlderCopy",
	},
	{
		name: "an older copy of a value is taken once more, by a script", rule: "6 quarantine",
		change: becomes("return slices.ContainsFunc(a.Effects, func(e vote.Effect) bool { return e.Kind != vote.Deleted })"),
		test:   "TestAnOlderCopyOfAValueIsNotTakenTwice", in: ".",
	},
	{
		name: "an older copy is replaced once more", rule: "6 quarantine",
		change: becomes("d.keys[0].was.Exists"),
		test:   "TestAnOlderCopyOfAValue", in: ".",
	},
	{
		name: "an older copy is replaced once more, by SET with GET", rule: "6 quarantine",
		change: becomes("w.req.WantOld && !old.Exists"),
		test:   "TestAnOlderCopyOfAValue", in: ".",
	},
	{
		name: "what is told is deleted in doubt", rule: "compare and do", aim: "crowds", classes: Crowded,
		change: becomes("len(edits) == 1 && edits[0].Kind >= Delete"),
	},
	{
		name: "what may be done is done again", rule: "compare and do",
		change: becomes("decision == rules.Lost"),
		test:   "TestAValueIsNotPutTwice", in: ".",
	},
	{
		name: "what a try has left is not added to the next", rule: "4 undo",
		change: becomes("d.mayHaveApplied(en)"),
		test:   "TestAValueIsNotPutByTwoTries", in: ".",
	},
	{
		name: "nobody has a key that masters differ about", rule: "compare and do",
		change: becomes("err == nil && l.unclear && false"),
		test:   "TestAnExecDoesNotTell", in: ".",
	},
	{
		name: "a deletion that is left is looked at again", rule: "4 undo",
		change: becomes("_ = deletes"),
		test:   "TestNobodyIsToldThatNothingIsThereWhich", in: ".",
	},
	{
		name: "an older copy changes what is watched", rule: "compare and do",
		change: becomes("a.master != b.master ||  a.left < 0 || b.left < 0"),
		test:   "TestAWatchedKeyChanges", in: "..",
	},
	{
		name: "an extension by little is not promised", rule: "1 clock",
		change: becomes(`return ttl < rules.TTLMin(x.engine.cfg.DriftFactor) ||
		!x.req.Fenced && ttl <= x.engine.cfg.InstanceTimeout || x.number(rules.Granted, isSooner) > 100`),
		test: "TestWhoGivesALockUp", in: ".",
	},
	{
		name: "a script's extension by little is not promised", rule: "1 clock",
		change: becomes("return e.Kind != Created && (e.TTL < g.Least || e.TTL <= g.Round)"),
		test:   "TestWhoGivesALockUp", in: ".",
	},
	{
		name: "what leaves value and expiry as they were is no change", rule: "compare and do",
		change: becomes("n.changed.Load()"),
		test:   "TestANoticeTellsOfEveryChange", in: "..",
	},
	{
		name: "what a round leaves alone is changed", rule: "compare and do",
		change: never,
		test:   "TestANoticeTellsOfEveryChange", in: "..",
	},
	{
		name: "a clock that was set changes what is watched", rule: "compare and do",
		change: becomes("_ = a.drops"),
		test:   "TestAWatchedKeyChanges", in: "..",
	},
	{
		name: "who told of what is watched is not waited for", rule: "compare and do",
		change: becomes("l.every && t.Pending() > 0"),
		test:   "TestExecWaitsForTheMastersThatWatchHeard", in: "..",
	},
	{
		name: "what is watched changes unseen where a master is away", rule: "compare and do",
		change: becomes("compared < 0"),
		test:   "TestAWatchedKeyIsExtendedWhereWatchHasNotLooked", in: "..",
	},
	{
		name: "a try that has lost waits for who was not told", rule: "compare and do",
		change: becomes("en.vote == rules.Pending"),
		test:   "TestATryThatHasLost", in: ".",
	},
	{
		name: "a master that missed a change is not repaired", rule: "15 repair",
		change: skip,
		test:   "TestAMasterThatMissedAChangeIsBroughtUpToDateByTheNext", in: ".",
	},
	{
		name: "a repair takes whatever is there", rule: "15 repair", aim: "crowds", classes: Crowded,
		change: becomes("stale = stale or kind == 'string' or redis.sha1hex(redis.call('GET', key)) == ARGV[i]"),
	},
	{
		name: "a repair does not compare the expiry", rule: "15 repair", aim: "crowds", classes: Crowded,
		change: becomes("stale = stale or kind == 'string' and redis.sha1hex(redis.call('GET', key)) == ARGV[i]"),
	},
	{
		name: "a repair is not undone with its Exec", rule: "15 repair",
		change: becomes("_ = r.undos"),
		test:   "TestARepairIsTakenBackWithItsExec", in: ".",
	},
	{
		name: "what was taken away is repaired", rule: "15 repair",
		change: becomes("now >= r.deadline || d.revoked || r.lane.clock.unsure"),
		test:   "TestARepairDoesNotBringBackWhatWasTakenAway", in: ".",
	},
	{
		name: "a deletion by doubt is repaired", rule: "15 repair",
		change: never,
		test:   "TestADeletionThatFewMade", in: ".",
	},
	{
		name: "what few masters have released is repaired", rule: "15 repair",
		change: becomes("done < q && (gone && false || k.Kind != Put || len(d.entries)-done-stale >= q)"),
		test:   "TestARepairDoesNotBringBackWhatWasReleased", in: ".",
	},
	{
		name: "a checkup goes by an older copy", rule: "15 repair",
		change: becomes("slices.ContainsFunc(all, func(s sighting) bool { return !s.Exists })"),
		test:   "TestACheckupDoesNotGoByAnOlderCopy", in: ".",
	},
	{
		name: "a checkup takes what was put anew for the past", rule: "15 repair",
		change: becomes("m.isStale(k, s)"),
		test:   "TestACheckupLeavesWhatWasPutAnew", in: ".",
	},
	{
		name: "a checkup takes another's value for its own", rule: "15 repair",
		change: becomes(`return s.Kind == "string" && s.Value == k.Value && m.of.mayHaveApplied(en)`),
		test:   "TestACheckupDoesNotFillWithAnotherTTL", in: ".",
	},
	{
		name: "what was put anew is undone", rule: "4 undo",
		change: becomes("u.once = false"),
		test:   "TestAnUndoThatIsRepeatedTakesNothing", in: ".",
	},
	{
		name: "what is put back begins to live anew", rule: "4 undo",
		change: becomes("_ = d.start + kept + rules.Drift(kept, c.DriftFactor)"),
		test:   "TestAValueWhoseTimeIsOver", in: ".",
	},
	{
		name: "what comes back is not undone", rule: "4 undo",
		change: becomes("again := u.Err != nil || !did && (u.unknown && u.lane.dialer.loose )"),
		test:   "TestWhatComesBackIsUndone", in: ".",
	},
	{
		name: "what may come back is not reckoned with", rule: "4 undo",
		change: becomes("u.clean.Store(u.Err == nil)"),
		test:   "TestAnExecEndsWhereWhatItHasPutMayComeBack", in: ".",
	},
	{
		name: "what a put displaced is looked for again", rule: "4 undo",
		change: becomes("_ = !d.displaces(&d.entries[i])"),
		test:   "TestNobodyIsToldThatNothingIsThereWhere", in: ".",
	},
	{
		name: "what is not clear is nothing", rule: "compare and do",
		change: becomes("w.req.WantOld && agreed == rules.Undecided"),
		test:   "TestOneClientIsToldThatIt", in: ".",
	},
	{
		name: "who holds a lock is what one master says", rule: "compare and do",
		change: becomes("seen[token] > 0"),
		test:   "TestWhoHoldsARefusedLock",
	},
	{
		name: "a key is set by a vague clock", rule: "5 vouch",
		change: never,
		test:   "TestNoKeyIsSetByAVagueClock", // and seed 1795282492091334283, which is with the regressions
	},
	{
		name: "what the machine slept is not counted", rule: "1 clock",
		change: becomes("raise(&c.suspended, 0)"),
		test:   "MachineSlept",
	},
	{
		name: "an abandoned lock is not undone", rule: "12 the client is gone",
		change: becomes("if l != nil { return }; l.taken.undo(func() {})"),
	},
	{
		name: "validity by the clock of patience", rule: "8 clock of the proxy",
		change: becomes("instant(e.waited()) < until"),
		test:   "ByPatience",
	},
	{
		name: "attempts of broken connections are never forgotten", rule: "memory stays flat",
		change: skip,
	},
}
