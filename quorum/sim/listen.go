package sim

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"lockproxy/quorum"
	"lockproxy/quorum/masters"
)

// A listener is a connection for a master's messages. It knows no patterns.
type listener struct {
	conn  *conn
	news  chan struct{} // there is something for Next
	heard []masters.Heard
	err   error // of the end of the connection
}

// Listen connects. The context bounds the dial.
func (e *endpoint) Listen(ctx context.Context) (masters.Listener, error) {
	dialled, err := e.Dial(ctx, 0)
	if err != nil {
		return nil, err
	}
	c := dialled.(*conn)
	l := &listener{conn: c, news: make(chan struct{}, 1)}
	c.world.do(func() {
		if c.listener = l; c.gone {
			l.end(io.EOF)
		}
	})
	return l, nil
}

// Send lets a command travel.
func (l *listener) Send(what masters.Command, name string) error {
	c := l.conn
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if c.gone {
		return net0
	}
	c.send(up, func() { c.server.arrived(&parcel{conn: c, order: func() { l.obey(what, name) }}) })
	return nil
}

// obey runs the command on the master.
func (l *listener) obey(what masters.Command, name string) {
	kind := masters.Confirmed
	switch c := l.conn.session; what {
	case masters.Subscribe:
		if c.topics == nil {
			c.topics = make(map[string]bool)
		}
		c.topics[name] = true
	case masters.Unsubscribe:
		delete(c.topics, name)
	case masters.Ping:
		kind = masters.Pong
	}
	l.say(masters.Heard{Kind: kind})
}

// say lets a word of the master travel.
func (l *listener) say(h masters.Heard) {
	l.conn.send(down, func() {
		if !l.conn.gone {
			l.heard = append(l.heard, h)
			l.signal()
		}
	})
}

func (l *listener) signal() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// end is called when the proxy's end is closed.
func (l *listener) end(err error) {
	l.err = err
	l.signal()
}

// Next waits for the master's next word.
func (l *listener) Next() (masters.Heard, error) {
	for {
		l.conn.world.mu.Lock()
		var h masters.Heard
		n, err := len(l.heard), l.err
		if n > 0 {
			h, l.heard = l.heard[0], l.heard[1:]
		}
		l.conn.world.mu.Unlock()
		switch {
		case n > 0:
			return h, nil
		case err != nil:
			return h, err
		}
		<-l.news
	}
}

// Close ends the connection.
func (l *listener) Close() error { return l.conn.Close() }

func cmdPublish(s *server, _ *session, args []string) reply {
	n := int64(0)
	if strings.HasPrefix(args[1], quorum.BellPrefix) && args[2] != "" {
		s.world.checker.counts.HandedOver++
	}
	for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
		if c := s.sessions[id]; c.session.topics[args[1]] {
			c.listener.say(masters.Heard{Kind: masters.Message, Channel: args[1], Payload: args[2]})
			n++
		}
	}
	return n
}
