package masters

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
)

// Files describes the files that a master reads when it starts again, by the master's own account.
type Files struct {
	// Dir, Name and Folder are where its append-only file is; "" if the master does not tell.
	Dir, Name, Folder string
	// Databases is the number of databases, and so of databases read at a start; 0 if the master does not tell.
	Databases int64

	fullCopies, partCopies int64
	lastRewrite            string // how long the latest rewrite of the append-only file took; "-1" if there was none
	rewriting              bool
	scheduled              bool
	failed                 bool
}

// PlaceSettings are the settings of Files that AppendSettings lacks: dir and databases. Before Redis 7, CONFIG GET
// takes one pattern.
const PlaceSettings = "d[ia][rt]*"

// Place stands for the place of the append-only file; "" if the master does not tell.
func (f *Files) Place() string {
	if f.Dir == "" || f.Name == "" {
		return ""
	}
	h := fnv.New64a()
	// Where there is no folder, as before Redis 7, Redis 7 moves the file into the usual folder.
	_, _ = fmt.Fprintf(h, "%q %q %q", f.Dir, f.Name, cmp.Or(f.Folder, "appendonlydir")) // a hash never fails
	return strconv.FormatUint(h.Sum64(), 16)
}

// Copies is how often a replica, or a backup, has begun to copy the data since the start.
func (f *Files) Copies() int64 { return f.fullCopies + f.partCopies }

// Rewriting says that the master writes its append-only file anew, or waits to do so. If the file was just turned on,
// an earlier file is still on disk.
func (f *Files) Rewriting() bool { return f.rewriting || f.scheduled || f.failed }

// IsFirst says that the master has never written its append-only file anew since the start. So the master has had the
// file from the start, and has read the file.
func (f *Files) IsFirst() bool { return f.lastRewrite == "-1" && !f.Rewriting() }

func (f *Files) readInfo(name, value string, n int64) {
	switch name {
	case "sync_full":
		f.fullCopies = n
	case "sync_partial_ok":
		f.partCopies = n
	case "aof_last_rewrite_time_sec":
		f.lastRewrite = value
	case "aof_rewrite_in_progress":
		f.rewriting = n == 1
	case "aof_rewrite_scheduled":
		f.scheduled = n == 1
	case "aof_last_bgrewrite_status":
		f.failed = value != "ok"
	}
}

func (f *Files) readConfig(name, value string) {
	switch name {
	case "dir":
		f.Dir = value
	case "appendfilename":
		f.Name = value
	case "appenddirname":
		f.Folder = value
	case "databases":
		f.Databases, _ = strconv.ParseInt(value, 10, 64)
	}
}
