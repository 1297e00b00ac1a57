package masters

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

// An Info is a master's account of itself, as far as the master permits our questions.
type Info struct {
	Server   string // "redis" or "valkey"; of a Probe also "lockproxy"
	Version  string
	RunID    string // "" if the master does not tell
	Role     string // "master" or "slave"; "" if the master does not tell
	Lineage  string // the replication id of the master from which this server was promoted; "" if none
	Replicas int
	Cluster  bool // runs in cluster mode

	MaxClients int // accepted connections at most; 0 if the master does not tell

	AppendOnly      bool
	AppendFsync     string // "always", "everysec" or "no"; "" if the master does not tell
	AppendPauses    bool   // no fsync while the file is rewritten
	File            File
	LoadErrors      int64  // errors while the master loaded its data: refused commands are missing
	ScriptLimit     string // lua-time-limit, ms; "" if the master does not tell
	IOThreads       string // io-threads; "" if the master does not tell
	MaxMemory       int64  // bytes; 0 is no limit
	MaxMemoryPolicy string // "" if the master does not tell
	UsedMemory      int64  // bytes that count for MaxMemory; 0 if the master does not tell
	Evicted         int64  // keys, since the start
	Channels        int64  // with subscribers
	Files           Files

	ClockOffset time.Duration // of a Probe: the master's wall clock less ours, to within RoundTrip/2
	RoundTrip   time.Duration // of a Probe

	TellsExpiry bool // the master has PEXPIRETIME, as Redis has from version 7 on, and we may use it
	// Restraint is a setting and its value, as CONFIG GET tells them. While the setting has this value, the master
	// evicts nothing. nil if there is no such setting.
	Restraint []string

	Missing []string // commands that the user may not run
	Refusal string   // of a Probe: the error for writes from any client; "" if no write was tried, or writes succeed
}

// A File is the history of an append-only file, as far as INFO tells.
type File struct {
	Rewriting bool
	Rewritten bool  // since the server started
	Rewrites  int64 // told since version 7
	Base      int64 // size of the file's base
}

// Full says that the master's memory is used up, so that the master takes no more writes.
func (i *Info) Full() bool { return i.MaxMemory > 0 && i.UsedMemory > i.MaxMemory }

// Evicts says that the master throws keys away when its memory is full.
func (i *Info) Evicts() bool {
	return i.MaxMemory > 0 && i.MaxMemoryPolicy != "" && i.MaxMemoryPolicy != "noeviction"
}

// IsRestrained says that reply, to CONFIG GET with the name of the restraint, has the restraint's value.
func (i *Info) IsRestrained(reply any) bool {
	list, ok := reply.([]any)
	return ok && len(list) == 2 && list[1] == i.Restraint[1]
}

// Durable says two things. A restart of the master loses no command that the master answered within patience. And
// nobody has an older copy of its data.
func (i *Info) Durable(patience time.Duration) bool {
	//mutant: a file that is not what was loaded counts as all
	return i.KeepsAll() && !i.AnswersFirst(patience) && !i.Diverged()
}

// Diverged says that the master did not load all of its append-only file, and has not rewritten the file since. The
// commands written later rest on the data that the master has. Loaded behind the missing part, such a command may do
// something else, as an HSETNX that finds the field.
func (i *Info) Diverged() bool { return i.LoadErrors > 0 && !i.File.Rewritten }

// KeepsAll says that the master's settings are to write everything to disk before an answer.
func (i *Info) KeepsAll() bool {
	//mutant: everysec counts as always
	//mutant: a replica's old copy counts as durable
	return i.AppendOnly && i.AppendFsync == "always" && !i.AppendPauses && i.RunID != "" && i.Replicas == 0
}

// AnswersFirst says that the master may answer within patience before it has written to disk. Redis did so before
// version 7: while a script ran for longer than lua-time-limit, and with more than one of io-threads.
func (i *Info) AnswersFirst(patience time.Duration) bool {
	if !i.IsBefore7() {
		return false
	}
	limit, err := strconv.ParseInt(i.ScriptLimit, 10, 64)
	return err != nil || i.IOThreads != "1" || limit > 0 && time.Duration(limit)*time.Millisecond < patience
}

// IsBefore7 says that the master is a Redis of a version before 7.
func (i *Info) IsBefore7() bool {
	major, _, _ := strings.Cut(i.Version, ".")
	n, err := strconv.Atoi(major)
	return i.Server == "redis" && err == nil && n < 7
}

// TellsAppend says that the master has an append-only file, and tells when the file is written to disk.
func (i *Info) TellsAppend() bool { return i.AppendOnly && i.AppendFsync != "" }

// MayBeDurable says that the master does not tell whether it is Durable: INFO or CONFIG GET is not permitted.
func (i *Info) MayBeDurable() bool {
	if i.AppendFsync == "" {
		return i.RunID == "" || i.AppendOnly && i.Replicas == 0
	}
	return i.RunID == "" && i.AppendOnly && i.AppendFsync == "always" && !i.AppendPauses
}

// AppendSettings are the settings for writing every answer to disk: appendonly, appendfsync and
// no-appendfsync-on-rewrite.
const AppendSettings = "*append*"

// ScriptLimit and ioThreads are the settings by which a Redis before version 7 may answer before it writes to disk.
// Only the first can be changed while Redis runs.
const (
	ScriptLimit = "lua-time-limit"
	ioThreads   = "io-threads"
)

// ownKey is a key of lockproxy's own: every user that may vote may ask about ownKey.
const ownKey = "lockproxy:canary"

// inquiries are the questions of an Inquiry. Before version 7, CONFIG GET takes one pattern.
var inquiries = [...][]any{
	{"INFO"}, {"ROLE"}, {"CONFIG", "GET", AppendSettings}, {"CONFIG", "GET", PlaceSettings}, {"CONFIG", "GET", "maxmemory*"},
	{"PEXPIRETIME", ownKey}, {"CONFIG", "GET", ScriptLimit}, {"CONFIG", "GET", ioThreads},
}

// An Inquiry asks a master about itself, by inquiries.
type Inquiry [len(inquiries)]Call

// Calls returns the commands to execute.
func (q *Inquiry) Calls() []*Call {
	calls := make([]*Call, len(q))
	for n := range q {
		q[n].Args, calls[n] = inquiries[n], &q[n]
	}
	return calls
}

// Info returns the answers as an Info.
func (q *Inquiry) Info() Info {
	i := Info{Server: "redis"}
	info, role, settings, expiry := &q[0], &q[1], q[2:], &q[5]
	i.ReadInfo(text(info.Reply))
	if list, ok := role.Reply.([]any); ok && len(list) > 0 {
		i.Role = text(list[0])
	}
	for n := range settings { // the answer about an expiry has no settings
		i.ReadConfig(settings[n].Reply)
	}
	_, i.TellsExpiry = expiry.Reply.(int64)
	for _, c := range q[:3] {
		if c.Err != nil {
			i.Missing = append(i.Missing, name(c.Args))
		}
	}
	return i
}

// ReadInfo reads the reply of INFO.
func (i *Info) ReadInfo(reply string) {
	for line := range strings.Lines(reply) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, _ := strconv.ParseInt(v, 10, 64)
		switch k {
		case "redis_version":
			if i.Version == "" {
				i.Version = v
			}
		case "valkey_version":
			i.Server, i.Version = "valkey", v
		case "run_id":
			i.RunID = v
		case "maxclients":
			i.MaxClients = int(n)
		case "role":
			i.Role = v
		case "master_replid2":
			i.Lineage = strings.TrimLeft(v, "0") // all zeros is none
		case "connected_slaves":
			i.Replicas = int(n)
		case "cluster_enabled":
			i.Cluster = n == 1
		case "aof_enabled":
			i.AppendOnly = n == 1
		case "maxmemory":
			i.MaxMemory = n
		case "maxmemory_policy":
			i.MaxMemoryPolicy = v
		case "used_memory":
			i.UsedMemory += n
		case "mem_not_counted_for_evict":
			i.UsedMemory -= n
		case "sync_full":
			i.Files.fullCopies = n
		case "sync_partial_ok":
			i.Files.partCopies = n
		case "aof_rewrite_in_progress":
			i.File.Rewriting, i.Files.rewriting = n == 1, n == 1
		case "aof_rewrite_scheduled":
			i.Files.scheduled = n == 1
		case "aof_last_rewrite_time_sec":
			i.File.Rewritten, i.Files.lastRewrite = n >= 0, v
		case "aof_last_bgrewrite_status": // comes after aof_last_rewrite_time_sec
			i.File.Rewritten, i.Files.failed = i.File.Rewritten && v == "ok", v != "ok"
		case "aof_rewrites":
			i.File.Rewrites = n
		case "aof_base_size":
			i.File.Base = n
		case "unexpected_error_replies":
			i.LoadErrors = n
		case "evicted_keys":
			i.Evicted = n
		case "pubsub_channels":
			i.Channels = n
		}
	}
}

// ReadConfig reads the reply of CONFIG GET.
func (i *Info) ReadConfig(reply any) {
	list, _ := reply.([]any)
	for ; len(list) >= 2; list = list[2:] {
		v := text(list[1])
		switch text(list[0]) {
		case "appendonly":
			i.AppendOnly = v == "yes"
		case "appendfsync":
			i.AppendFsync = v
		case "no-appendfsync-on-rewrite":
			i.AppendPauses = v == "yes"
		case "dir":
			i.Files.Dir = v
		case "appendfilename":
			i.Files.Name = v
		case "appenddirname":
			i.Files.Folder = v
		case "databases":
			i.Files.Databases, _ = strconv.ParseInt(v, 10, 64)
		case ScriptLimit:
			i.ScriptLimit = v
		case ioThreads:
			i.IOThreads = v
		case "maxmemory":
			if n, err := strconv.ParseInt(v, 10, 64); err == nil { // otherwise INFO has the number
				i.MaxMemory = n
			}
			if v == "0" && i.Restraint == nil {
				i.Restraint = []string{"maxmemory", v}
			}
		case "maxmemory-policy":
			i.MaxMemoryPolicy = v
			if v == "noeviction" {
				i.Restraint = []string{"maxmemory-policy", v}
			}
		}
	}
}

// name returns a command as ACL rules name commands.
func name(args []any) string {
	text, _ := args[0].(string)
	if text == "CONFIG" {
		return "CONFIG GET"
	}
	return text
}

// ParseTime reads the reply of TIME.
func ParseTime(reply any) (time.Time, bool) {
	list, ok := reply.([]any)
	if !ok || len(list) != 2 {
		return time.Time{}, false
	}
	sec, err1 := strconv.ParseInt(text(list[0]), 10, 64)
	usec, err2 := strconv.ParseInt(text(list[1]), 10, 64)
	return time.Unix(sec, usec*1000), err1 == nil && err2 == nil
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

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
