package vouch

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// A Past is what a server tells of its life since it started that bears on what it remembers. A mark has the past that was known
// when it was made. What the server tells differently has happened since.
type Past struct {
	// Evicted is how many keys it has evicted.
	Evicted int64
	// Copies is how often a replica has begun to copy its data.
	Copies int64
	// Databases is how many it has; 0 if it does not tell.
	Databases int64
	// Place stands for where its files are; "" if it does not tell.
	Place string
	// Moved says that Place was changed while it ran: a restart may read another file than it writes.
	Moved bool
}

// evictedField names the evictions in a mark's text: a script on the master writes them anew (quorum/marks_lua.go).
const evictedField = "evicted:"

const pastFields = 5

// String returns the past as a mark has it.
func (p Past) String() string {
	stays := "stays"
	if p.Moved {
		stays = "moved"
	}
	return fmt.Sprintf("%s%d %d %d %s %s", evictedField, p.Evicted, p.Copies, p.Databases, cmp.Or(p.Place, "-"), stays)
}

func parsePast(f []string) (p Past, ok bool) {
	evicted, named := strings.CutPrefix(f[0], evictedField)
	var err1, err2, err3 error
	p.Evicted, err1 = strconv.ParseInt(evicted, 10, 64)
	p.Copies, err2 = strconv.ParseInt(f[1], 10, 64)
	p.Databases, err3 = strconv.ParseInt(f[2], 10, 64)
	p.Place, p.Moved = strings.Trim(f[3], "-"), f[4] == "moved"
	return p, named && err1 == nil && err2 == nil && err3 == nil
}

// since is what the mark of the same server is to say next, given what the server tells now.
func (p Past) since(now Past) Past {
	if now.Place == "" { // another proxy may be permitted to know
		now.Place, now.Databases = p.Place, p.Databases
	}
	//mutant: a file that is written elsewhere counts as what a restart reads
	now.Moved = p.Moved || p.Place != "" && p.Place != now.Place
	return now
}

// Reasons of Forgot that a past gives.
const (
	Evicted = "it evicted keys"
	// Elsewhere, and those below it, are of a server that has restarted.
	Elsewhere = "it was started with its files in another place, and may have read older ones"
	Fewer     = "it was started with fewer databases, and so has not read all of its append-only file"
	NotFirst  = "it has written its append-only file anew since it started, and so may have started on other data"
)

// forgot returns why the same server may have forgotten locks, by what it tells now; "" if it has not.
func (p Past) forgot(now Past) string {
	//mutant: evictions are not watched
	//mutant: evictions that are counted anew are not watched
	if p.Evicted != now.Evicted { // a number that is lower than before was reset, and may hide evictions
		return Evicted
	}
	return ""
}

// lost returns why a server that has started again on its append-only file may not have all that it had before; "" if it has.
// first says that the file has not been written anew since.
func (p Past) lost(now Past, first bool) string {
	switch {
	//mutant: evictions after a restart are not looked for
	case now.Evicted > 0:
		return Evicted
	//mutant: a server that was started elsewhere has read the same file
	case now.Place != p.Place || now.Place == "":
		return Elsewhere
	//mutant: a server with fewer databases has read all
	case now.Databases < p.Databases:
		return Fewer
	//mutant: a dump counts as the append-only file
	case !first:
		return NotFirst
	}
	return ""
}

// changed returns why a server that bears the mark may have forgotten locks, by what it tells of its life; "" if it has not.
func (was *Canary) changed(now Canary) string {
	switch {
	case was.hasRestarted(now):
		return was.lost(now.Past, now.FirstFile)
	case now.Process == "-": // it tells nothing
		return ""
	}
	return was.forgot(now.Past)
}

// pastSince is what the next mark is to say of the server's life.
func (was *Canary) pastSince(now Canary) Past {
	switch {
	case now.Process == "-":
		return was.Past
	case was.hasRestarted(now):
		return now.Past
	}
	return was.since(now.Past)
}

// sinceEarly is pastSince for a mark that stays that of the server before.
func (was *Canary) sinceEarly(now Canary) Past {
	if was.hasRestarted(now) {
		return was.Past
	}
	return was.pastSince(now)
}

// copied says that others may have a copy of the data with this mark.
func (was *Canary) copied(now Canary) bool {
	switch {
	case now.Process == "-", was.hasRestarted(now) && now.Early: // then the next proxy that hears the others will say so
		return false
	case was.hasRestarted(now):
		return now.Copies > 0
	}
	//mutant: a replica that came and went leaves no older copy
	return now.Copies != was.Copies
}
