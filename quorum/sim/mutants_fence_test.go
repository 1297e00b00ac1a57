package sim

// What is taken out of rule 14.
var fenceMutants = []mutant{
	{
		name: "a fence is not written back to a quorum", rule: "14 fence", aim: "fences", classes: Fenced,
		change: becomes("kept < 0"),
	},
	{
		name: "a fence is what the clock shows", rule: "14 fence", aim: "fences", classes: Fenced,
		change: becomes("local fence = tonumber(ARGV[3])"),
	},
	{
		name: "one master keeps the fence", rule: "14 fence",
		change: becomes("t.Granted *= t.Masters; return rules.DecideAcquire(t)"),
		test:   "TestAKeptFenceIsVoid", in: ".",
	},
	{
		name: "who has forgotten tells what it knew", rule: "14 fence",
		change: becomes("l.lasting = false"),
		test:   "TestAMasterThatHasForgotten", in: ".",
	},
	{
		name: "what an unseeded master knows counts", rule: "14 fence",
		change: becomes("a.engine.fences.mayReseed(a.engine.now())"),
		test:   "TestTheFirstFence", in: ".",
	},
	{
		name: "a cleared master is seeded with what it has", rule: "14 fence", aim: "fences", classes: Fenced,
		change: becomes("keep(largest, epoch)"),
	},
	{
		name: "one other master's fence is enough", rule: "14 fence", aim: "fences", classes: Fenced,
		change: becomes("known < min(1, n-quorum+1)"),
	},
	{
		name: "one seeded master is asked", rule: "14 fence", aim: "fences", classes: Fenced,
		change: becomes("t.Granted > 0"),
	},
	{
		name: "what is asked is not heeded", rule: "14 fence",
		change: skip,
		test:   "TestAFenceRestsOnTheClock", in: ".",
	},
	{
		name: "once seeded is seeded for ever", rule: "14 fence", aim: "fences", classes: Fenced,
		change: becomes("local seeded = since ~= '0'"),
	},
	{
		name: "a raise in another epoch", rule: "14 fence",
		change: becomes("local same = ARGV[4] ~= '-1'"),
		test:   "TestARaiseOfAnotherEpoch", in: ".",
	},
	{
		name: "a kept fence is not voided by a new epoch", rule: "14 fence",
		change: skip,
		test:   "TestAKeptFenceIsVoid", in: ".",
	},
	{
		name: "a record of another epoch counts", rule: "14 fence",
		change: becomes("if from then return fence end"),
		test:   "TestARecordOfAnotherEpoch", in: ".",
	},
	{
		name: "an unseeded master keeps records", rule: "14 fence",
		change: becomes("record(KEYS[2], fence, ARGV[2])"),
		test:   "TestAMasterThatDoesNotKnow", in: ".",
	},
	{
		name: "a raise keeps a fence beside any lock", rule: "14 fence",
		change: skip,
		test:   "TestARaiseKeepsNothing", in: ".",
	},
	{
		name: "a late raise replaces a newer record", rule: "14 fence",
		change: skip,
		test:   "TestALateRaise", in: ".",
	},
	{
		name: "a fence that a master has exceeded is not raised further", rule: "14 fence",
		change: never,
		test:   "TestARaiseGoesFurther", in: ".",
	},
	{
		name: "a quorum need not be seeded", rule: "14 fence",
		change: becomes("seeded < len(a.entries)-q+1 || a.engine.fences.mayReseed(a.engine.now())"),
		test:   "TestALockOf", in: ".",
	},
	{
		name: "who missed the first fence is not seeded", rule: "14 fence",
		change: skip,
		test:   "TestAMasterThatWasAwayAtFirst", in: ".",
	},
	{
		name: "a fence runs out before its extended lock", rule: "14 fence",
		change: skip,
		test:   "TestAFenceLastsAsLong", in: ".",
	},
	{
		name: "who is asked for fences is not told the epochs", rule: "14 fence",
		change: becomes("luaHearFences = newLua(luaFences + `\nreturn {largest, seeded and 1 or 0}`)"),
		test:   "TestWhoIsAsked", in: ".",
	},
}
