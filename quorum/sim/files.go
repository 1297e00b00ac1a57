package sim

import (
	"fmt"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// Files are a server's account of its files at a start. A scene decides the content.
type files struct {
	moved     string // the place of moved files; "" if they are where they should be
	fewer     int    // so many databases are missing
	copies    int64  // a replica has begun to copy its data so often
	rewritten bool   // the append-only file was written anew since the start
	rewriting bool
}

// restart sets the state of a new process.
func (f *files) restart() { *f = files{} }

// info is the part of INFO.
func (f *files) info() string {
	took, running := -1, 0
	if f.rewritten {
		took = 0
	}
	if f.rewriting {
		running = 1
	}
	return fmt.Sprintf("aof_rewrite_in_progress:%d\r\naof_rewrite_scheduled:0\r\naof_last_rewrite_time_sec:%d\r\naof_last_bgrewrite_status:ok\r\n",
		running, took)
}

// past is the past in a mark at the beginning of the server's life.
func (s *server) past() vouch.Past {
	if s.denied["CONFIG"] {
		return vouch.Past{}
	}
	f := masters.Files{Dir: s.setting("dir"), Name: s.setting("appendfilename"), Databases: databases}
	return vouch.Past{Databases: f.Databases, Place: f.Place()}
}
