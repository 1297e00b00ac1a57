package sim

// What is taken out of the rules for scripts that run by vote.
var voteMutants = []mutant{
	{
		name: "who could not look says no", rule: "release in doubt",
		change: becomes("no < 0 && (c.Rule.Merge == Releasing || c.Rule.Merge == Extending)"),
		test:   "TestTheFewThatSayNo", in: "../vote",
	},
	{
		name: "a reader extends where its own hold is over", rule: "11 extend",
		change: becomes("holds[hold] = true"),
		test:   "TestAReaderExtends", in: ".",
	},
	{
		name: "a reader's holds are known by how their names begin", rule: "11 extend",
		change: becomes("if find(hold, keys[i] .. ':' .. caller .. ':', 1, true) == 1 then"),
		test:   "TestAReaderExtends", in: ".",
	},
	{
		name: "a TTL above the longest is refused where it was there", rule: "scripts", front: true,
		change: becomes("if ttl > most then stop = 'it sets a TTL above ttl_max, ' .. most .. ' ms; ask for less, or raise ttl_max on every lockproxy' end"),
	},
	{
		name: "an old vote joins new ones, of scripts", rule: "6 quarantine", aim: "votes", classes: Voted,
		change: becomes("return false"),
	},
	{
		name: "T1 of a script read after the round", rule: "1 clock", classes: Voted,
		change: becomes("until := e.now() + rules.Validity(ttl, 0, e.cfg.DriftFactor)"),
	},
	{
		name: "what a script that lost has done stays", rule: "4 undo", classes: Voted,
		change: becomes("a != nil && d == rules.Won && r.count.IsWrong(a, d)"),
	},
	{
		name: "what a script has done late stays", rule: "4 undo", classes: Voted,
		change: becomes("false && r.revoked && a.Vote == rules.Granted"),
	},
	{
		name: "what an abandoned script has done stays", rule: "12 the client is gone", classes: Voted,
		change: never,
	},
	{
		name: "a script's keys are kept without drift and grace", rule: "1 clock", classes: Voted,
		change: becomes("local more = 0"),
	},
	{
		name: "a script's new expiry is known by its time alone", rule: "1 clock",
		change: becomes("return not same(before[key][2], ends) and (ends < 0 or origin[key] ~= 'other')"),
		test:   "TestAnExtensionToWhere", in: ".",
	},
	{
		name: "a script does not extend the horizon", rule: "7 horizon", aim: "horizons", classes: Voted,
		change: becomes("if longest < 0 and call('PTTL', '@HORIZON@') < longest then"),
	},
	{
		name: "a script does not look whether its keys are kept", rule: "1 clock",
		change: becomes("call('PEXPIREAT', key, ends)"),
		test:   "TestAScriptTakesNothingWhereItCannotBeKept/PEXPIREAT", in: ".",
	},
	{
		name: "a script does not look whether the horizon lasts", rule: "7 horizon",
		change: becomes("local must = call longest = floor(math.max(longest * 1.25, longest + 1000))"),
		test:   "TestAScriptTakesNothingWhereItCannotBeKept/SET", in: ".",
	},
	{
		name: "the TTL that a script reads is that of the key", rule: "1 clock", classes: Moved,
		change: becomes("left = left < 0 and most or left"),
	},
	{
		name: "one master that keeps a lock is a quorum", rule: "re-entrant unlock",
		change: becomes("n = len(c.Answers)"),
		test:   "TestMergesAreFinal", in: "../vote", // and seed 13612842005750817931, which is with the regressions
	},
	{
		name: "who does not answer a release had nothing to release", rule: "release in doubt",
		change: becomes("return rules.Quorum(len(c.Answers))"),
		test:   "TestMergesAreFinal", in: "../vote",
	},
	{
		name: "who waits for a lock that is free sleeps for as long as one master says", rule: "fair queue",
		change: skip,
		test:   "TestWhoWaitsForALockThatIsFree", in: "..",
	},
	{
		name: "what was put anew is put back", rule: "4 undo",
		change: becomes("_ = e.TTL == 0"),
		test:   "TestAPutBackThatIsRepeated", in: ".",
	},
	{
		name: "a script is asked again on what it has left", rule: "4 undo",
		change: becomes("divided"),
		test:   "TestAScriptIsNotAskedAgainOnWhatItHasLeft", in: ".",
	},
	{
		name: "a script is asked again on what an earlier run has left", rule: "4 undo",
		change: becomes("return true"),
		test:   "TestAScriptIsNotAskedAgain",
	},
	{
		name: "the time of a script that is asked again begins anew", rule: "1 clock",
		change: becomes("return r.start"),
		test:   "TestTheTimeOfWhatIsAskedAgain",
	},
	{
		name: "a release by vote that a master missed is not made late", rule: "4 undo",
		change: becomes("en.missed || r.req.Rule.Merge != vote.Releasing"),
		test:   "TestAReleaseByVoteThatAMasterMisses", in: ".",
	},
	{
		name: "a release by vote that was answered with an error is not made late", rule: "4 undo",
		change: becomes("_ = en"),
		test:   "TestAReleaseByVoteThatIsAnsweredWithAnError", in: ".",
	},
	{
		name: "a release by vote that no quorum has answered is not made late", rule: "4 undo",
		change: skip,
		test:   "TestAReleaseByVoteThatNoQuorum", in: ".",
	},
	{
		name: "a release by vote is not made late where the lock is late", rule: "4 undo",
		change: becomes("r.eachExpiry(a, func(sig signature, _ int64) { _ = sig })"),
		test:   "TestAReleaseByVoteIsMadeLateWhere", in: ".",
	},
	{
		name: "a release by vote that was not sent is not owed", rule: "4 undo",
		change: never,
		test:   "TestAReleaseByVoteIsMadeLateWhere", in: ".",
	},
	{
		name: "a late release by vote goes by the content", rule: "4 undo",
		change: becomes("if at ~= ends + slack + 1 then"),
		test:   "TestALateReleaseByVoteLeavesTheNextLock", in: ".",
	},
	{
		name: "a late release by vote takes what was granted after it", rule: "4 undo",
		change: becomes("g.undone.Swap(of) == of || g.undos.Add(1) > lateMax"),
		test:   "TestALateReleaseByVoteLeavesWhatWasTaken", in: ".",
	},
	{
		name: "a late release by vote goes by the expiry", rule: "4 undo",
		change: becomes("if now and digest then"),
		test:   "TestALateReleaseByVoteLeavesWhatIsNotTheSame", in: ".",
	},
	{
		name: "whatever a script deletes is deleted late", rule: "4 undo",
		change: becomes("!en.missed"),
		test:   "TestWhatAScriptDeletesIsNoRelease", in: ".",
	},
	{
		name: "what takes a lock from whoever holds it is answered by a quorum", rule: "3 closing is not cancelling",
		change: never,
		test:   "TestWhatTakesALockFromWhoeverHoldsItWaits", in: ".",
	},
	{
		name: "who takes a lock away is told before a broken connection's command may run no more", rule: "3 closing is not cancelling",
		change: never,
		test:   "TestWhatTakesALockFromWhoeverHoldsItTakesNoLaterOneOver", in: ".",
	},
	{
		name: "a forced unlock by vote runs late", rule: "3 closing is not cancelling",
		change: becomes("if false then return {err = '@LATE@'} end"),
		test:   "TestWhatTakesALockFromWhoeverHoldsItTakes", in: ".",
	},
	{
		name: "FORCEUNLOCK runs late", rule: "3 closing is not cancelling",
		change: becomes("if false and t[1] * 1000 + math.floor(t[2] / 1000) > tonumber(ARGV[1]) then return redis.error_reply('` + lateError + `') end`"),
		test:   "TestWhatTakesALockFromWhoeverHoldsItTakes", in: ".",
	},
	{
		name: "an extension by vote leaves the expiry that it found", rule: "4 undo",
		change: becomes("if false then ends, left = was[2] + gap, left + late + gap end"),
		test:   "TestAnExtensionByVoteLeavesAnotherExpiry", in: ".",
	},
	{
		name: "an error of a master is its script's", rule: "release in doubt",
		change: becomes("a.IsRaised() && len(a.Effects) < 0 && slices.Contains(incapable, code)"),
		test:   "TestAReleaseByVoteThatIsAnsweredWithAnError", in: ".",
	},
}
