package vouch

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Canary is the mark that every database of a master carries. A missing or changed mark means that the data has
// changed.
type Canary struct {
	// DB is the database of the mark: databases can be swapped.
	DB int
	// Slot is the place in the deployment of the master on which the mark was made: data can be copied.
	Slot int
	// Process is the run id of the server on which the mark was made; "-" if the server does not tell.
	Process string
	// Lineage is the replication id of the master from which this server was promoted; "-" if none.
	Lineage string
	// Epoch grows with every quarantine, and when the server is Durable no longer. Grants from before are void.
	Epoch int64
	// Members names the list of masters of the deployment, the same for every proxy.
	Members string
	// Bounds are the strictest of all proxies that have voted with the mark.
	Bounds
	// Durable says that the server writes every answer to disk before giving it (AOF, fsync always), and that no
	// replica has a copy of this mark.
	Durable bool
	// Past is the mark's knowledge of the server's life.
	Past
	// FirstFile says that the server has not written its append-only file anew since the start. A mark never has
	// FirstFile.
	FirstFile bool
	// Rewriting says that the server writes its append-only file anew, or is about to. Until the rewriting ends, a restart
	// may read an earlier file. A mark never has Rewriting.
	Rewriting bool
	// Watched says that this proxy has seen the server Durable without a break since the server was last found Durable.
	// A mark never has Watched.
	Watched bool
	// MayBeDurable says that the server does not tell whether it is Durable. A mark never has MayBeDurable.
	MayBeDurable bool
	// Incomplete says that the server has not loaded all of its data. A mark never has Incomplete.
	Incomplete bool
	// Early says that too few other masters have been heard to know of a later epoch. A mark never has Early.
	Early bool
}

// canaryFormat is the first word of a mark. The word also stands for the format of all other keys that lockproxy keeps
// on a master: the epochs, the horizon, the quarantine, fences and their records. A version that reads or writes any
// key differently names another format. Then versions without the format neither vote by misread keys nor
// mark the master anew.
const (
	canaryFormat  = canaryFormats + "1"
	canaryFormats = "lockproxy-"
)

// IsUnread says that another version of lockproxy made the mark, in a format unknown to this version.
func IsUnread(text string) bool {
	_, ok := ParseCanary(text)
	return !ok && strings.HasPrefix(text, canaryFormats)
}

// String returns the mark's text on the master.
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

// A Finding is the proof of a mark about its master.
type Finding uint8

// The verdicts.
const (
	Same    Finding = iota // nothing was forgotten since the mark was made
	Renew                  // nothing was forgotten, but the mark is out of date: Next replaces the mark
	Forgot                 // locks may have been forgotten: Next replaces the mark, and the master is quarantined
	Foreign                // the master belongs to another deployment, or to another version of lockproxy
)

// An Assessment is a finding and its consequences.
type Assessment struct {
	Finding Finding
	Reason  string // of Forgot and Foreign
	Next    Canary
}

// Reasons of Forgot.
const (
	New   = "it is new, was flushed, or restarted without its data" // there is no mark
	Older = "its data is older than it was"
	// Incomplete is why a server that keeps all on disk may not have all of its data.
	Incomplete = "it has not loaded all of its append-only file: its log and lockproxy check say why"
)

// Unread is a reason of Foreign.
const Unread = "bears a mark of another version of lockproxy, which this one does not read: run the version that made it, or that version's successor"

// Assess compares a master's mark (text, "" if there is none) with the master's own statements (now) and with this
// proxy's knowledge of the deployment. now.Epoch is greater than any known epoch of this master. latest is the greatest
// epoch of this master that any master has told.
func Assess(text string, now Canary, latest int64) Assessment {
	//mutant: a file that is just being written counts as all that was granted
	if now.Rewriting && !now.Watched { // the file may have been turned on while nobody looked
		now.Durable = false
	}
	complete := now
	complete.Incomplete = false
	if text == "" && now.Incomplete {
		return Assessment{Forgot, Incomplete, complete}
	}
	if text == "" {
		//mutant: no quarantine without a canary
		return Assessment{Forgot, New, now}
	}
	if IsUnread(text) {
		return Assessment{Finding: Foreign, Reason: Unread}
	}
	was, ok := ParseCanary(text)
	if !ok || was.Members != now.Members {
		return Assessment{Finding: Foreign, Reason: "belongs to another deployment, or the list of masters has changed: see lockproxy init"}
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
		return Assessment{Forgot, "its databases were swapped", next}
	//mutant: no quarantine after a restart
	case restarted && !(was.Durable && now.Durable):
		return Assessment{Forgot, "it restarted, or another server has taken its place", next}
	//mutant: a file that was loaded in part counts as all that was known
	case restarted && now.Incomplete:
		return Assessment{Forgot, Incomplete, next}
	//mutant: another master's data counts as its own
	case restarted && was.Slot != now.Slot:
		return Assessment{Forgot, "it was started on another master's data", next}
	//mutant: a file of an earlier epoch counts as all that was known
	case restarted && was.Epoch < latest: // the server has read a file that was not written to the end
		return Assessment{Forgot, Older, next}
	//mutant: no quarantine of a promoted replica
	case now.Lineage != "-" && (restarted || was.Lineage != now.Lineage): // a server that has read its AOF has no Lineage
		return Assessment{Forgot, "it was a replica, or one has taken its place", next}
	}
	if reason := was.changed(now); reason != "" {
		return Assessment{Forgot, reason, next}
	}
	next = was.renewed(now, next, latest)
	if next != was {
		return Assessment{Renew, "", next}
	}
	return Assessment{Finding: Same, Next: next}
}

// hasRestarted says that the mark's server is another process now, as far as both tell their process.
func (was *Canary) hasRestarted(now Canary) bool {
	return was.Process != now.Process && was.Process != "-" && now.Process != "-"
}

// renewed returns the next mark of a master that has forgotten nothing: next, with the unchanged fields of was.
func (was *Canary) renewed(now, next Canary, latest int64) Canary {
	next.Epoch = was.Epoch
	next.Slot = was.Slot // while addresses are exchanged, proxies do not agree on the slot
	//mutant: an older file that is met first stays refused
	if now.Process == "-" || now.Early { // the restart must stay visible to a proxy that hears the other masters
		next.Process, next.Past = was.Process, was.sinceEarly(now)
	}
	if !was.hasRestarted(now) { // without a Lineage: perhaps a proxy asked that is not permitted to know
		next.Lineage = was.Lineage
	}
	if now.Rewriting && !was.Durable {
		next.Durable = false
	}
	if now.MayBeDurable || was.Epoch < latest { // another proxy may be permitted to know; a replaced server stays as it was
		next.Durable = was.Durable
	}
	//mutant: an epoch outlasts what is kept on disk
	if was.Durable && (!next.Durable || was.copied(now)) { // from now on its file, or the copy, is older, and must be recognisable as older
		//mutant: who keeps less on disk is no longer behind
		next.Epoch = was.Epoch + 1 // not more: a replaced server of which nobody has told yet must stay behind
	}
	return next
}

// Bounds are the settings on which the locks of all proxies of a deployment rest. Every mark has the Bounds, and every
// proxy keeps to the strictest. Otherwise a proxy that tolerates larger steps of a clock than another proxy's locks can
// bear would grant these locks a second time.
type Bounds struct {
	// Kept is the longest time for which any proxy lets masters keep a lock.
	Kept time.Duration
	// Grace and DriftFactor are the least allowances of any proxy: for clocks that step, and for clocks that run
	// differently.
	Grace       time.Duration
	DriftFactor float64
	// Patience is the longest time for which any proxy waits for an answer. A command that a quorum has answered may
	// reach the other masters after the whole Patience.
	Patience time.Duration
}

// Unbound are the bounds in a mark with which no proxy has voted yet.
var Unbound = Bounds{Grace: longest, DriftFactor: 1}

// longest is more than any setting is.
const longest = 10 * 365 * 24 * time.Hour

// And returns the bounds that satisfy both b and c.
func (b Bounds) And(c Bounds) Bounds {
	return Bounds{
		Kept: max(b.Kept, c.Kept), Grace: min(b.Grace, c.Grace), DriftFactor: min(b.DriftFactor, c.DriftFactor),
		Patience: max(b.Patience, c.Patience),
	}
}

// String returns the bounds as marks have them: four words.
func (b Bounds) String() string {
	return fmt.Sprintf("%v %v %s %v", b.Kept, b.Grace, strconv.FormatFloat(b.DriftFactor, 'g', -1, 64), b.Patience)
}

// parseBounds reads four words.
func parseBounds(f []string) (Bounds, bool) {
	kept, err1 := time.ParseDuration(f[0])
	grace, err2 := time.ParseDuration(f[1])
	factor, err3 := strconv.ParseFloat(f[2], 64)
	patience, err4 := time.ParseDuration(f[3])
	ok := err1 == nil && err2 == nil && err3 == nil && err4 == nil && kept >= 0 && kept <= longest && grace >= 0 &&
		factor >= 0 && factor <= 1 && patience >= 0 && patience <= longest
	return Bounds{kept, grace, factor, patience}, ok
}
