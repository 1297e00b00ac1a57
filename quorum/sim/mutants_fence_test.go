package sim

// What is taken out of rule 14.
var fenceMutants = []mutant{
	{
		name: "a fence is not written back to a quorum", rule: "14 fence", file: "fence.go", aim: "fences", first: Fenced + 1,
		old: "case kept < q:", new: "case kept < 0:",
	},
	{
		name: "a fence is what the clock shows", rule: "14 fence", file: "fence_lua.go", aim: "fences", first: Fenced + 1,
		old: "math.max(largest + 1, tonumber(ARGV[3]))", new: "tonumber(ARGV[3])",
	},
	{
		name: "one master keeps the fence", rule: "14 fence", file: "fence.go",
		old:  "func (r *fenceRaise) decide(t tally) Decision { return decideAcquire(t) }",
		new:  "func (r *fenceRaise) decide(t tally) Decision { t.Granted *= t.Masters; return decideAcquire(t) }",
		test: "TestAKeptFenceIsVoid", in: ".",
	},
	{
		name: "who has forgotten tells what it knew", rule: "14 fence", file: "fence.go",
		old: "	l.lasting = true // who", new: "	l.lasting = false // who",
		test: "TestAMasterThatHasForgotten", in: ".",
	},
	{
		name: "what an unseeded master knows counts", rule: "14 fence", file: "fence.go",
		old: "case seeded < q || ", new: "case ",
		test: "TestTheFirstFence", in: ".",
	},
	{
		name: "a cleared master is seeded with what it has", rule: "14 fence", file: "marks_lua.go", aim: "fences", first: Fenced + 1,
		old: "if fence > 0 then keep(math.max(largest, fence), epoch) end", new: "keep(largest, epoch)",
	},
	{
		name: "one other master's fence is enough", rule: "14 fence", file: "vouch/quarantine.go", aim: "fences", first: Fenced + 1,
		old: "known < n-quorum+1 {", new: "known < min(1, n-quorum+1) {",
	},
	{
		name: "one seeded master is asked", rule: "14 fence", file: "fence.go", aim: "fences", first: Fenced + 1,
		old: "case t.Granted > t.spare():", new: "case t.Granted > 0:",
	},
	{
		name: "what is asked is not heeded", rule: "14 fence", file: "fence.go",
		old: "f.fence = max(f.fence, l.most+1)", new: "",
		test: "TestAFenceRestsOnTheClock", in: ".",
	},
	{
		name: "once seeded is seeded for ever", rule: "14 fence", file: "fence_lua.go", aim: "fences", first: Fenced + 1,
		old: "local seeded = since == epoch", new: "local seeded = since ~= '0'",
	},
	{
		name: "a raise in another epoch", rule: "14 fence", file: "fence_lua.go",
		old: "local same = epoch == ARGV[4]", new: "local same = ARGV[4] ~= '-1'",
		test: "TestARaiseOfAnotherEpoch", in: ".",
	},
	{
		name: "a kept fence is not voided by a new epoch", rule: "14 fence", file: "fence.go",
		old: "	r.lasting = true\n", new: "",
		test: "TestAKeptFenceIsVoid", in: ".",
	},
	{
		name: "a record of another epoch counts", rule: "14 fence", file: "fence_lua.go",
		old: "if from == epoch then return fence end", new: "if from then return fence end",
		test: "TestARecordOfAnotherEpoch", in: ".",
	},
	{
		name: "an unseeded master keeps records", rule: "14 fence", file: "fence_lua.go",
		old: "if seeded then record(KEYS[2], fence, ARGV[2]) end", new: "record(KEYS[2], fence, ARGV[2])",
		test: "TestAMasterThatDoesNotKnow", in: ".",
	},
	{
		name: "a raise keeps a fence beside any lock", rule: "14 fence", file: "fence_lua.go",
		old: "` + luaIsOurs + `\nlocal newer", new: "local newer",
		test: "TestARaiseKeepsNothing", in: ".",
	},
	{
		name: "a late raise replaces a newer record", rule: "14 fence", file: "fence_lua.go",
		old: "if newer > fence then return newer end\n", new: "",
		test: "TestALateRaise", in: ".",
	},
	{
		name: "a fence that a master has exceeded is not raised further", rule: "14 fence", file: "fence.go",
		old: "case more > f.fence && f.raises < raisesMost:", new: "case false:",
		test: "TestARaiseGoesFurther", in: ".",
	},
	{
		name: "a quorum need not be seeded", rule: "14 fence", file: "fence.go",
		old: "case seeded < q || ", new: "case seeded < len(a.entries)-q+1 || ",
		test: "TestALockOf", in: ".",
	},
	{
		name: "who missed the first fence is not seeded", rule: "14 fence", file: "acquire.go",
		old: "		a.engine.fences.reseed()\n", new: "",
		test: "TestAMasterThatWasAwayAtFirst", in: ".",
	},
	{
		name: "a fence runs out before its extended lock", rule: "14 fence", file: "fence_lua.go",
		old: "redis.call('PEXPIRE', KEYS[2], ARGV[2])\n", new: "",
		test: "TestAFenceLastsAsLong", in: ".",
	},
	{
		name: "who is asked for fences is not told the epochs", rule: "14 fence", file: "fence_lua.go",
		old: "luaHearFences = newLua(luaMerge + luaFences + `", new: "luaHearFences = newLua(luaFences + `",
		test: "TestWhoIsAsked", in: ".",
	},
}
