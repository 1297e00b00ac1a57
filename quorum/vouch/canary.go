package vouch

import (
	"fmt"
	"strconv"
	"strings"
)

// A Canary is the mark that every database of a master carries. Where it is gone, or is not what it was, the data is not
// what it was.
type Canary struct {
	// DB is the database that carries it: databases can be swapped.
	DB int
	// Slot is the place in the deployment of the master that the mark was made on: data can be copied.
	Slot int
	// Process is the run id of the server that the mark was made on; "-" if it does not tell.
	Process string
	// Lineage is the replication id of the master that this server was promoted from; "-" if none.
	Lineage string
	// Epoch grows with every quarantine, and when the server is Durable no longer. Grants from before are void.
	Epoch int64
	// Members names the deployment: who the masters are, for every proxy the same.
	Members string
	// Bounds are those of all proxies that have voted by it.
	Bounds
	// Durable says that the server writes every answer to disk before giving it (AOF, fsync always), and that no replica
	// has a copy of this mark.
	Durable bool
	// Past is what of the server's life the mark knows.
	Past
	// FirstFile says that the server has not written its append-only file anew since it started. It is never in a mark.
	FirstFile bool
	// Rewriting says that it is writing that file anew, or is to: until then a restart may read an earlier one. It is never in a mark.
	Rewriting bool
	// Watched says that this proxy has seen, since it last found the server to be Durable, that it was so all the time. It is never
	// in a mark.
	Watched bool
	// MayBeDurable says that the server does not tell whether it is Durable. It is never in a mark.
	MayBeDurable bool
	// Incomplete says that the server lacks a part of the data that it has loaded. It is never in a mark.
	Incomplete bool
	// Early says that too few other masters have been heard to know of a later epoch. It is never in a mark.
	Early bool
}

// canaryFormat is the first word of a mark. It stands for all that lockproxy keeps on a master beside the canary, too (the epochs,
// the horizon, the quarantine, fences and their records): a version that reads or writes any of these differently names another
// format. Then versions that do not know it neither vote by what they misread nor mark the master anew.
const (
	canaryFormat  = canaryFormats + "1"
	canaryFormats = "lockproxy-"
)

// IsUnread says that another version of lockproxy made the mark, in a format which this one does not read.
func IsUnread(text string) bool {
	_, ok := ParseCanary(text)
	return !ok && strings.HasPrefix(text, canaryFormats)
}

// String returns the mark as it is kept on the master.
func (was Canary) String() string {
	kept := "volatile"
	if was.Durable {
		kept = "durable"
	}
	return fmt.Sprintf("%s %d %s %s %s %v %s %v %d %d",
		canaryFormat, was.Epoch, was.Process, was.Lineage, was.Members, was.Bounds, kept, was.Past, was.Slot, was.DB)
}

// ParseCanary reads a mark.
func ParseCanary(text string) (Canary, bool) {
	f := strings.Fields(text)
	if len(f) != 12+pastFields || f[0] != canaryFormat {
		return Canary{}, false
	}
	epoch, err1 := strconv.ParseInt(f[1], 10, 64)
	bounds, ok := parseBounds(f[5:9])
	past, known := parsePast(f[10 : 10+pastFields])
	slot, err2 := strconv.Atoi(f[10+pastFields])
	db, err3 := strconv.Atoi(f[11+pastFields])
	c := Canary{
		Epoch: epoch, Process: f[2], Lineage: f[3], Members: f[4], Bounds: bounds, Durable: f[9] == "durable", Past: past, Slot: slot, DB: db,
	}
	return c, err1 == nil && err2 == nil && err3 == nil && ok && known && epoch >= 0
}

// A Verdict is what a mark proves about the master that carries it.
type Verdict uint8

// The verdicts.
const (
	Same    Verdict = iota // nothing was forgotten since the mark was made
	Renew                  // nothing was forgotten, but the mark no longer says all: it is to be replaced by Next
	Forgot                 // locks may have been forgotten: the mark is to be replaced by Next, and the master quarantined
	Foreign                // the master belongs to another deployment, or to another version of lockproxy
)

// A Judgement is a verdict and what follows from it.
type Judgement struct {
	Verdict Verdict
	Reason  string // of Forgot and Foreign
	Next    Canary
}

// Reasons of Forgot.
const (
	New   = "it is new, was flushed, or restarted without its data" // there is no mark
	Older = "its data is older than it was"
	// Incomplete is why a server that keeps all on disk may not have all of it.
	Incomplete = "it has not loaded all of its append-only file: its log and lockproxy check say why"
)

// Unread is a reason of Foreign.
const Unread = "bears a mark of another version of lockproxy, which this one does not read: run the version that made it, or that version's successor"

// Judge compares the mark that a master carries, or "" if it carries none, with what the master says of itself now and
// what this proxy knows of the deployment. now.Epoch is greater than any epoch that this master is known to have had; latest is the
// greatest that any master has told of.
func Judge(text string, now Canary, latest int64) Judgement {
	//mutant: a file that is just being written counts as all that was granted
	if now.Rewriting && !now.Watched { // it may have been turned on while nobody looked
		now.Durable = false
	}
	complete := now
	complete.Incomplete = false
	if text == "" && now.Incomplete {
		return Judgement{Forgot, Incomplete, complete}
	}
	if text == "" {
		//mutant: no quarantine without a canary
		return Judgement{Forgot, New, now}
	}
	if IsUnread(text) {
		return Judgement{Verdict: Foreign, Reason: Unread}
	}
	was, ok := ParseCanary(text)
	if !ok || was.Members != now.Members {
		return Judgement{Verdict: Foreign, Reason: "belongs to another deployment, or the list of masters has changed: see lockproxy init"}
	}
	next := complete
	next.Bounds, next.Epoch, next.MayBeDurable, next.Early = was.And(now.Bounds), max(was.Epoch+1, now.Epoch), false, false
	next.FirstFile, next.Rewriting, next.Watched = false, false, false
	restarted := was.hasRestarted(now)
	next.Past = was.pastSince(now)
	next.Durable = now.Durable && !next.Moved
	switch {
	//mutant: no quarantine after SWAPDB
	case was.DB != now.DB:
		return Judgement{Forgot, "its databases were swapped", next}
	//mutant: no quarantine after a restart
	case restarted && !(was.Durable && now.Durable):
		return Judgement{Forgot, "it restarted, or another server has taken its place", next}
	//mutant: a file that was loaded in part counts as all that was known
	case restarted && now.Incomplete:
		return Judgement{Forgot, Incomplete, next}
	//mutant: another master's data counts as its own
	case restarted && was.Slot != now.Slot:
		return Judgement{Forgot, "it was started on another master's data", next}
	//mutant: a file of an earlier epoch counts as all that was known
	case restarted && was.Epoch < latest: // it has read a file that was not written to the end
		return Judgement{Forgot, Older, next}
	//mutant: no quarantine of a promoted replica
	case now.Lineage != "-" && (restarted || was.Lineage != now.Lineage): // a server that has read its AOF has none
		return Judgement{Forgot, "it was a replica, or one has taken its place", next}
	}
	if reason := was.changed(now); reason != "" {
		return Judgement{Forgot, reason, next}
	}
	next = was.renewed(now, next, latest)
	if next != was {
		return Judgement{Renew, "", next}
	}
	return Judgement{Verdict: Same, Next: next}
}

// hasRestarted says that another process is now what bears the mark, as far as both tell.
func (was *Canary) hasRestarted(now Canary) bool {
	return was.Process != now.Process && was.Process != "-" && now.Process != "-"
}

// renewed returns the mark of a master that has forgotten nothing: next, except for what stays as it was.
func (was *Canary) renewed(now, next Canary, latest int64) Canary {
	next.Epoch = was.Epoch
	next.Slot = was.Slot // while addresses are exchanged, proxies do not agree on it
	//mutant: an older file that is met first stays refused
	if now.Process == "-" || now.Early { // a proxy that hears the other masters is to see that it restarted
		next.Process, next.Past = was.Process, was.sinceEarly(now)
	}
	if !was.hasRestarted(now) { // one that tells none may be asked by a proxy that is not permitted to know
		next.Lineage = was.Lineage
	}
	if now.Rewriting && !was.Durable {
		next.Durable = false
	}
	if now.MayBeDurable || was.Epoch < latest { // another proxy may be permitted to know; a replaced server stays as it was
		next.Durable = was.Durable
	}
	//mutant: an epoch outlasts what is kept on disk
	if was.Durable && (!next.Durable || was.copied(now)) { // from now on its file, or the copy, is an older one, and is to be known as one
		//mutant: who keeps less on disk is no longer behind
		next.Epoch = was.Epoch + 1 // not more: if it was replaced, and nobody has told yet, it must stay behind
	}
	return next
}
