package quorum

import "lockproxy/quorum/masters"

// With each heartbeat a lane asks its master for what may cost the master its vote, and compares the answers with those of the
// handshake.

// patrol asks. Each lane asks, because each is judged by what its own connection was told.
func (a *assessor) patrol() {
	//mutant: settings concern database 0
	a.ask([]any{"INFO"}, a.compareInfo)
	//mutant: one database's lane knows what is kept on disk
	//mutant: fsync always is not noticed
	if a.master.tellsAppend() {
		a.ask([]any{"CONFIG", "GET", masters.AppendSettings}, a.compareFiles)
		a.ask([]any{"CONFIG", "GET", masters.PlaceSettings}, a.compareFiles)
		//mutant: who grants nothing knows of no horizon
		a.ask([]any{"GET", endKey}, func(reply any) { a.horizon.ends.hear(reply, a.connection.epoch) })
		if a.master.answersFirst() {
			a.ask([]any{"CONFIG", "GET", masters.ScriptLimit}, a.compareFiles)
		}
		a.witness.write(a)
	}
}

// compareFiles compares when and where a master writes its append-only file with the handshake's answers: its canary may say
// that it forgets nothing.
func (a *assessor) compareFiles(reply any) {
	now := a.connection.info
	now.ReadConfig(reply)
	//mutant: a place that is changed is not noticed
	moved := now.Files.Place() != a.connection.info.Files.Place()
	if moved || a.isDurable(&now) != a.isDurable(&a.connection.info) {
		a.suspect()
	}
}

// compareInfo compares what the master says of itself with the handshake's answers.
func (a *assessor) compareInfo(reply any) {
	text, _ := reply.(string)
	was := a.connection.info
	now := was
	now.ReadInfo(text)
	a.witness.look(&now, a.connection.marks.canary)
	//mutant: an append-only file that is turned on is not noticed
	if now.Role != was.Role || now.RunID != was.RunID || now.Lineage != was.Lineage ||
		now.Evicts() != was.Evicts() || now.Evicted != was.Evicted || now.AppendOnly != was.AppendOnly || a.isDurable(&now) != a.isDurable(&was) {
		a.suspect()
	}
	//mutant: a replica that came and went is not noticed
	copied := now.Files.Copies() != was.Files.Copies()
	written := a.isDurable(&now) && !a.connection.durable && was.Files.Rewriting() && !now.Files.Rewriting()
	if copied || written {
		a.suspect()
	}
}
