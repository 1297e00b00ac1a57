package resp

import (
	"strconv"
	"strings"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/vote"
	"lockproxy/script"
)

// A Client identifies a client in lists and logs.
type Client struct {
	Addr    string
	Name    string // of CLIENT SETNAME
	Library string // of CLIENT SETINFO: name and version
	User    string
}

// An Event is one step in the life of a lock, for the audit log and the groups.
type Event struct {
	What   string
	Key    quorum.Key
	Token  string // empty: unknown
	Fence  int64  // 0: no fence, or unknown
	Cause  string
	Client Client
}

// The values of Event.What.
const (
	Granted  = "granted"  // the granting reply is written
	Refused  = "refused"  // a LOCK … WAIT got no lock
	Released = "released" // by its holder
	Extended = "extended" // by a command of a client
	Deleted  = "deleted"  // by DEL or UNLINK, whoever held the lock
	Lost     = "lost"     // a LOCK … HOLD could not be extended
	Forced   = "forced"   // by FORCEUNLOCK
)

func (s *session) client() Client {
	i := &s.identity
	i.mu.Lock()
	defer i.mu.Unlock()
	return Client{Addr: s.addr(), Name: i.name, Library: i.library(), User: i.user}
}

// listens says whether anybody wants events: the audit log, or the groups.
func listens(s *Server) bool { return s.cfg.Audit != nil || s.groups != nil }

// tell tells the groups and the audit log, if configured, of an event caused by the client.
func (s *session) tell(e Event) {
	if groups := s.server.groups; groups != nil {
		switch e.What {
		case Granted:
			groups.Grant(e.Key, e.Token, time.Now())
		case Released, Deleted, Lost, Forced:
			groups.End(e.Key, e.Token, time.Now())
		}
	}
	if told := s.server.cfg.Audit; told != nil {
		addFence(s.server, &e)
		e.Client = s.client()
		told(e)
	}
}

// addFence adds the fence with which the lock was granted through this proxy to an event whose command does not name the fence.
func addFence(s *Server, e *Event) {
	switch lock := s.takers.hash(e.Key, e.Token); {
	case e.Token == "":
	case e.What == Granted && e.Fence != 0:
		s.fences.Add(lock, e.Fence)
	case e.What == Granted: // an earlier lock with this token may have had a fence
		s.fences.Remove(lock)
	case e.Fence == 0 && e.What != Refused:
		e.Fence, _ = s.fences.Get(lock)
	}
}

// tellReleased returns done, which takes the outcome of a release. If somebody listens, the returned function first tells of a lock that
// was held.
func (s *session) tellReleased(e Event, done func(quorum.Released)) func(quorum.Released) {
	if !listens(s.server) {
		return done
	}
	e.What = Released
	return func(r quorum.Released) {
		if r.Held {
			s.tell(e)
		}
		done(r)
	}
}

// tellGiven tells of a lock whose reply is written: the client has the lock from here on.
func (s *session) tellGiven(sl *slot) {
	if !listens(s.server) {
		return
	}
	o, what := &sl.out, Granted
	if !o.taken || o.held {
		what = Extended
	}
	switch {
	case sl.events != nil:
		for _, e := range sl.events {
			s.tell(e)
		}
	case sl.token != "": // one lock, as by SET NX or LOCK
		s.tell(Event{What: what, Key: sl.key, Token: sl.token, Fence: o.fence})
	default:
		for _, key := range o.lock.AppendKeys(nil) {
			s.tell(Event{What: what, Key: key, Fence: o.fence})
		}
	}
}

// refusalOf says why a LOCK … WAIT got no lock.
func refusalOf(a quorum.Acquired) string {
	if a.Err != nil {
		return a.Err.Error()
	}
	return "held by another"
}

// votedEvents are the events of a script by vote, if the script takes or extends something. nil means unknown: the table of families lacks
// the script. Empty means neither taken nor extended, though the script sets keys, as Redisson's releases do. Most scripts lock KEYS[1],
// and have further keys for other purposes.
func votedEvents(s *Server, text *script.Script, req *quorum.RunRequest) []Event {
	f := text.Family
	if !listens(s) || f == nil {
		return nil
	}
	events, what, names := []Event{}, Granted, req.Keys
	switch {
	case f.Kind == script.Extends:
		what = Extended
	case f.Kind != script.Takes:
		return events
	}
	if f.Granted != script.GrantKeys && !f.Each {
		names = names[:min(1, len(names))]
	}
	for _, name := range names {
		events = append(events, Event{What: what, Key: quorum.Key{DB: req.DB, Name: name}, Token: callerOf(text, req)})
	}
	return events
}

// tellVoted tells of a release by a script by vote in the table of families. A granting reply of 0 says that the holder keeps an outer
// hold.
func tellVoted(s *session, text *script.Script, req *quorum.RunRequest, r *quorum.Ran) {
	f := text.Family
	if !listens(s.server) || f == nil || f.Kind != script.Releases || r.Err != nil || len(req.Keys) == 0 ||
		!req.Rule.Granted(r.Reply) || r.Reply.Kind == vote.IntValue && r.Reply.Int == 0 {
		return
	}
	e := Event{What: Released, Key: quorum.Key{DB: req.DB, Name: req.Keys[0]}, Token: callerOf(text, req)}
	if f.Blind {
		e.What = Forced
	}
	s.tell(e)
}

// callerOf returns the token of a script's caller: the field that the script looks for in the hash KEYS[1]; "": unknown.
func callerOf(s *script.Script, req *quorum.RunRequest) string {
	if req.Rule.Field != "" || s.Family.Each {
		return req.Rule.Field
	}
	_, after, _ := strings.Cut(s.Text, "hexists', KEYS[1], ARGV[")
	place, _, _ := strings.Cut(after, "]")
	if i, err := strconv.Atoi(place); err == nil && 0 < i && i <= len(req.Args) {
		return req.Args[i-1]
	}
	return ""
}
