package resp

import "strconv"

// A moving is a SELECT sent over a link. The reader waits for the reply, because the upstream may refuse: while a script runs, or where the
// upstream has fewer databases. After a refusal the upstream would run later commands in the old database. uplink.mu guards reply.
type moving struct {
	db    int
	reply []byte
}

// move sends SELECT, unless a SELECT is under way.
func (l *link) move(db int) {
	if l.moving != nil {
		return
	}
	m, s := &moving{db: db}, l.session
	l.moving = m
	l.ask(expectation{n: 1, take: func(reply []byte) {
		l.uplink.mu.Lock()
		m.reply = reply
		l.uplink.mu.Unlock()
		s.replies.kick()
	}}, "SELECT", strconv.Itoa(db))
}

// moved waits for the upstream's reply to the SELECT under way, if any. A refusal is returned.
func (l *link) moved() Reply {
	m, s := l.moving, l.session
	if m == nil {
		return nil
	}
	replied := func() bool {
		l.uplink.mu.Lock()
		defer l.uplink.mu.Unlock()
		return m.reply != nil
	}
	if !s.reader.await(replied) {
		return errEnding
	}
	l.moving = nil
	if m.reply[0] == '-' {
		return Error(errorText(m.reply))
	}
	l.greeting.DB = m.db
	return nil
}

// selectThere moves the link to the client's new database before the client's SELECT is answered, and returns the upstream's refusal.
// Without a link there is nothing to do: the next link begins in the new database, or not at all.
func selectThere(c *call) Reply {
	l := c.session.uplink.live()
	if l == nil || l.sentAll || len(c.args) != 2 {
		return nil
	}
	db, refused := parseDB(c, c.args[1])
	if refused != nil {
		return nil // runSelect gives the error
	}
	if db != l.greeting.DB {
		l.move(db)
	}
	return l.moved()
}
