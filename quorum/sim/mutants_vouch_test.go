package sim

// What is taken out of rules 5 to 9.
var vouchMutants = []mutant{
	{
		name: "a changed canary is not noticed", rule: "5 vouch", file: "vouching.go",
		old: "case marks.canary != l.link.marks.canary:", new: "case false:",
	},
	{
		name: "data that comes back in quarantine votes", rule: "5 vouch", file: "vouching.go",
		old: "case marks.quarantine != \"\" && marks.quarantine != l.link.marks.quarantine:", new: "case false:",
		test: "ComesBack",
	},
	{
		name: "a jump of the clock costs no votes", rule: "5 vouch", aim: "clocks", file: "vouching.go",
		old: "case !jumped.none():", new: "case false:",
	},
	{
		name: "any step forwards of a clock is tolerated", rule: "5 vouch", aim: "clocks", file: "vouch/clock.go",
		old: "case c.ahead > c.Tolerance:", new: "case c.ahead > 1<<62:",
	},
	{
		name: "a slow answer is believed about the clock", rule: "5 vouch", file: "vouching.go",
		old: "if l.master.watch.reach() <= l.engine.uncertainty() {", new: "if true {",
		test: "TooSlowly",
	},
	{
		name: "a proxy watches clocks by its own settings alone", rule: "5 vouch", aim: "clocks", first: Mixed + 1, file: "assess.go",
		old: "		l.engine.keepTo(j.Next.Bounds)\n", new: "",
	},
	{
		name: "stricter settings that come later are not kept to", rule: "5 vouch", file: "vouching.go",
		old: "	l.engine.keepTo(is.Bounds)\n", new: "",
		test: "MoreStrictlyWhen", in: ".",
	},
	{
		name: "a replica votes", rule: "5 vouch", aim: "replicas", file: "assess.go",
		old: "if k.info.Role != \"\" && k.info.Role != \"master\" {", new: "if false {",
	},
	{
		name: "a quarantined master's grants count", rule: "6 quarantine", file: "ballot.go",
		old: "\tcase b.ifClean:\n\t\treturn failure{FailedQuarantined, l.quarantined}", new: "\tcase b.ifClean:\n\t\treturn failure{}",
	},
	{
		name: "no quarantine without a canary", rule: "6 quarantine", file: "vouch/canary.go",
		old: "return Judgement{Forgot, New, now}", new: "return Judgement{Renew, New, now}",
	},
	{
		name: "no quarantine after a restart", rule: "6 quarantine", aim: "restarts", file: "vouch/canary.go",
		old: "case restarted && !(was.Durable && now.Durable):", new: "case restarted && next.DB < 0:",
	},
	{
		name: "no quarantine of a promoted replica", rule: "6 quarantine", aim: "replicas", file: "vouch/canary.go",
		old: "case now.Lineage != \"-\" && (", new: "case next.DB < 0 && (",
	},
	{
		name: "no quarantine after SWAPDB", rule: "6 quarantine", aim: "restarts", file: "vouch/canary.go",
		old: "case was.DB != now.DB:", new: "case next.DB < 0:",
	},
	{
		name: "no quarantine after a jump forwards", rule: "6 quarantine", aim: "clocks", file: "watch.go",
		old: "	if ahead > 0 {", new: "	if ahead > 1<<62 {",
	},
	{
		name: "a jump is forgotten before its master is charged", rule: "6 quarantine", file: "watch.go",
		old: "	w.endInquiry(ahead)\n	return by, ahead", new: "	w.endInquiry(0)\n	go w.accuse(\"its clock jumped\")\n	return by, ahead",
		test: "TestAJumpIsCharged",
	},
	{
		name: "a clock that was judged is marked at the next heartbeat", rule: "6 quarantine", file: "warden.go",
		old: "e.askMaster(m) // so", new: "_ = m // so", test: "TestAMasterIsMarkedAsSoonAsItsClockIsJudged",
	},
	{
		name: "everysec counts as always", rule: "6 quarantine", aim: "restarts", file: "masters/info.go",
		old: "i.AppendFsync == \"always\" && !i.AppendPauses && i", new: "i.AppendFsync != \"\" && !i.AppendPauses && i",
	},
	{
		name: "one database's lane knows what is kept on disk", rule: "6 quarantine", file: "lane.go",
		old: "if l.master.tellsAppend() {", new: "if l.db == 0 && l.master.tellsAppend() {",
		test: "TestAMasterIsNotTakenForDurable", in: ".",
	},
	{
		name: "an epoch outlasts what is kept on disk", rule: "7b older files", file: "vouch/canary.go",
		old: "if was.Durable && !next.Durable {", new: "if false {",
		test: "TestAFileThatWasWrittenNoMore", in: ".",
	},
	{
		name: "who keeps less on disk is no longer behind", rule: "7b older files", file: "vouch/canary.go",
		old: "next.Epoch = was.Epoch + 1", new: "next.Epoch = max(was.Epoch+1, now.Epoch)",
		test: "TestAServerThatIsBackAndKeepsLess", in: ".",
	},
	{
		name: "a file of an earlier epoch counts as all that was known", rule: "7b older files", file: "vouch/canary.go",
		old: "case restarted && was.Epoch < latest:", new: "case false:",
		test: "TestAFileThatWasWrittenNoMoreIsQuarantinedAtOnce", in: ".",
	},
	{
		name: "another master's data counts as its own", rule: "7b older files", file: "vouch/canary.go",
		old: "case restarted && was.Slot != now.Slot:", new: "case false:",
		test: "TestWhatAnotherMasterKept", in: ".",
	},
	{
		name: "nobody is told of an epoch without a quarantine", rule: "7b older files", file: "assess.go",
		old: "		l.tellOthers(nil) //", new: "		//",
		test: "TestWhoComesLaterHears", in: ".",
	},
	{
		name: "a proxy that starts tells nobody of epochs", rule: "7b older files", file: "assess.go",
		old: "if known < epoch && ", new: "if known != 0 && known < epoch && ",
		test: "TestWhoComesLaterTells", in: ".",
	},
	{
		name: "who is away is told of an epoch once", rule: "7b older files", file: "lane.go",
		old: "	if l.behind.Load() {", new: "	if false {",
		test: "TestWhoComesLaterHears", in: ".",
	},
	{
		name: "an epoch without a quarantine forgets the fences", rule: "14 fence", file: "marks_lua.go",
		old: "if ARGV[3] == '' and seeded and to ~= epoch then keep(largest, to) end\n", new: "",
		test: "TestWhoToggles", in: ".",
	},
	{
		name: "an append-only file that is turned on is not noticed", rule: "6 quarantine", file: "warden.go",
		old: "now.AppendOnly != was.AppendOnly || ", new: "", test: "TestWhoToggles", in: ".",
	},
	{
		name: "fsync always is not noticed", rule: "6 quarantine", file: "lane.go",
		old: "if l.master.tellsAppend() {", new: "if false {", test: "TestWhoToggles", in: ".",
	},
	{
		name: "a replica's old copy counts as durable", rule: "6 quarantine", aim: "replicas", file: "masters/info.go",
		old: " && i.RunID != \"\" && i.Replicas == 0\n", new: " && i.RunID != \"\"\n",
	},
	{
		name: "the quarantine is not written on the master", rule: "6 quarantine", file: "marks_lua.go",
		old: "if ARGV[3] ~= '' then redis.call('SET', KEYS[2], ARGV[3]) end\n", new: "",
	},
	{
		name: "a grant from before the quarantine counts", rule: "6 quarantine", file: "vouching.go",
		old: "if en.vote == Granted && en.epoch < en.lane.latestEpoch().Load() {", new: "if en.vote == Granted && en.epoch < 0 {",
		// Attempts end before a quarantine does, but where one process stands still and the world goes on.
		test: "TestAGrantIsVoid",
	},
	{
		name: "what masters tell of epochs is not heard", rule: "7a epochs", aim: "addresses", first: Operated + 1, file: "roster.go",
		old: "raise(&r[i], epoch)", new: "_ = epoch",
	},
	{
		name: "a server that was replaced votes while it is connected", rule: "7a epochs", file: "vouching.go",
		old: "case l.latestEpoch().Load() > l.link.epoch:", new: "case false:",
		test: "TestAServerThatWasReplaced",
	},
	{
		name: "a server to which the address leads back votes at once", rule: "7a epochs", file: "assess.go",
		old: `forgot = cmp.Or(reasonOf(found.quarantine), "another server answered under its address meanwhile")`, new: `_, j.Verdict, j.Next.Epoch = cmp.Or(""), vouch.Renew, now.Epoch`,
		test: "TestAServerThatIsBack", in: ".",
	},
	{
		name: "a server that was replaced is marked anew at once", rule: "7a epochs", file: "assess.go",
		old: "return 2 * c.MasterDeadAfter", new: "return 0",
		test: "TestAServerThatIsBack", in: ".",
	},
	{
		name: "servers that come to an epoch at once come to the same one", rule: "7a epochs", file: "roster.go",
		old: "+ int64(apart)", new: "+ 0*int64(apart)",
		test: "TestServersThatAreMarkedAtOnce", in: ".",
	},
	{
		name: "who was away is not told of a quarantine that ended by itself", rule: "7a epochs", file: "quarantine.go",
		old: "l.tellOthers(was.said)", new: "_ = was.said",
		test: "TestWhoWasAwayHears", in: ".",
	},
	{
		name: "an earlier server tells how long a quarantine lasts", rule: "7a epochs", file: "quarantine.go",
		old: "return l.roster[slot].Load() > t.Epoch }", new: "return false }",
		test: "TestWhatAnEarlierServerSays", in: ".",
	},
	{
		name: "init: auto marks a master whatever it carries by then", rule: "6 quarantine", file: "marks_lua.go",
		old: "if ARGV[2] and (redis", new: "if false and (redis",
		test: "NotInitialisedByAProxy", in: ".",
	},
	{
		name: "init: auto looks once", rule: "6 quarantine", file: "initialise.go",
		old: "if slices.EqualFunc(before, found, isMarkedAlike) {", new: "if before == nil || slices.EqualFunc(before, found, isMarkedAlike) {",
		test: "NotInitialisedByAProxy", in: ".",
	},
	{
		name: "a quarantine lasts as long as the locks of its proxy", rule: "7 horizon", file: "bounds.go",
		old: "	next := was.And(b)\n", new: "	b.Kept = was.Kept\n	next := was.And(b)\n",
		test: "TestAQuarantineOutlasts", in: ".",
	},
	{
		name: "a horizon is taken for over", rule: "7 horizon", aim: "horizons", file: "vouch/quarantine.go",
		old: "q.Until, q.Known = min(q.Until, now+stretch(longest, rate)), true", new: "q.Until, q.Known = min(q.Until, now), true",
	},
	{
		name: "one other master's horizon is enough", rule: "7 horizon", aim: "horizons", file: "vouch/quarantine.go",
		old: "if clean < n-quorum+1 {", new: "if clean < min(1, n-quorum+1) {",
	},
	{
		name: "the horizon of a quarantined master is believed", rule: "7 horizon", aim: "horizons", file: "vouch/quarantine.go",
		old: "if t.Clean {", new: "if true {",
	},
	{
		name: "the horizon is never extended", rule: "7 horizon", aim: "horizons", file: "horizon.go",
		old: "l.keeps = max(l.keeps, r.keeps())", new: "l.keeps = min(0, r.keeps())",
	},
	{
		name: "a horizon is known by a clock that was set back since", rule: "7 horizon", file: "horizon.go",
		old: "min(l.link.clock, sent) + ms", new: "max(l.link.clock, sent) + ms",
		test: "SetBack", in: ".",
	},
	{
		name: "the horizon is not extended for an extension", rule: "7 horizon", aim: "extensions", file: "extend.go",
		old: "e.begin(x, req.Key, x.args())", new: "args := x.args()\n\t\tx.keeps, x.lasting = 0, true\n\t\te.begin(x, req.Key, args)",
	},
	{
		name: "a proxy that slept quarantines all masters", rule: "8 clock of the proxy", file: "warden.go",
		old: "\tif own {\n", new: "\tif own && by == 1 {\n",
		test: "TestAProxyThatWasSuspendedQuarantinesNobody",
	},
	{
		name: "jumps that differ are a standstill", rule: "8 clock of the proxy", file: "warden.go",
		old: "bounds.DriftFactor, tolerance(bounds.Grace))", new: "bounds.DriftFactor, e.cfg.InstanceTimeout+50*time.Millisecond)",
		test: "TestClocksThatJumpDifferentlyAreNoStandstill",
	},
	{
		name: "a jump is judged by a slow answer", rule: "8 clock of the proxy", file: "watch.go",
		old: "case !jumped, w.clock.Width() > d:", new: "case !jumped:",
		test: "TestClocksThatJumpDifferentlyAreNoStandstill",
	},
	{
		name: "a standstill makes clocks unknown", rule: "8 clock of the proxy", file: "vouch/clock.go",
		old: "	is, was := *c, c.before\n", new: "	*c = Clock{Rate: c.Rate, Tolerance: c.Tolerance}\n	is, was := *c, c.before\n",
		test: "TestAStandstillHidesNoJumpOfAMasterThatIsAway",
	},
	{
		name: "a standstill hides a jump that came back", rule: "8 clock of the proxy", file: "watch.go",
		old: "ahead = min(w.ahead, w.ahead-w.jump)", new: "ahead = 0",
		test: "TestAStandstillHidesNoJumpThatCameBack",
	},
	{
		name: "a clock that cannot tell denies a standstill", rule: "8 clock of the proxy", file: "watch.go",
		old: "return &vouch.Span{Lo: -w.hidden, Hi: w.hidden}", new: "return &vouch.Span{}",
		test: "TestAShortStandstillIsNoJumpOfThoseThatShowIt",
	},
	{
		name: "a clock that is met after a standstill denies it", rule: "8 clock of the proxy", file: "watch.go",
		old: "case w.steady >= t && w.first >= t:", new: "case w.steady >= t && w.first > 1<<62:",
		test: "TestAMasterThatIsMetAfterAStandstillDoesNotSayOtherwise",
	},
	{
		name: "the clock is put right after the masters' are known by it", rule: "8 clock of the proxy", file: "warden.go",
		old: "	e.slept.Add(int64(put))\n", new: "	defer e.slept.Add(int64(put))\n",
		test: "TestTheClockIsPutRightBeforeTheMastersAreKnownByIt",
	},
	{
		name: "an evicting master votes", rule: "9 eviction", aim: "evictions", file: "assess.go",
		old: "if k.info.Evicts() {", new: "if false {",
	},
	{
		name: "the setting that forbids evictions is not in the proof", rule: "9 eviction", aim: "evictions", file: "vouching.go",
		old: "case l.mayEvict():", new: "case false:",
	},
	{
		name: "evictions are not watched", rule: "9 eviction", aim: "evictions", file: "assess.go",
		old: "case l.evicted.more(&k.info):", new: "case false:",
	},
	{
		name: "evictions that are counted anew are not watched", rule: "9 eviction", file: "assess.go",
		old: "return now.Evicted != e.keys", new: "return now.Evicted > e.keys",
		test: "CountedAnew",
	},
	{
		name: "epochs of another database are learned", rule: "7a epochs", file: "assess.go",
		old: "ok && is.DB == l.db &&", new: "ok && is.DB >= 0 &&",
		test: "TestEpochsOfOneDatabase", in: ".",
	},
	{
		name: "what a flush of database 0 hides is not marked", rule: "6 quarantine", file: "assess.go",
		old: "case flushed && l.db == 0 && forgot != \"\":", new: "case flushed && l.db < 0:",
		test: "TestADatabaseIsMarkedForWhatItsMasterDid", in: ".",
	},
	{
		name: "an older file that is met first stays refused", rule: "7b older files", file: "vouch/canary.go",
		old: "if now.Process == \"-\" || now.Early {", new: "if now.Process == \"-\" {",
		test: "TestAnOlderFileIsQuarantined", in: ".",
	},
	{
		name: "a mark that was met early stays as it is", rule: "7b older files", file: "vouching.go",
		old: " || l.link.early && l.heardOthers()", new: "",
		test: "TestAMarkIsRenewed", in: ".",
	},
	{
		name: "a master that is listed in another place votes", rule: "10 membership", file: "assess.go",
		old: "if l.isMisplaced(k, &is) {", new: "if false {",
		test: "TestAMasterThatIsListedInAnotherPlace",
	},
	{
		name: "settings concern database 0", rule: "9 eviction", file: "lane.go",
		old: "l.ask([]any{\"INFO\"}, l.patrol) //", new: "if l.db == 0 {\n\t\tl.ask([]any{\"INFO\"}, l.patrol)\n\t} //",
		test: "TestSettingsOfAMaster", in: ".",
	},
	{
		name: "a new database is taken for marked", rule: "6 quarantine", file: "lane.go",
		old: "l.marked = *is", new: "l.charges, _ = m.watch.charged()\n\t\t_ = is",
		test: "TestADatabaseThatIsNew", in: ".",
	},
}
