package resp

import "strconv"

// A moving is a SELECT that was sent over a link. The reader waits for the reply, which uplink.mu guards: the upstream may refuse, as
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
		l.uplink.mu.Lock()
		m.reply = reply
		l.uplink.mu.Unlock()
		s.replies.kick()
	}}, "SELECT", strconv.Itoa(db))
}

// moved waits for the upstream's reply to the SELECT that is under way, if there is one. It returns the refusal, if the upstream refuses.
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

// selectThere has the link follow to the client's new database before the client is told that it is there. It returns the upstream's
// refusal. Without a link there is nothing to do: the next one begins in that database, or not at all.
func selectThere(c *call) Reply {
	l := c.session.uplink.live()
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
