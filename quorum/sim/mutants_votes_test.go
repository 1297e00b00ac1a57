package sim

// What is taken out of the rules for scripts that run by vote.
var voteMutants = []mutant{
	{
		name: "who could not look says no", rule: "release in doubt", file: "script_merge.go",
		old: "if no < min(all, Quorum(len(c.answers))) && (", new: "if no < 0 && (",
		test: "TestTheFewThatSayNo", in: "..",
	},
	{
		name: "a reader extends where its own hold is over", rule: "11 extend", file: "script_wrapper.lua",
		old: "holds[hold] or reply == 1", new: "true",
		test: "TestAReaderExtends", in: ".",
	},
	{
		name: "a TTL above the longest is refused where it was there", rule: "scripts", file: "script_wrapper.lua", front: true,
		old: "if ttl > most and ends > was[2] then", new: "if ttl > most then",
	},
	{
		name: "an old vote joins new ones, of scripts", rule: "6 quarantine", file: "script_run.go", aim: "votes", first: Voted + 1,
		old: "	case Taking:\n\t\treturn v == Granted", new: "	case Taking:\n\t\treturn false",
	},
	{
		name: "T1 of a script read after the round", rule: "1 clock", file: "script_run.go", first: Voted + 1,
		old: "until := r.began() + Validity(", new: "until := e.now() + Validity(",
	},
	{
		name: "what a script that lost has done stays", rule: "4 undo", file: "script_putback.go", first: Voted + 1,
		old: "if a != nil && r.count.wrong(a, d) {", new: "if a != nil && d == Won && r.count.wrong(a, d) {",
	},
	{
		name: "what a script has done late stays", rule: "4 undo", file: "script_run.go", first: Voted + 1,
		old: "if r.count.wrong(a, r.decision) || r.revoked", new: "if false && r.revoked",
	},
	{
		name: "what an abandoned script has done stays", rule: "12 the client is gone", file: "script_putback.go", first: Voted + 1,
		old: "	if r.takes() {\n", new: "	if false {\n",
	},
	{
		name: "a script's keys are kept without drift and grace", rule: "1 clock", file: "script_wrapper.lua", first: Voted + 1,
		old: "local more = math.ceil(lasts * factor) + extra", new: "local more = 0",
	},
	{
		name: "a script's new expiry is known by its time alone", rule: "1 clock", file: "script_wrapper.lua",
		old: "return origin[key] == 'script' or not same", new: "return not same",
		test: "TestAnExtensionToWhere", in: ".",
	},
	{
		name: "a script does not extend the horizon", rule: "7 horizon", file: "script_wrapper.lua", aim: "horizons", first: Voted + 1,
		old: "if longest > 0 and call", new: "if longest < 0 and call",
	},
	{
		name: "a script does not look whether its keys are kept", rule: "1 clock", file: "script_wrapper.lua",
		old: "must('PEXPIREAT'", new: "call('PEXPIREAT'",
		test: "TestAScriptTakesNothingWhereItCannotBeKept/PEXPIREAT", in: ".",
	},
	{
		name: "a script does not look whether the horizon lasts", rule: "7 horizon", file: "script_wrapper.lua",
		old: "must('SET'", new: "call('SET'",
		test: "TestAScriptTakesNothingWhereItCannotBeKept/SET", in: ".",
	},
	{
		name: "the TTL that a script reads is that of the key", rule: "1 clock", file: "script_wrapper.lua", first: Moved + 1,
		old: "left = left < 0 and most or math.max(1, floor((left - extra) / (1 + factor)))", new: "left = left < 0 and most or left",
	},
	{
		name: "one master that keeps a lock is a quorum", rule: "re-entrant unlock", file: "script_merge.go",
		old: "keeps(a) {\n\t\t\tn++", new: "keeps(a) {\n\t\t\tn = len(c.answers)",
		test: "TestMergesAreFinal", // and seed 13612842005750817931, which is with the regressions
	},
	{
		name: "what was put anew is put back", rule: "4 undo", file: "script_putback.go",
		old: "once = once || e.ttl == 0", new: "_ = e.ttl == 0",
		test: "TestAPutBackThatIsRepeated", in: ".",
	},
	{
		name: "a script is asked again on what it has left", rule: "4 undo", file: "script_run.go",
		old: "case divided && r.isPutBack():", new: "case divided:",
		test: "TestAScriptIsNotAskedAgainOnWhatItHasLeft", in: ".",
	},
	{
		name: "a script is asked again on what an earlier run has left", rule: "4 undo", file: "script_putback.go",
		old: "(r.before == nil || r.before.isPutBack())", new: "(r.before == nil || true)",
		test: "TestAScriptIsNotAskedAgain",
	},
	{
		name: "the time of a script that is asked again begins anew", rule: "1 clock", file: "split_votes.go",
		old: "\t\treturn r.before.began()\n", new: "\t\treturn r.start\n",
		test: "TestTheTimeOfWhatIsAskedAgain",
	},
	{
		name: "a release by vote that a master missed is not made late", rule: "4 undo", file: "script_late.go",
		old: "if !en.missed || r.req", new: "if en.missed || r.req",
		test: "TestAReleaseByVoteThatAMasterMisses", in: ".",
	},
	{
		name: "a release by vote that was answered with an error is not made late", rule: "4 undo", file: "script_run.go",
		old: "r.noteMissed(en)", new: "_ = en",
		test: "TestAReleaseByVoteThatIsAnsweredWithAnError", in: ".",
	},
	{
		name: "a release by vote that no quorum has answered is not made late", rule: "4 undo", file: "script_run.go",
		old: "\t\tr.releaseMissed()", new: "",
		test: "TestAReleaseByVoteThatNoQuorum", in: ".",
	},
	{
		name: "a release by vote is not made late where the lock is late", rule: "4 undo", file: "script_run.go",
		old: "en.releaseOwed(sig)", new: "_ = sig",
		test: "TestAReleaseByVoteIsMadeLateWhere", in: ".",
	},
	{
		name: "a release by vote that was not sent is not owed", rule: "4 undo", file: "script_late.go",
		old: "if en.fate == dropped {", new: "if false {",
		test: "TestAReleaseByVoteIsMadeLateWhere", in: ".",
	},
	{
		name: "a late release by vote goes by the content", rule: "4 undo", file: "script_putback.go",
		old: "if math.abs(at - ends) <= slack then", new: "if at ~= ends + slack + 1 then",
		test: "TestALateReleaseByVoteLeavesTheNextLock", in: ".",
	},
	{
		name: "a late release by vote takes what was granted after it", rule: "4 undo", file: "release_late.go",
		old: "g.round.Load() > round || ", new: "",
		test: "TestALateReleaseByVoteLeavesWhatWasTaken", in: ".",
	},
	{
		name: "a late release by vote goes by the expiry", rule: "4 undo", file: "script_putback.go",
		old: "(#now > 64 and redis.sha1hex(now) or now) == digest then", new: "digest then",
		test: "TestALateReleaseByVoteLeavesWhatIsNotTheSame", in: ".",
	},
	{
		name: "whatever a script deletes is deleted late", rule: "4 undo", file: "script_late.go",
		old: "|| r.req.Rule.Merge != Releasing {", new: "{",
		test: "TestWhatAScriptDeletesIsNoRelease", in: ".",
	},
	{
		name: "what takes a lock from whoever holds it is answered by a quorum", rule: "3 closing is not cancelling", file: "script_merge.go",
		old: "case c.rule.Blind && t.Pending() > 0:", new: "case false:",
		test: "TestWhatTakesALockFromWhoeverHoldsItWaits", in: ".",
	},
	{
		name: "who takes a lock away is told before a broken connection's command may run no more", rule: "3 closing is not cancelling", file: "entry.go",
		old: "f == unknown && en.round.blind", new: "false",
		test: "TestWhatTakesALockFromWhoeverHoldsItTakesNoLaterOneOver", in: ".",
	},
	{
		name: "a forced unlock by vote runs late", rule: "3 closing is not cancelling", file: "script_wrapper.lua",
		old: "if latest and now() > latest", new: "if false",
		test: "TestWhatTakesALockFromWhoeverHoldsItTakes", in: ".",
	},
	{
		name: "FORCEUNLOCK runs late", rule: "3 closing is not cancelling", file: "last_moment.go",
		old: "if t[1] * 1000", new: "if false and t[1] * 1000",
		test: "TestWhatTakesALockFromWhoeverHoldsItTakes", in: ".",
	},
	{
		name: "an error of a master is its script's", rule: "release in doubt", file: "script_run.go",
		old: "len(a.effects) == 0 && slices", new: "len(a.effects) < 0 && slices",
		test: "TestAReleaseByVoteThatIsAnsweredWithAnError", in: ".",
	},
}
