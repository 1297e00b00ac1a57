package resp

import (
	"time"
)

// janitor advances the server's coarse clock, and ends connections that took too long. One goroutine for all connections is cheaper than
// deadlines at every read and write; in exchange the timeouts are only as exact as the janitor's tick.
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
			s.journal.memory(&s.relief.memory)
			s.relief.relieveScarce(s.clock.Load())
			for _, sess := range s.sessions.all() {
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
