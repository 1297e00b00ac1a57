package pubsub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/quorum/masters"
)

// A fake is a master that only knows subscriptions.
type fake struct {
	addr string

	mu      sync.Mutex // guards all below
	lag     time.Duration
	refuse  bool               // dials are refused
	refusal []error            // with these in turn, else with ECONNREFUSED
	deny    string             // a name that may not be subscribed to
	stalled bool               // it reads and answers nothing
	conns   map[*fakeConn]bool // that are open
	log     map[string]int     // how often each command came
}

type fakeConn struct {
	fake   *fake
	once   sync.Once
	closed chan struct{}
	said   chan masters.Heard
	topics map[Topic]bool // guarded by fake.mu
}

func (f *fake) Addr() string { return f.addr }

func (f *fake) Listen(context.Context) (masters.Listener, error) {
	time.Sleep(time.Millisecond)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse && len(f.refusal) > 0 {
		f.refusal = append(f.refusal[1:], f.refusal[0])
		return nil, f.refusal[0]
	}
	if f.refuse {
		return nil, syscall.ECONNREFUSED
	}
	c := &fakeConn{fake: f, closed: make(chan struct{}), said: make(chan masters.Heard, 1<<12), topics: map[Topic]bool{}}
	f.conns[c] = true
	return c, nil
}

func (c *fakeConn) Send(command masters.Command, name string) error {
	f := c.fake
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-c.closed:
		return io.ErrClosedPipe
	default:
	}
	f.log[fmt.Sprint(command, " ", name)]++
	if f.stalled {
		return nil
	}
	heard := masters.Heard{Kind: masters.Confirmed}
	switch {
	case command == masters.Ping:
		heard.Kind = masters.Pong
	case name == f.deny && name != "":
		heard = masters.Heard{Kind: masters.Refused, Err: errors.New("NOPERM no")}
	case command == masters.Subscribe:
		c.topics[Topic{Channel, name}] = true
	case command == masters.PSubscribe:
		c.topics[Topic{Pattern, name}] = true
	case command == masters.Unsubscribe:
		delete(c.topics, Topic{Channel, name})
	default:
		delete(c.topics, Topic{Pattern, name})
	}
	c.say(heard)
	return nil
}

// say sends after the fake's lag. fake.mu is held.
func (c *fakeConn) say(h masters.Heard) {
	if c.fake.lag == 0 {
		c.said <- h
		return
	}
	time.AfterFunc(c.fake.lag, func() {
		select {
		case c.said <- h:
		case <-c.closed:
		}
	})
}

func (c *fakeConn) Next() (masters.Heard, error) {
	select {
	case h := <-c.said:
		return h, nil
	case <-c.closed:
		return masters.Heard{}, io.EOF
	}
}

func (c *fakeConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// publish sends the payload to whoever subscribed to the channel, or to a pattern that is its beginning and a star.
func (f *fake) publish(channel, payload string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		for t := range c.topics {
			switch {
			case t == Topic{Channel, channel}:
				c.say(masters.Heard{Kind: masters.Message, Channel: channel, Payload: payload})
			case t.Kind == Pattern && len(channel) >= len(t.Name)-1 && channel[:len(t.Name)-1]+"*" == t.Name:
				c.say(masters.Heard{Kind: masters.Message, Pattern: t.Name, Channel: channel, Payload: payload})
			}
		}
	}
}

func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// cut breaks all connections.
func (f *fake) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.Close()
		delete(f.conns, c)
	}
}

func (f *fake) count(command masters.Command, name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log[fmt.Sprint(command, " ", name)]
}

// A reader notes what is delivered to it.
type reader struct {
	mu  sync.Mutex
	got []string
}

func (r *reader) Deliver(m Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := m.Channel + "=" + m.Payload
	if m.Topic.Kind == Pattern {
		text = m.Topic.Name + ":" + text
	}
	r.got = append(r.got, text)
}

// take returns what came since the last take.
func (r *reader) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

// A world is a hub over fakes in a bubble of time.
type world struct {
	*Hub
	t       *testing.T
	masters []*fake
	n       int // publications so far
	log     bytes.Buffer
}

func inWorld(t *testing.T, n int, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		var sources []masters.Source
		for i := range n {
			m := &fake{addr: fmt.Sprintf("m%d", i+1), conns: map[*fakeConn]bool{}, log: map[string]int{}}
			w.masters = append(w.masters, m)
			sources = append(sources, m)
		}
		w.Hub = New(Config{Logger: slog.New(slog.NewTextHandler(&w.log, nil))}, sources)
		time.Sleep(10 * time.Millisecond)
		f(w)
		w.Close()
	})
}

// subscribe waits for the confirmation.
func (w *world) subscribe(r *reader, topics ...Topic) error {
	done := make(chan error, 1)
	w.Subscribe(r, topics, func(err error) { done <- err })
	return <-done
}

// mustSubscribe returns when all masters have had the time to confirm.
func (w *world) mustSubscribe(r *reader, topics ...Topic) {
	w.t.Helper()
	if err := w.subscribe(r, topics...); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

// publish sends one message from the masters of these numbers.
func (w *world) publish(channel, message string, from ...int) {
	w.n++
	for _, i := range from {
		w.masters[i].publish(channel, envelope(w.n, message))
	}
}

func envelope(n int, message string) string {
	return fmt.Sprintf("lockproxy:publisherpublish%016x:%s", n, message)
}

// want waits a little and compares what r got.
func (w *world) want(r *reader, want ...string) {
	w.t.Helper()
	synctest.Wait()
	if got := r.take(); !slices.Equal(got, want) {
		w.t.Errorf("got %q, want %q", got, want)
	}
}
