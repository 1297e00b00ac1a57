package resp

import (
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

// An Event is one step in the life of a lock, for the audit log.
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

// audit tells the audit log, if configured, of an event caused by the client.
func (s *session) audit(e Event) {
	if told := s.server.cfg.Audit; told != nil {
		e.Client = s.client()
		told(e)
	}
}

// auditReleased returns done, which takes the outcome of a release. With an audit log, the returned function first tells the log of a lock
// that was held.
func (s *session) auditReleased(e Event, done func(quorum.Released)) func(quorum.Released) {
	if s.server.cfg.Audit == nil {
		return done
	}
	e.What = Released
	return func(r quorum.Released) {
		if r.Held {
			s.audit(e)
		}
		done(r)
	}
}

// auditGiven tells of a lock whose reply is written: the client has the lock from here on.
func (s *session) auditGiven(sl *slot) {
	o := &sl.out
	if s.server.cfg.Audit == nil {
		return
	}
	events := sl.events
	if events == nil {
		what := Granted
		if !o.taken || o.held {
			what = Extended
		}
		for _, key := range o.lock.AppendKeys(nil) {
			events = append(events, Event{What: what, Key: key, Token: sl.token, Fence: o.fence})
		}
	}
	for _, e := range events {
		s.audit(e)
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
func votedEvents(s *Server, f *script.Family, req *quorum.RunRequest) []Event {
	if s.cfg.Audit == nil || f == nil {
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
		events = append(events, Event{What: what, Key: quorum.Key{DB: req.DB, Name: name}, Token: req.Rule.Field})
	}
	return events
}

// auditVoted tells of a release by a script by vote in the table of families. A granting reply of 0 says that the holder keeps an outer
// hold.
func auditVoted(s *session, f *script.Family, req *quorum.RunRequest, r *quorum.Ran) {
	if s.server.cfg.Audit == nil || f == nil || f.Kind != script.Releases || r.Err != nil || len(req.Keys) == 0 ||
		!req.Rule.Granted(r.Reply) || r.Reply.Kind == vote.IntValue && r.Reply.Int == 0 {
		return
	}
	e := Event{What: Released, Key: quorum.Key{DB: req.DB, Name: req.Keys[0]}, Token: req.Rule.Field}
	if f.Blind {
		e.What = Forced
	}
	s.audit(e)
}
