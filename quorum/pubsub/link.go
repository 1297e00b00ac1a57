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

// A link is the connection to one master that hears messages, or the way to the next one. It reads on its own
// goroutine and writes on another, so that it goes on hearing while a master does not read.
type link struct {
	hub    *Hub
	index  int
	source masters.Source
	wake   chan struct{} // for the writer: there is something to write

	// The hub's mu guards what follows.
	conn    masters.Listener // nil: none
	cause   string           // of having none
	told    masters.Told
	outbox  []op     // to be written
	asked   []op     // written, or about to be; not answered
	matched int      // how many of asked are about patterns
	later   []*topic // to be subscribed to when fewer answers are due; those that were left meanwhile count no more
	silence int      // beats without a word of a master whose answer is due
	ended   string   // why it was we who closed conn; empty: we have not
}

// An op is a command, and whom the answer is for.
type op struct {
	command masters.Command
	name    string
	topic   *topic // nil: of a Ping
}

func (o *op) aboutPattern() bool { return o.topic != nil && o.topic.Kind == Pattern }

const (
	// heartbeatEvery is how often an idle link makes its master speak.
	heartbeatEvery = 500 * time.Millisecond
	// silentAfter is how many beats without a word from a master whose answer is due say that it is silent: its bells may not be heard.
	silentAfter = 2
	// outboxMax bounds the subscriptions that a master is asked for before it has confirmed them. Beyond it there are only ends of
	// subscriptions that there are.
	outboxMax = 1 << 14
	// matchedMax bounds what a master is asked about patterns before it has answered. For each command, Redis before 7.2 looks
	// through all patterns of the connection; and it runs all commands that it has read at once, while its other clients wait.
	matchedMax = 32
)

// connecting is the cause of a link that has not been tried yet.
const connecting = "is being connected to"

func (l *link) connecting() bool { return l.cause == connecting }

func (l *link) bit() uint64 { return 1 << l.index }

// run keeps a connection until ctx ends.
func (l *link) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; failures++ {
		if failures > 0 {
			l.pause(ctx, failures)
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

// serve hears what the master says until the connection breaks.
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

// write writes what is in the outbox until the connection is broken.
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

// next moves what may be written now from the outbox to asked, and appends it to ops. The hub's mu is held.
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

// hear takes one thing that the master said. The hub's mu is held.
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

// subscribe asks the master for a topic; later, where it owes many answers. So clients that come and go faster than it confirms that
// wait for it, and do not fill the outbox. The hub's mu is held.
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

// resume subscribes to what had to wait. The hub's mu is held.
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

// beat makes the master speak. One whose answer is due, and that does not say a word, is silent after a while, and after DeadAfter its
// connection ends. It counts beats instead of asking a clock: a proxy that stood still does not blame its masters. The hub's mu
// is held.
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

// ringAll rings the bells of a master that may have rung, and is not heard. The hub's mu is held.
func (l *link) ringAll() {
	for _, tp := range l.hub.topics {
		if tp.Kind == Bell && tp.on&l.bit() != 0 {
			tp.ring(l)
		}
	}
}

// down notes why there is no connection.
func (l *link) down(ctx context.Context, cause string) {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.ended != "" { // whoever reads is told only that it is closed
		cause, l.ended = l.ended, ""
	}
	l.conn, l.cause, l.outbox, l.asked, l.matched, l.later = nil, cause, nil, nil, 0, nil
	if ctx.Err() != nil {
		return // Close ends what waits
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

// pause waits before the next dial: 10 ms, doubling to 250 ms.
func (l *link) pause(ctx context.Context, failures int) {
	d := min(10*time.Millisecond<<min(failures-1, 10), 250*time.Millisecond)
	timer := time.NewTimer(d/2 + l.hub.cfg.Pause(d/2))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
