package resp

import (
	"fmt"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/vote"
	"lockproxy/resp/group"
	"lockproxy/resp/hot"
)

// hottest are the keys that clients of this proxy contend for. Only refused attempts and finished waits touch a sketch: a free lock costs
// nothing.
type hottest struct {
	refused hot.Sketch // refused attempts
	waited  hot.Sketch // seconds of LOCK … WAIT
}

// A HotKey is a key that clients contend for.
type HotKey = hot.Key

// hotTold is how many keys INFO shows.
const hotTold = 10

// waitLeast is the shortest wait that counts: a LOCK … WAIT on a free key takes less.
const waitLeast = 10 * time.Millisecond

// Hottest returns the n keys at most with the most refused attempts a minute, and with the most seconds of waiting a minute.
func (s *Server) Hottest(n int) (refused, waited []HotKey) {
	now := time.Now()
	return s.hottest.refused.Top(n, now), s.hottest.waited.Top(n, now)
}

// noteRefusal notes an attempt refused because another client holds the key.
func (s *Server) noteRefusal(key quorum.Key) {
	s.hottest.refused.Add(key, 1, time.Now())
	s.groups.Refuse(key)
}

// noteWait notes the end of a LOCK … WAIT.
func (s *Server) noteWait(key quorum.Key, began time.Time, a *quorum.Acquired) {
	now := time.Now()
	waited := now.Sub(began)
	if waited >= waitLeast {
		s.hottest.waited.Add(key, waited.Seconds(), now)
	}
	is := group.Failed
	switch {
	case a.Lock != nil:
		is = group.Granted
	case a.Refused:
		is = group.Refused
	}
	s.groups.Wait(key, is, waited)
}

// noteVote notes a refused script by vote that was to take a lock.
func (s *Server) noteVote(req *quorum.RunRequest, r *quorum.Ran) {
	if req.Rule.Merge == vote.Taking && r.Err == nil && len(req.Keys) > 0 && !req.Rule.Granted(r.Reply) {
		s.noteRefusal(quorum.Key{DB: req.DB, Name: req.Keys[0]})
	}
}

// info writes the hottest keys, one in a line. The name is quoted, and comes last: the name may hold any bytes.
func (h *hottest) info(w *infoWriter) {
	now := time.Now()
	for i, k := range h.refused.Top(hotTold, now) {
		w.field(fmt.Sprintf("hot_refused%d", i), fmt.Sprintf("per_minute=%.2f,db=%d,key=%+q", k.PerMinute, k.DB, k.Name))
	}
	for i, k := range h.waited.Top(hotTold, now) {
		w.field(fmt.Sprintf("hot_waited%d", i), fmt.Sprintf("seconds_per_minute=%.2f,db=%d,key=%+q", k.PerMinute, k.DB, k.Name))
	}
}
