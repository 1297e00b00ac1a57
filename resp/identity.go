package resp

import (
	"strconv"
	"strings"
	"sync/atomic"

	"lockproxy/quorum/pubsub"
)

// An identity is what a session says of itself in CLIENT LIST. session.mu guards it; its own reader may read it
// without.
type identity struct {
	user         string
	loggedIn     bool
	unknownSince int64 // if not loggedIn: since when; server clock, ms
	db           int
	name         string
	proto3       bool
	last         atomic.Pointer[string] // the name of the last command
}

// reset makes a new client of it; now is the server's clock, db where clients begin.
func (i *identity) reset(loggedIn bool, now int64, db int) {
	i.user, i.loggedIn, i.unknownSince = defaultUser, loggedIn, now
	i.db, i.name, i.proto3 = db, "", false
}

func (c *call) setName(name string) {
	c.mu.Lock()
	c.name = strings.Clone(name) // not the whole command with it
	c.mu.Unlock()
}

func (c *call) setProtocol(resp3 bool) {
	c.resp3 = resp3
	c.mu.Lock()
	c.proto3 = resp3
	c.mu.Unlock()
	if c.up != nil && !c.linkDead() {
		c.up.agree() // there may be messages before the next command
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
	proto := "2"
	if s.proto3 {
		proto = "3"
	}
	num := func(n int64) string { return strconv.FormatInt(n, 10) }
	var b strings.Builder
	for _, f := range []string{
		"id=", num(s.id), " addr=", s.addr(), " laddr=", s.conn.LocalAddr().String(), " fd=0 name=", s.name,
		" age=", num((now - s.since) / 1000), " idle=", num((now - s.active.Load()) / 1000),
		" flags=", s.kindFlag(), " db=", num(int64(s.db)), " sub=", num(int64(s.counts[pubsub.Channel])),
		" psub=", num(int64(s.counts[pubsub.Pattern])), " ssub=", num(int64(s.counts[pubsub.Shard])), " multi=-1 qbuf=0 qbuf-free=0 argv-mem=",
		num(s.inBytes.Load()), " multi-mem=0 rbs=0 rbp=0 obl=0 oll=", num(s.depth.Load()),
		" omem=", num(int64(s.outBytes)), " tot-mem=0 events=r cmd=", cmd, " user=", s.user, " redir=-1 resp=", proto, "\n",
	} {
		b.WriteString(f)
	}
	return b.String()
}

// kindFlag is P for a client that has subscriptions, N for others.
func (s *session) kindFlag() string {
	if s.total.Load() > 0 {
		return "P"
	}
	return "N"
}

func (s *session) addr() string { return s.conn.RemoteAddr().String() }
