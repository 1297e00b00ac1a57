package resp

// admit says whether the reader may begin an operation of the engine. If not, its command waits, unparsed, as behind a full
// pipeline, and the reader is kicked when it is its turn. What begins none is not held up.
func (s *session) admit() bool {
	if s.place.Admit() {
		return true
	}
	if s.server.loadTold.may(s.server.clock.Load()) {
		control := s.server.engine.Admission()
		running, _ := control.Rounds()
		s.server.log.Warn("clients ask for more than can be answered in time, and wait in line", "rounds", running, "waiting", control.Waiting())
	}
	return false
}
