package resp

import "strconv"

// A moving is a SELECT that was sent over a link. The reader waits for the reply, which replies.mu guards: the upstream may refuse, as
// while it runs a script, or where it has fewer databases, and would run what comes behind in the database that it was in.
type moving struct {
	db    int
	reply []byte
}

// move sends SELECT, unless one is under way.
func (l *link) move(db int) {
	if l.moving != nil {
		return
	}
	m, s := &moving{db: db}, l.session
	l.moving = m
	l.ask(expectation{n: 1, take: func(reply []byte) {
		s.replies.mu.Lock()
		defer s.replies.mu.Unlock()
		m.reply = reply
		s.replies.wakeReader()
	}}, "SELECT", strconv.Itoa(db))
}

// moved returns nil if no SELECT is under way, wait if the upstream has not replied to it, or the upstream's refusal.
func (l *link) moved() Reply {
	m, s := l.moving, l.session
	if m == nil {
		return nil
	}
	s.replies.mu.Lock()
	reply := m.reply
	s.replies.mu.Unlock()
	switch {
	case reply == nil:
		return wait
	case reply[0] == '-':
		l.moving = nil
		return Error(errorText(reply))
	}
	l.moving, l.greeting.DB = nil, m.db
	return nil
}

// selectThere has the link follow to the client's new database before the client is told that it is there. It returns wait, or the
// upstream's refusal. Without a link there is nothing to do: the next one begins in that database, or not at all.
func selectThere(c *call) Reply {
	l := c.session.liveLink()
	if l == nil || l.sentAll || len(c.args) != 2 {
		return nil
	}
	db, refused := parseDB(c, c.args[1])
	if refused != nil {
		return nil // which runSelect says
	}
	if db != l.greeting.DB {
		l.move(db)
	}
	return l.moved()
}
