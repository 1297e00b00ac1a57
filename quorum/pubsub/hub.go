package pubsub

import (
	"cmp"
	"context"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
)

// Config holds a hub's settings. Zero values get the defaults.
type Config struct {
	// Patience is how long a message waits for the copies of a quorum. Default 100 ms.
	Patience time.Duration
	// DeadAfter has three uses: the silence that ends a link whose answer is due, the longest time for connecting, and
	// the time in which masters have to confirm a subscription. Unlike a lock, a late subscription is as good as an
	// early one. Default 5 s.
	DeadAfter time.Duration
	// Pause chooses how long to wait before a master is dialled again, in part: less than most. Default: at random.
	Pause func(most time.Duration) time.Duration
	// Logger gets one line for each change of a link's state. Default: none.
	Logger *slog.Logger
}

// A Hub has the subscriptions of one proxy.
type Hub struct {
	cfg    Config
	epoch  time.Time
	quorum int
	links  []*link
	wake   chan struct{} // the timer has something new to wait for
	cancel context.CancelFunc
	loops  sync.WaitGroup

	mu       sync.Mutex // guards all below, and the fields of links below their mark
	topics   map[Topic]*topic
	patterns map[*topic]struct{} // the topics that are patterns: each published message is matched with all
	leaving  map[*topic]struct{} // topics that links were told to leave, and perhaps have not left yet
	sieve    *sieve
	tickets  []*ticket // tickets that are not done, and some that are, by deadline
	out      []Message // kept, because a new slice would be garbage
	closed   bool
}

// New returns a hub over all masters, in the order of the engine's, and begins to connect.
func New(cfg Config, sources []masters.Source) *Hub {
	cfg.Patience = cmp.Or(cfg.Patience, 100*time.Millisecond)
	cfg.DeadAfter = cmp.Or(cfg.DeadAfter, 5*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Pause == nil {
		cfg.Pause = rand.N[time.Duration]
	}
	q := rules.Quorum(len(sources))
	h := &Hub{
		cfg: cfg, epoch: time.Now(), quorum: q, wake: make(chan struct{}, 1),
		topics: map[Topic]*topic{}, patterns: map[*topic]struct{}{}, leaving: map[*topic]struct{}{}, sieve: newSieve(q, cfg.Patience),
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	for i, s := range sources {
		l := &link{hub: h, index: i, source: s, wake: make(chan struct{}, 1), cause: connecting}
		h.links = append(h.links, l)
		h.loops.Go(func() { l.run(ctx) })
	}
	h.loops.Go(func() { h.keepTime(ctx) })
	return h
}

// Close ends all links and waits for every goroutine. Unconfirmed subscriptions end with ErrClosed.
func (h *Hub) Close() {
	h.cancel()
	h.loops.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, t := range h.tickets {
		h.end(t, quorum.ErrClosed)
	}
	h.tickets = nil
}

func (h *Hub) now() instant { return time.Since(h.epoch) }

// Subscribe adds s to the topics. Subscribe calls done once, with h.mu held, when a quorum of masters has confirmed all
// topics: later messages are delivered. done gets a *quorum.NoQuorum if DeadAfter has passed, or too few masters can be
// reached, and a *Refused if too many masters refuse. After an error, s is taken from the topics that s did not have
// before.
func (h *Hub) Subscribe(s Subscriber, topics []Topic, done func(error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &ticket{subscriber: s, due: h.now() + h.cfg.DeadAfter, done: done}
	for _, name := range topics {
		tp := h.open(name)
		if _, has := tp.subscribers[s]; !has {
			tp.subscribers[s] = struct{}{}
			t.added = append(t.added, name)
		}
		if bits.OnesCount64(tp.on) < h.quorum {
			tp.tickets = append(tp.tickets, t)
			t.waits = append(t.waits, tp)
		}
	}
	t.left = len(t.waits)
	switch {
	case h.closed:
		h.end(t, quorum.ErrClosed)
	case t.left == 0:
		h.end(t, nil)
	default:
		h.tickets = append(h.tickets, t)
		signal(h.wake)
		for _, tp := range t.waits {
			h.judge(tp)
		}
	}
}

// Unsubscribe takes s from the topics. s gets none of their messages any more.
func (h *Hub) Unsubscribe(s Subscriber, topics []Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leave(s, topics)
}

// leave is Unsubscribe with mu held.
func (h *Hub) leave(s Subscriber, topics []Topic) {
	for _, name := range topics {
		tp := h.topics[name]
		if tp == nil {
			continue
		}
		delete(tp.subscribers, s)
		if len(tp.subscribers) > 0 {
			continue
		}
		delete(h.topics, name)
		delete(h.patterns, tp)
		command, name := tp.command(masters.Unsubscribe, masters.PUnsubscribe)
		h.leaving[tp] = struct{}{}
		for _, l := range h.links {
			if tp.later&l.bit() != 0 { // nobody has subscribed on this link
				tp.later &^= l.bit()
				continue
			}
			l.ask(op{command, name, tp})
		}
		if tp.asked == 0 {
			delete(h.leaving, tp)
		}
		h.confirmed(tp) // the topic has no subscriber left, so nobody can miss a message
	}
}

// Confirmed returns the masters that have confirmed the topic, one bit for each. These masters are heard until they go
// silent, or their links break. Then their bells ring.
func (h *Hub) Confirmed(t Topic) (heard uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if tp := h.topics[t]; tp != nil {
		heard = tp.on
	}
	for _, l := range h.links {
		if l.silence >= silentAfter {
			heard &^= l.bit()
		}
	}
	return heard
}

// left notes that a link has left the topic. mu is held.
func (h *Hub) left(tp *topic, l *link) {
	if tp.asked &^= l.bit(); tp.asked == 0 {
		delete(h.leaving, tp)
	}
}

// open returns the topic, and makes a new one if needed. mu is held.
func (h *Hub) open(name Topic) *topic {
	tp := h.topics[name]
	if tp == nil {
		tp = &topic{Topic: name, subscribers: map[Subscriber]struct{}{}}
		h.topics[name] = tp
		if name.Kind == Pattern {
			h.patterns[tp] = struct{}{}
		}
		for _, l := range h.links {
			l.subscribe(tp)
		}
	}
	return tp
}

// hear takes a copy that a link heard. mu is held.
func (h *Hub) hear(l *link, heard masters.Heard) {
	p, payload, sealed := quorum.OpenEnvelope(heard.Payload)
	if !sealed {
		h.ring(l, heard)
		return
	}
	name := Topic{Kind: Channel, Name: heard.Channel}
	switch shard, sharded := strings.CutPrefix(heard.Channel, quorum.ShardPrefix); {
	case heard.Pattern != "" && sharded:
		return // patterns do not meet sharded channels
	case heard.Pattern != "":
		name = Topic{Kind: Pattern, Name: heard.Pattern}
	case sharded:
		name = Topic{Kind: Shard, Name: shard}
		heard.Channel = shard
	}
	waited := h.sieve.waiting.first() != nil
	h.out = h.sift(l, p, Message{Topic: name, Channel: heard.Channel, Payload: payload}, h.out[:0])
	if name == (Topic{Kind: Channel}) { // a copy for the empty pattern, which matches only the empty channel, looks the same
		h.out = h.sift(l, p, Message{Topic: Topic{Kind: Pattern}, Payload: payload}, h.out)
	}
	h.deliver()
	if !waited && h.sieve.waiting.first() != nil {
		signal(h.wake)
	}
}

// sift gives the sieve the link's copy of a message, if the topic has subscribers. sift appends to out the messages to
// deliver now. mu is held.
func (h *Hub) sift(l *link, p quorum.Publication, m Message, out []Message) []Message {
	tp := h.topics[m.Topic]
	if tp == nil {
		return out
	}
	m.Topic = tp.Topic
	return h.sieve.add(publication{p, tp.Topic}, m, l.index, h.now(), out)
}

// ring takes a message without an envelope. Only bells have a meaning. mu is held.
func (h *Hub) ring(l *link, heard masters.Heard) {
	key, bell := strings.CutPrefix(heard.Channel, quorum.BellPrefix)
	tp := h.topics[Topic{Kind: Bell, Name: key}]
	if !bell || heard.Pattern != "" || tp == nil {
		return
	}
	tp.ring(l, heard.Payload)
}

// deliver delivers the messages in h.out. mu is held.
func (h *Hub) deliver() {
	for _, m := range h.out {
		if tp := h.topics[m.Topic]; tp != nil {
			for s := range tp.subscribers {
				s.Deliver(m)
			}
		}
	}
	clear(h.out)
}

// keepTime ends messages and tickets that have waited too long, and sends heartbeats over the links.
func (h *Hub) keepTime(ctx context.Context) {
	beat := time.NewTicker(heartbeatEvery)
	defer beat.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			h.mu.Lock()
			for _, l := range h.links {
				l.beat()
			}
			h.mu.Unlock()
		case <-timer.C:
		case <-h.wake:
		}
		if next, any := h.expire(); any {
			timer.Reset(next)
		}
	}
}

// expire ends the messages and tickets that are due, and returns the time until the next.
func (h *Hub) expire() (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	h.out = h.sieve.due(now, h.out[:0])
	h.deliver()
	for len(h.tickets) > 0 && (h.tickets[0].done == nil || h.tickets[0].due <= now) {
		t := h.tickets[0]
		h.tickets = h.tickets[1:]
		for _, tp := range t.waits {
			h.fail(tp, h.failure(tp, "did not answer within "+h.cfg.DeadAfter.String()))
		}
	}
	next, any := h.sieve.next()
	if len(h.tickets) > 0 && (!any || h.tickets[0].due < next) {
		next, any = h.tickets[0].due, true
	}
	return next - now, any
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
