package sim

// What is taken out of rules 5 to 9.
var vouchMutants = []mutant{
	{
		name: "a changed canary is not noticed", rule: "5 vouch",
		change: never,
	},
	{
		name: "data that comes back in quarantine votes", rule: "5 vouch",
		change: never,
		test:   "ComesBack",
	},
	{
		name: "a jump of the clock costs no votes", rule: "5 vouch", aim: "clocks",
		change: never,
	},
	{
		name: "any step forwards of a clock is tolerated", rule: "5 vouch", aim: "clocks",
		change: becomes("c.ahead > 1<<62"),
	},
	{
		name: "what cannot be told of a clock is ignored", rule: "5 vouch",
		change: always,
		test:   "TestAStepThatTheWayHides",
	},
	{
		name: "what was known of a clock is what the latest look tells", rule: "5 vouch",
		change: becomes("f.slow, f.low, f.usual = false, l.low, min(f.usual, l.width)"),
		test:   "TestAStepThatTheWayHides",
	},
	{
		name: "looks that stay slow never count", rule: "5 vouch",
		change: never,
		test:   "TestSlowLooksCount", in: "../vouch",
	},
	{
		name: "a slow look counts at once", rule: "5 vouch",
		change: becomes("l.width <= most"),
		test:   "TestSlowLooksCount", in: "../vouch",
	},
	{
		name: "what a clock may have stepped is never forgiven", rule: "5 vouch",
		change: skip,
		test:   "TestSlowLooksCount", in: "../vouch",
	},
	{
		name: "what a clock has dropped is known when it is set back", rule: "5 vouch",
		change: skip,
		test:   "TestNoKeyIsMissedTooEarly", in: "../vouch",
	},
	{
		name: "a jump back hides what was dropped before", rule: "5 vouch",
		change: becomes("f.known, f.stale, f.slow = false, false, false"),
		test:   "TestNoKeyIsMissedTooEarly", in: "../vouch",
	},
	{
		name: "what is set expires by a clock that is ahead", rule: "5 vouch",
		change: becomes("return c.generation != c.master.watch.restarts.Load() || chosenBy == -1<<62"),
		test:   "TestWhatIsSetAfterAStep",
	},
	{
		name: "nothing is kept in addition", rule: "5 vouch",
		change: becomes("c.kept = c.now"),
		test:   "TestAMasterWhoseWayGetsLonger",
	},
	{
		name: "a proxy watches clocks by its own settings alone", rule: "5 vouch",
		change: skip,
		test:   "TestAProxyThatComesLater", in: ".",
	},
	{
		name: "stricter settings that come later are not kept to", rule: "5 vouch",
		change: skip,
		test:   "MoreStrictlyWhen", in: ".",
	},
	{
		name: "a replica votes", rule: "5 vouch", aim: "replicas",
		change: never,
	},
	{
		name: "a quarantined master's grants count", rule: "6 quarantine",
		change: becomes("return failure{}"),
	},
	{
		name: "no quarantine without a canary", rule: "6 quarantine",
		change: becomes("return Assessment{Renew, New, now}"),
	},
	{
		name: "no quarantine after a restart", rule: "6 quarantine", aim: "restarts",
		change: becomes("restarted && next.DB < 0"),
	},
	{
		name: "no quarantine of a promoted replica", rule: "6 quarantine", aim: "replicas",
		change: becomes("next.DB < 0 && (restarted || was.Lineage != now.Lineage)"),
	},
	{
		name: "no quarantine after SWAPDB", rule: "6 quarantine",
		change: becomes("next.DB < 0"),
		test:   "TestSwappedDatabasesAreForgottenOnes",
	},
	{
		name: "no quarantine after a jump forwards", rule: "6 quarantine", aim: "clocks",
		change: becomes("ahead > 1<<62"),
	},
	{
		name: "a jump is forgotten before it is confirmed", rule: "6 quarantine",
		change: becomes(`w.endSuspicion(0)
	go func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.confirmations++
	}()`),
		test: "TestAJumpIsConfirmed",
	},
	{
		name: "a clock that was judged is marked at the next heartbeat", rule: "6 quarantine",
		change: becomes("_ = master"), test: "TestAMasterIsMarkedAsSoonAsItsClockIsJudged",
	},
	{
		name: "everysec counts as always", rule: "6 quarantine", aim: "restarts",
		change: becomes(`return i.AppendOnly && i.AppendFsync != "" && !i.AppendPauses && i.RunID != "" && i.Replicas == 0`),
	},
	{
		name: "one database's lane knows what is kept on disk", rule: "6 quarantine",
		change: becomes("a.db == 0 && told.TellsAppend()"),
		test:   "TestSettingsOfAMaster", in: ".",
	},
	{
		name: "an epoch outlasts what is kept on disk", rule: "7b older files",
		change: never,
		test:   "TestWhatAServerTellsOfItsLife", in: "../vouch",
	},
	{
		name: "who keeps less on disk is no longer behind", rule: "7b older files",
		change: becomes("next.Epoch = max(was.Epoch+1, now.Epoch)"),
		test:   "TestAServerThatIsBackAndKeepsLess", in: ".",
	},
	{
		name: "a file of an earlier epoch counts as all that was known", rule: "7b older files",
		change: never,
		test:   "TestAFileThatWasWrittenNoMoreIsQuarantinedAtOnce", in: ".",
	},
	{
		name: "a file that was loaded in part counts as all that was known", rule: "7b older files",
		change: never,
		test:   "TestJudge", in: "../vouch",
	},
	{
		name: "a file that is not what was loaded counts as all", rule: "7b older files",
		change: becomes("return i.KeepsAll() && !i.AnswersFirst(patience)"),
		test:   "TestWhatWasLoadedInPartMayForget", in: "../masters",
	},
	{
		name: "a witness that was not loaded is not missed", rule: "7b older files",
		change: becomes("_ = witnessed"),
		test:   "TestAFileThatIsLoadedInPart", in: ".",
	},
	{
		name: "the witness is not written anew for a new file", rule: "7b older files",
		change: becomes("ok && is.Durable && is.Process == info.RunID && w.stands.runID != now.runID"),
		test:   "TestAFileThatIsLoadedInPart", in: ".",
	},
	{
		name: "another master's data counts as its own", rule: "7b older files",
		change: never,
		test:   "TestJudge", in: "../vouch",
	},
	{
		name: "nobody is told of an epoch without a quarantine", rule: "7b older files",
		change: skip,
		test:   "TestWhoComesLaterHears", in: ".",
	},
	{
		name: "a proxy that starts tells nobody of epochs", rule: "7b older files",
		change: becomes(`known != 0 && known < epoch && found.quarantine == ""`),
		test:   "TestWhoComesLaterTells", in: ".",
	},
	{
		name: "who is away is told of an epoch once", rule: "7b older files",
		change: never,
		test:   "TestWhoComesLaterHears", in: ".",
	},
	{
		name: "an epoch without a quarantine forgets the fences", rule: "14 fence",
		change: skip,
		test:   "TestWhoToggles", in: ".",
	},
	{
		name: "an append-only file that is turned on is not noticed", rule: "6 quarantine",
		change: becomes(`now.Role != was.Role || now.RunID != was.RunID || now.Lineage != was.Lineage ||
		now.Evicts() != was.Evicts() || now.Evicted != was.Evicted || a.isDurable(&now) != a.isDurable(&was)`), test: "TestWhoToggles", in: ".",
	},
	{
		name: "fsync always is not noticed", rule: "6 quarantine",
		change: never, test: "TestWhoToggles", in: ".",
	},
	{
		name: "a replica's old copy counts as durable", rule: "6 quarantine", aim: "replicas",
		change: becomes(`return i.AppendOnly && i.AppendFsync == "always" && !i.AppendPauses && i.RunID != ""`),
	},
	{
		name: "the quarantine is not written on the master", rule: "6 quarantine",
		change: skip,
	},
	{
		name: "a grant from before the quarantine counts", rule: "6 quarantine",
		change: becomes("en.vote == rules.Granted && en.epoch < 0"),
		// Attempts end before a quarantine does, but where one process stands still and the world goes on.
		test: "TestAGrantIsVoid",
	},
	{
		name: "what masters tell of epochs is not heard", rule: "7a epochs", aim: "addresses", classes: Operated,
		change: becomes("_ = epoch"),
	},
	{
		name: "a server that was replaced votes while it is connected", rule: "7a epochs",
		change: never,
		test:   "TestAServerThatWasReplaced",
	},
	{
		name: "a server to which the address leads back votes at once", rule: "7a epochs",
		change: becomes(`_, j.Finding, j.Next.Epoch = cmp.Or(""), vouch.Renew, now.Epoch`),
		test:   "TestAServerThatIsBack", in: ".",
	},
	{
		name: "a server that was replaced is marked anew at once", rule: "7a epochs",
		change: becomes("return 0"),
		test:   "TestAServerThatIsBack", in: ".",
	},
	{
		name: "servers that come to an epoch at once come to the same one", rule: "7a epochs",
		change: becomes("return max(known+1, time.Now().UnixMicro()) + 0*int64(apart)"),
		test:   "TestServersThatAreMarkedAtOnce", in: ".",
	},
	{
		name: "who was away is not told of a quarantine that ended by itself", rule: "7a epochs",
		change: becomes("_ = was.said"),
		test:   "TestWhoWasAwayHears", in: ".",
	},
	{
		name: "an earlier server tells how long a quarantine lasts", rule: "7a epochs",
		change: becomes("maps.DeleteFunc(q.said, func(int, vouch.Report) bool { return false })"),
		test:   "TestWhatAnEarlierServerSays", in: ".",
	},
	{
		name: "init: auto marks a master whatever it carries by then", rule: "6 quarantine",
		change: becomes("if false and (redis.call('GET', KEYS[1]) ~= ARGV[2] or redis.call('GET', KEYS[2]) ~= ARGV[3]) then return 0 end"),
		test:   "NotInitialisedByAProxy", in: ".",
	},
	{
		name: "init: auto looks once", rule: "6 quarantine",
		change: becomes("before == nil || slices.EqualFunc(before, found, isMarkedAlike)"),
		test:   "NotInitialisedByAProxy", in: ".",
	},
	{
		name: "a quarantine lasts as long as the locks of its proxy", rule: "7 horizon",
		change: becomes(`b.Kept = was.Kept
	next := was.And(b)`),
		test: "TestAQuarantineOutlasts", in: ".",
	},
	{
		name: "a horizon is taken for over", rule: "7 horizon", aim: "horizons",
		change: becomes("q.Until, q.Known = min(q.Until, now), true"),
	},
	{
		name: "one other master's horizon is enough", rule: "7 horizon", aim: "horizons",
		change: becomes("clean < min(1, n-quorum+1)"),
	},
	{
		name: "the horizon of a quarantined master is believed", rule: "7 horizon", aim: "horizons",
		change: always,
	},
	{
		name: "the horizon is never extended", rule: "7 horizon", aim: "horizons",
		change: becomes("b.keeps = min(0, r.keeps())"),
	},
	{
		name: "a horizon is known by a clock that was set back since", rule: "7 horizon",
		change: becomes("h.until = max(h.clock.heard, sent) + ms"),
		test:   "SetBack", in: ".",
	},
	{
		name: "the horizon is not extended for an extension", rule: "7 horizon", aim: "extensions",
		change: becomes(`args := x.args()
		x.keeps, x.lasting = 0, true
		begin(e, x, x.req.Key, args)`),
	},
	{
		name: "a proxy that slept quarantines all masters", rule: "8 clock of the proxy",
		change: becomes("own && by == 1"),
		test:   "TestAProxyThatWasSuspendedQuarantinesNobody",
	},
	{
		name: "jumps that differ are a standstill", rule: "8 clock of the proxy",
		change: becomes("by, own, sure := vouch.Standstill(jumps, bounds.DriftFactor, e.cfg.InstanceTimeout+50*time.Millisecond)"),
		test:   "TestClocksThatJumpDifferentlyAreNoStandstill",
	},
	{
		name: "a jump is judged by a slow answer", rule: "8 clock of the proxy",
		change: becomes("!jumped"),
		test:   "TestClocksThatJumpDifferentlyAreNoStandstill",
	},
	{
		name: "a standstill makes clocks unknown", rule: "8 clock of the proxy",
		change: becomes(`*c = Clock{Rate: c.Rate, Tolerance: c.Tolerance}
	is, was := *c, c.before`),
		test: "TestAStandstillHidesNoJumpOfAMasterThatIsAway",
	},
	{
		name: "a standstill hides a jump that came back", rule: "8 clock of the proxy",
		change: becomes("ahead = 0"),
		test:   "TestAStandstillHidesNoJumpThatCameBack",
	},
	{
		name: "a clock that cannot tell denies a standstill", rule: "8 clock of the proxy",
		change: becomes("return &vouch.Span{}"),
		test:   "TestAShortStandstillIsNoJumpOfThoseThatShowIt",
	},
	{
		name: "a clock that is met after a standstill denies it", rule: "8 clock of the proxy",
		change: becomes("w.steady >= t && w.first > 1<<62"),
		test:   "TestAMasterThatIsMetAfterAStandstillDoesNotSayOtherwise",
	},
	{
		name: "the clock is put right after the masters' are known by it", rule: "8 clock of the proxy",
		change: becomes("defer e.slept.Add(int64(put))"),
		test:   "TestTheClockIsPutRightBeforeTheMastersAreKnownByIt",
	},
	{
		name: "an evicting master votes", rule: "9 eviction", aim: "evictions",
		change: never,
	},
	{
		name: "the setting that forbids evictions is not in the proof", rule: "9 eviction", aim: "evictions",
		change: never,
	},
	{
		name: "evictions are not watched", rule: "9 eviction", aim: "evictions",
		change: never,
	},
	{
		name: "evictions that are counted anew are not watched", rule: "9 eviction",
		change: becomes("p.Evicted < now.Evicted"),
		test:   "CountedAnew",
	},
	{
		name: "epochs of another database are learned", rule: "7a epochs",
		change: becomes("ok && is.DB >= 0 && is.Members == a.engine.members"),
		test:   "TestEpochsOfOneDatabase", in: ".",
	},
	{
		name: "what a flush of database 0 hides is not marked", rule: "6 quarantine",
		change: becomes("flushed && a.db < 0"),
		test:   "TestADatabaseIsMarkedForWhatItsMasterDid", in: ".",
	},
	{
		name: "an older file that is met first stays refused", rule: "7b older files",
		change: becomes(`now.Process == "-"`),
		test:   "TestAnOlderFileIsQuarantined", in: ".",
	},
	{
		name: "a mark that was met early stays as it is", rule: "7b older files",
		change: becomes("marks.quarantine != k.marks.quarantine"),
		test:   "TestAMarkIsRenewed", in: ".",
	},
	{
		name: "a master that is listed in another place votes", rule: "10 membership",
		change: never,
		test:   "TestAMasterThatIsListedInAnotherPlace",
	},
	{
		name: "settings concern database 0", rule: "9 eviction",
		change: becomes(`if a.db == 0 {
		a.ask([]any{"INFO"}, a.compareInfo)
	}`),
		test: "TestSettingsOfAMaster", in: ".",
	},
	{
		name: "a new database is taken for marked", rule: "6 quarantine",
		change: becomes("l.assessor.marked, _ = m.watch.confirmed()"),
		test:   "TestADatabaseThatIsNew", in: ".",
	},
	{
		name: "evictions after a restart are not looked for", rule: "9 eviction",
		change: never, test: "TestWhatAMasterLost", in: ".",
	},
	{
		name: "a server that was started elsewhere has read the same file", rule: "7b older files",
		change: never, test: "TestWhatAMasterLost", in: ".",
	},
	{
		name: "a server with fewer databases has read all", rule: "7b older files",
		change: never, test: "TestWhatAMasterLost", in: ".",
	},
	{
		name: "a dump counts as the append-only file", rule: "7b older files",
		change: never, test: "TestWhatAMasterLost", in: ".",
	},
	{
		name: "a file that is just being written counts as all that was granted", rule: "7b older files",
		change: never, test: "TestWhatAMasterLost", in: ".",
	},
	{
		name: "a file that is written elsewhere counts as what a restart reads", rule: "7b older files",
		change: becomes("now.Moved = false"), test: "TestAFileThatIsElsewhere", in: "../vouch",
	},
	{
		name: "a place that is changed is not noticed", rule: "7b older files",
		change: becomes("moved := false"), test: "TestWhatAMasterLost", in: ".",
	},
	{
		name: "a replica that came and went leaves no older copy", rule: "7b older files",
		change: becomes("return false"), test: "TestWhatAMasterLost", in: ".",
	},
	{
		name: "a replica that came and went is not noticed", rule: "7b older files",
		change: becomes("copied := false"), test: "TestACopyIsNoticed", in: ".",
	},
	{
		name: "a horizon that is gone too early is not missed", rule: "7c unseen",
		change: becomes("left == -2 && end < 0"), test: "TestWhatAMasterLost", in: ".",
	},
	{
		name: "an end of the horizon that is known is forgotten", rule: "7b older files",
		change: never, test: "TestWhatAMasterLost", in: ".",
	},
	{
		name: "who grants nothing knows of no horizon", rule: "7b older files",
		change: skip, test: "TestWhatAMasterLost", in: ".",
	},
	{
		name: "a mark needs memory", rule: "9 eviction",
		change: skip, test: "TestWhatAMasterLost", in: ".",
	},
}
