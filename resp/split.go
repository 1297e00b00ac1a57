package resp

// split refuses a request because of what lock_keys matches: some of its names and not others, or one that is no lock.
// Frameworks take such an error for something else, and go on without a word, so that the log has to tell.
func (c *call) split(refused Error) Error { return c.splitAs(refused, string(refused)) }

// splitAs is split where the reply is nothing for the log: an argument that looks like a lock's name may be a token.
func (c *call) splitAs(refused Error, told string) Error {
	s := c.server
	n := s.counters.split.Add(1)
	if s.splitTold.may(s.clock.Load()) {
		s.log.Warn("a request was refused because of what lock_keys matches", "client", c.addr(), "id", c.id,
			"error", told, "all_so_far", n)
	}
	return refused
}
