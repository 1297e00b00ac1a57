package sim

// flightMutants break what several batches under way on one connection rely on.
var flightMutants = []mutant{
	{
		name: "a batch is vouched for by the proof of a later one", rule: "5 vouching",
		change: becomes(`l.connection.flight.drain()
			p := &b.proof
			if f := &l.connection.flight; f.read > 0 {
				p = &f.batches[f.read-1].proof
			}
			b.unproven = l.assessor.vouch(p, b.keeps)`),
		test: "TestABatchIsVouchedForByItsOwnProof",
	},
	{
		name: "a batch counts that was under way when its master became suspect", rule: "5 vouching",
		change: becomes("suspected && false"), test: "TestABatchIsVouchedForByItsOwnProof",
	},
	{
		name: "a batch is judged by the clock as it was when a later one was gathered", rule: "5 vouching",
		change: becomes("l.batch = b"), test: "TestABatchIsJudgedByTheClockOfItsOwnMoment",
	},
	{
		name: "a broken connection leaves one batch unknown", rule: "4 undo",
		change: becomes("drop(l.batch.requests, cause)"), test: "TestABrokenConnectionLeavesAllBatchesUnknown",
	},
	{
		name: "a master that stands still is sent more and more", rule: "3 never close to cancel",
		change: never, test: "TestAMasterThatStandsStillIsSentNoMore",
	},
	{
		name: "a batch is late by the time that it waited behind another", rule: "3 never close to cancel",
		change: becomes(`q.clockRetry, q.handing = "", false`), test: "TestABatchIsNotLateByTheTimeThatItWaitedBehindAnother",
	},
	{
		name: "what is sent again follows a batch that has overtaken it", rule: "13 scripts",
		change: becomes("later == nil"), test: "TestNothingIsSentAgainThatALaterBatchHasOvertaken",
	},
}
