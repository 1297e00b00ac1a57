package pubsub

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"lockproxy/quorum/masters"
)

// A link is the connection to one master's messages, or the dialling of the next connection. A link reads on one
// goroutine and writes on another. So the link goes on hearing while a master does not read.
type link struct {
	hub    *Hub
	index  int
	source masters.Source
	wake   chan struct{} // for the writer: there is something to write

	// The hub's mu guards the fields below.
	conn    masters.Listener // nil: none
	cause   string           // of having no connection
	told    masters.Told
	outbox  []op     // to be written
	asked   []op     // written, or about to be; not answered
	matched int      // how many of asked are about patterns
	later   []*topic // topics to subscribe to when fewer answers are due; topics left meanwhile count no more
	silence int      // beats without a word from a master whose answer is due
	ended   string   // why we closed conn; empty: we have not
}

// An op is a command, and the topic for its answer.
type op struct {
	command masters.Command
	name    string
	topic   *topic // nil: of a Ping
}

func (o *op) aboutPattern() bool { return o.topic != nil && o.topic.Kind == Pattern }

const (
	// heartbeatEvery is how often an idle link makes its master speak.
	heartbeatEvery = 500 * time.Millisecond
	// silentAfter is the number of beats without a word after which a master whose answer is due counts as silent: its
	// bells may not be heard.
	silentAfter = 2
	// outboxMax bounds the unconfirmed subscriptions of a link. Beyond outboxMax the outbox gets only ends of
	// subscriptions.
	outboxMax = 1 << 14
	// matchedMax bounds the unanswered commands about patterns. For each such command, Redis before 7.2 looks through
	// all patterns of the connection. Redis also runs all commands that it has read at once, while its other clients
	// wait.
	matchedMax = 32
)

// connecting is the cause of a link before the first try.
const connecting = "is being connected to"

func (l *link) connecting() bool { return l.cause == connecting }

func (l *link) bit() uint64 { return 1 << l.index }

// run keeps a connection until ctx ends.
func (l *link) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; failures++ {
		if failures > 0 {
			masters.Pause(ctx, failures, l.hub.cfg.Pause)
		}
		dialing, cancel := context.WithTimeout(ctx, l.hub.cfg.DeadAfter)
		conn, err := l.source.Listen(dialing)
		cancel()
		if err == nil {
			failures = 0
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			err = l.serve(conn)
			stop()
		}
		l.down(ctx, masters.Describe(err))
	}
}

// serve takes the master's messages until the connection breaks.
func (l *link) serve(conn masters.Listener) error {
	h := l.hub
	h.mu.Lock()
	if l.told.Found() {
		h.cfg.Logger.Info("hears messages again", "master", l.source.Addr())
	}
	l.conn, l.cause, l.silence = conn, "", 0
	for _, name := range slices.SortedFunc(maps.Keys(h.topics), Topic.compare) {
		l.subscribe(h.topics[name])
	}
	h.mu.Unlock()

	var writer sync.WaitGroup
	broken := make(chan struct{})
	writer.Go(func() { l.write(conn, broken) })
	var err error
	for err == nil {
		var heard masters.Heard
		if heard, err = conn.Next(); err == nil {
			h.mu.Lock()
			err = l.hear(heard)
			h.mu.Unlock()
		}
	}
	close(broken)
	_ = conn.Close()
	writer.Wait()
	return err
}

// write writes the outbox until the connection is broken.
func (l *link) write(conn masters.Listener, broken <-chan struct{}) {
	var ops []op
	for {
		l.hub.mu.Lock()
		ops = l.next(ops[:0])
		l.hub.mu.Unlock()
		for _, o := range ops {
			if err := conn.Send(o.command, o.name); err != nil {
				l.hub.mu.Lock()
				if l.conn == conn && !isClosed(broken) {
					l.end(masters.Describe(err))
				}
				l.hub.mu.Unlock()
				_ = conn.Close()
				return
			}
		}
		if len(ops) > 0 {
			continue
		}
		select {
		case <-l.wake:
		case <-broken:
			return
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// next moves the commands that may be written now from the outbox to asked, and appends these to ops. The hub's mu is
// held.
func (l *link) next(ops []op) []op {
	for i := range l.outbox {
		if o := &l.outbox[i]; o.aboutPattern() {
			if l.matched == matchedMax {
				break
			}
			l.matched++
		}
		ops = append(ops, l.outbox[i])
	}
	l.asked = append(l.asked, ops...)
	l.outbox = slices.Delete(l.outbox, 0, len(ops))
	return ops
}

var errUnasked = errors.New("answered what was not asked")

// hear takes one answer or message of the master. The hub's mu is held.
func (l *link) hear(heard masters.Heard) error {
	l.silence = 0
	if heard.Kind == masters.Message {
		l.hub.hear(l, heard)
		return nil
	}
	if len(l.asked) == 0 {
		return errUnasked
	}
	o := l.asked[0]
	l.asked = l.asked[1:]
	if o.aboutPattern() {
		if l.matched--; l.matched == matchedMax/2 {
			signal(l.wake)
		}
	}
	defer l.resume()
	switch {
	case o.topic == nil:
	case o.command == masters.Unsubscribe || o.command == masters.PUnsubscribe:
		l.hub.left(o.topic, l)
	case heard.Kind == masters.Refused:
		o.topic.asked &^= l.bit()
		o.topic.failed |= l.bit()
		o.topic.refusal = heard.Err.Error()
		l.hub.judge(o.topic)
	default:
		o.topic.on |= l.bit()
		l.hub.judge(o.topic)
	}
	return nil
}

// subscribe subscribes to a topic on the master, or later if the master owes many answers. So clients that come and go
// faster than the master confirms wait for the master, and do not fill the outbox. The hub's mu is held.
func (l *link) subscribe(tp *topic) {
	tp.failed &^= l.bit()
	if len(l.outbox)+len(l.asked) < outboxMax {
		l.begin(tp)
		return
	}
	tp.later |= l.bit()
	l.later = append(l.later, tp)
	if len(l.later) > outboxMax+2*len(l.hub.topics) { // most were left again
		l.later = slices.DeleteFunc(l.later, func(tp *topic) bool { return tp.later&l.bit() == 0 })
	}
}

// resume subscribes to the topics of later. The hub's mu is held.
func (l *link) resume() {
	for len(l.later) > 0 && len(l.outbox)+len(l.asked) < outboxMax {
		tp := l.later[0]
		l.later = l.later[1:]
		if tp.later&l.bit() != 0 {
			tp.later &^= l.bit()
			l.begin(tp)
		}
	}
}

func (l *link) begin(tp *topic) {
	tp.asked |= l.bit()
	command, name := tp.command(masters.Subscribe, masters.PSubscribe)
	l.ask(op{command, name, tp})
}

// ask queues a command, if there is a connection. The hub's mu is held.
func (l *link) ask(o op) {
	if l.conn == nil {
		o.topic.asked &^= l.bit()
		return
	}
	l.outbox = append(l.outbox, o)
	signal(l.wake)
}

// beat makes the master speak. A master whose answer is due, and that says nothing, counts as silent after a while.
// After DeadAfter its connection ends. beat counts beats instead of asking a clock, so that a proxy that stood still
// does not blame its masters. The hub's mu is held.
func (l *link) beat() {
	if l.conn == nil {
		return
	}
	if len(l.asked) == 0 && len(l.outbox) == 0 {
		l.ask(op{command: masters.Ping})
		return
	}
	switch l.silence++; {
	case time.Duration(l.silence)*heartbeatEvery > l.hub.cfg.DeadAfter:
		l.silence = 0
		l.end("is silent")
	case l.silence == silentAfter:
		l.ringAll()
	}
}

// end closes the connection. The hub's mu is held.
func (l *link) end(why string) {
	if l.ended == "" {
		l.ended = why
	}
	_ = l.conn.Close()
}

// ringAll rings all bells of a master that is not heard, because the master may have rung. The hub's mu is held.
func (l *link) ringAll() {
	for _, tp := range l.hub.topics {
		if tp.Kind == Bell && tp.on&l.bit() != 0 {
			tp.ring(l, "")
		}
	}
}

// down notes why there is no connection.
func (l *link) down(ctx context.Context, cause string) {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.ended != "" { // otherwise the reader only knows that the connection is closed
		cause, l.ended = l.ended, ""
	}
	l.conn, l.cause, l.outbox, l.asked, l.matched, l.later = nil, cause, nil, nil, 0, nil
	if ctx.Err() != nil {
		return // Close ends the tickets
	}
	if news, all := l.told.Lost(cause, time.Now()); news {
		h.cfg.Logger.Warn("hears no messages", "master", l.source.Addr(), "cause", cause, "all_so_far", all)
	}
	for tp := range h.leaving {
		h.left(tp, l)
	}
	l.ringAll()
	for _, tp := range h.topics {
		tp.asked &^= l.bit()
		tp.later &^= l.bit()
		tp.on &^= l.bit()
		h.judge(tp)
	}
}
