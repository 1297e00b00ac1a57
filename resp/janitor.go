package resp

import (
	"time"
)

// janitor advances the server's coarse clock and ends the connections that took too long. One goroutine for all
// connections is cheaper than deadlines set at every read and write; in exchange the timeouts are as exact as its tick.
func (s *Server) janitor() {
	defer s.running.Done()
	t := time.NewTicker(tick(&s.cfg.Limits))
	defer t.Stop()
	for {
		select {
		case <-s.stopped:
			return
		case <-t.C:
			s.clock.Store(max(1, time.Since(s.started).Milliseconds()))
			s.warnMemory()
			s.relief.relieveScarce(s.clock.Load())
			for _, sess := range s.roster.all() {
				sess.checkTimes(s.clock.Load())
			}
		}
	}
}

// tick is a tenth of the shortest timeout, between 10 ms and 1 s.
func tick(l *Limits) time.Duration {
	shortest := l.Write
	for _, d := range []time.Duration{l.Idle, l.Auth} {
		if d > 0 {
			shortest = min(shortest, d)
		}
	}
	return min(max(shortest/10, 10*time.Millisecond), time.Second)
}

// checkTimes ends the session if it took too long; now is the server's clock.
func (s *session) checkTimes(now int64) {
	limits := &s.server.cfg.Limits
	if w := s.replies.writing.Load(); w != 0 && now-w > limits.Write.Milliseconds() {
		s.kill("write timeout: the client does not read")
		return
	}
	if w := s.sending.Load(); w != 0 && now-w > limits.Write.Milliseconds() {
		s.upstreamLost("write timeout: it does not read")
		return
	}
	s.holds.hurryOverdue()
	s.replies.lookAgain()
	idle := limits.Idle > 0 && now-s.active.Load() > limits.Idle.Milliseconds() && s.isQuiet()
	switch {
	case s.replies.closing.Load():
	case s.identity.unknownFor(now) > limits.Auth.Milliseconds():
		s.stop("auth_timeout")
	case idle:
		s.stop("idle_timeout")
	}
}

// isQuiet says whether the client expects nothing: no reply, no message, and no lock that it holds. The replies are looked at
// before the holds: a LOCK … HOLD that is answered has its hold.
func (s *session) isQuiet() bool {
	return s.replies.isIdle() && !s.heldUp.Load() && !s.subscriptions.any() && s.holds.isEmpty() && !s.monitors.Load()
}
