package resp

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"lockproxy/quorum/pubsub"
)

// An identity is who a client is, and how it speaks: what CLIENT LIST tells.
type identity struct {
	mu           sync.Mutex // guards what follows; the session's reader, which makes all changes, reads without
	user         string
	unknownSince int64 // since when the client has to log in; server clock, ms; 0: it has, or need not
	db           int
	name         string
	resp3        bool

	last atomic.Pointer[string] // the name of the last command
}

// reset gives the client the identity of a new one. now is the server's clock.
func (i *identity) reset(cfg *Config, now int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.user, i.db, i.name, i.resp3 = defaultUser, cfg.Database, "", false
	if i.unknownSince = 0; len(cfg.Users) > 0 {
		i.unknownSince = now
	}
}

// logIn says that the client has proved to be that user.
func (i *identity) logIn(user string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.user, i.unknownSince = strings.Clone(user), 0
}

func (i *identity) selectDB(db int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.db = db
}

func (i *identity) speak(resp3 bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.resp3 = resp3
}

// speaksRESP3 is for other goroutines than the reader.
func (i *identity) speaksRESP3() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.resp3
}

// isUser says whether the client is logged in by that name.
func (i *identity) isUser(name string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.user == name
}

// unknownFor is for how many ms the client has had to log in; 0 if it need not.
func (i *identity) unknownFor(now int64) int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.unknownSince == 0 {
		return 0
	}
	return now - i.unknownSince
}

// setName takes a client's name. It returns a reply if the name is refused.
func (i *identity) setName(name string, memory *account) (refused Reply) {
	size := nameSize(name)
	switch {
	case !validName(name):
		return errNameChars
	case size > 0 && !memory.keep(size):
		return errorReply(errMemory)
	}
	memory.drop(nameSize(i.name))
	i.mu.Lock()
	defer i.mu.Unlock()
	i.name = strings.Clone(name) // not the whole command with it
	return nil
}

// nameSize is what the memory budget counts for a client's name: nothing for one as short as names are.
func nameSize(name string) int {
	if len(name) < countedFrom {
		return 0
	}
	return len(name)
}

// validName says whether a client name can be printed in a list.
func validName(name string) bool {
	for i := range len(name) {
		if name[i] < '!' || name[i] > '~' {
			return false
		}
	}
	return true
}

// protocol is the version of RESP that the client speaks.
func (i *identity) protocol() int { return 2 + count(i.resp3) }

// resetIdentity gives the session the identity of a new client.
func (s *session) resetIdentity() {
	cfg := &s.server.cfg
	s.parser.Authed = len(cfg.Users) == 0
	s.memory.drop(nameSize(s.identity.name))
	if !s.parser.Authed {
		s.server.relief.strangers.arrived(s)
	}
	s.identity.reset(cfg, s.server.clock.Load())
}

// describe is the session's line of CLIENT LIST, in Redis's format. Fields that mean nothing here are zero.
func (s *session) describe() string {
	i, queue, subscribed := &s.identity, &s.replies.backlog, s.subscriptions.perKind()
	i.mu.Lock()
	defer i.mu.Unlock()
	now := s.server.clock.Load()
	cmd := "NULL"
	if last := i.last.Load(); last != nil {
		cmd = *last
	}
	kind := "" // P for a client that has subscriptions, N for others
	if s.subscriptions.any() {
		kind = "P"
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%v fd=0 name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=%d multi=-1 qbuf=0 "+
		"qbuf-free=0 argv-mem=%d multi-mem=0 rbs=0 rbp=0 obl=0 oll=%d omem=%d tot-mem=0 events=r cmd=%s user=%s redir=-1 resp=%d\n",
		s.id, s.addr(), s.conn.LocalAddr(), i.name, (now-s.since)/1000, (now-s.active.Load())/1000, cmp.Or(kind, "N"), i.db,
		subscribed[pubsub.Channel], subscribed[pubsub.Pattern], subscribed[pubsub.Shard],
		queue.inBytes.Load(), queue.depth.Load(), queue.outBytes.Load(), cmd, i.user, i.protocol())
}

func (s *session) addr() string { return s.conn.RemoteAddr().String() }
