package resp

import (
	"fmt"
	"strings"
	"sync/atomic"

	"lockproxy/quorum/pubsub"
)

// An identity is what a session says of itself in CLIENT LIST. session.mu guards it; its own reader may read it
// without.
type identity struct {
	user         string
	unknownSince int64 // since when the client has to log in; server clock, ms; 0: it has, or need not
	db           int
	name         string
	resp3        bool
	last         atomic.Pointer[string] // the name of the last command
}

// resetIdentity gives the session the identity of a new client.
func (s *session) resetIdentity() {
	cfg := &s.server.cfg
	s.parser.Authed = len(cfg.Users) == 0
	s.memory.drop(nameSize(s.name))
	if !s.parser.Authed {
		s.server.strangers.arrived(s)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user, s.db, s.name, s.resp3 = defaultUser, cfg.Database, "", false
	s.unknownSince = 0
	if !s.parser.Authed {
		s.unknownSince = s.server.clock.Load()
	}
}

func (c *call) setName(name string) (refused Reply) {
	memory, size := &c.memory, nameSize(name)
	switch {
	case !validName(name):
		return errNameChars
	case size > 0 && !memory.keep(size):
		return errorReply(errMemory)
	}
	memory.drop(nameSize(c.name))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name = strings.Clone(name) // not the whole command with it
	return nil
}

// nameSize is what the memory budget counts for a client's name: nothing for one as short as names are.
func nameSize(name string) int {
	if len(name) < countedFrom {
		return 0
	}
	return len(name)
}

func (c *call) setProtocol(resp3 bool) {
	c.mu.Lock()
	c.resp3 = resp3
	c.mu.Unlock()
	if l := c.liveLink(); l != nil {
		l.agree() // there may be messages before the next command
	}
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

// describe is the session's line of CLIENT LIST, in Redis's format. Fields that mean nothing here are zero.
func (s *session) describe() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.server.clock.Load()
	cmd := "NULL"
	if last := s.last.Load(); last != nil {
		cmd = *last
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%v fd=0 name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=%d multi=-1 qbuf=0 "+
		"qbuf-free=0 argv-mem=%d multi-mem=0 rbs=0 rbp=0 obl=0 oll=%d omem=%d tot-mem=0 events=r cmd=%s user=%s redir=-1 resp=%d\n",
		s.id, s.addr(), s.conn.LocalAddr(), s.name, (now-s.since)/1000, (now-s.active.Load())/1000, s.kindFlags(), s.db,
		s.counts[pubsub.Channel], s.counts[pubsub.Pattern], s.counts[pubsub.Shard],
		s.inBytes.Load(), s.depth.Load(), s.outBytes.Load(), cmd, s.user, s.protocol())
}

// protocol is the version of RESP that the client speaks.
func (i *identity) protocol() int { return 2 + count(i.resp3) }

// kindFlags are P for a client that has subscriptions, N for others.
func (s *session) kindFlags() string {
	if s.total.Load() > 0 {
		return "P"
	}
	return "N"
}

func (s *session) addr() string { return s.conn.RemoteAddr().String() }
