package vouch

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// A Past is a server's own account of its life since the start, as far as its memory of locks is concerned. A mark has
// the past at the time of marking. A difference from the server's present account has happened since.
type Past struct {
	// Evicted is the number of evicted keys.
	Evicted int64
	// Copies is how often a replica has begun to copy the data.
	Copies int64
	// Databases is the number of databases; 0 if the server does not tell.
	Databases int64
	// Place stands for the place of the server's files; "" if the server does not tell.
	Place string
	// Moved says that Place was changed while the server ran: a restart may read a file other than the one being
	// written.
	Moved bool
}

// evictedField names the evictions in a mark's text: a script on the master writes them anew (quorum/marks.go).
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

// since returns the next past in the mark of the same server, given the server's present account.
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
	// Elsewhere and the reasons below are of a server that has restarted.
	Elsewhere = "it was started with its files in another place, and may have read older ones"
	Fewer     = "it was started with fewer databases, and so has not read all of its append-only file"
	NotFirst  = "it has written its append-only file anew since it started, and so may have started on other data"
)

// forgot returns why the same server may have forgotten locks, by its present account; "" if it has not.
func (p Past) forgot(now Past) string {
	//mutant: evictions are not watched
	//mutant: evictions that are counted anew are not watched
	if p.Evicted != now.Evicted { // a lower number was reset, and may hide evictions
		return Evicted
	}
	return ""
}

// lost returns why a server that has started again on its append-only file may not have all of its former data; "" if
// it has. first says that the file has not been written anew since.
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

// changed returns why the mark's server may have forgotten locks, by its account of its life; "" if it has not.
func (was *Canary) changed(now Canary) string {
	switch {
	case was.hasRestarted(now):
		return was.lost(now.Past, now.FirstFile)
	case now.Process == "-": // the server tells nothing
		return ""
	}
	return was.forgot(now.Past)
}

// pastSince returns the account of the server's life for the next mark.
func (was *Canary) pastSince(now Canary) Past {
	switch {
	case now.Process == "-":
		return was.Past
	case was.hasRestarted(now):
		return now.Past
	}
	return was.since(now.Past)
}

// sinceEarly is pastSince for a mark that stays the mark of the former server.
func (was *Canary) sinceEarly(now Canary) Past {
	if was.hasRestarted(now) {
		return was.Past
	}
	return was.pastSince(now)
}

// copied says that other servers may have a copy of the data with this mark.
func (was *Canary) copied(now Canary) bool {
	switch {
	case now.Process == "-", was.hasRestarted(now) && now.Early: // the next proxy that hears the others will say so
		return false
	case was.hasRestarted(now):
		return now.Copies > 0
	}
	//mutant: a replica that came and went leaves no older copy
	return now.Copies != was.Copies
}
