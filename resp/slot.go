package resp

import (
	"sync"
	"time"

	"lockproxy/quorum"
	"lockproxy/script"
)

// A slot is one command's place in the order of its connection's replies. The reader makes it, the handler's reply or the
// engine's outcomes fill it, and the writer writes it.
//
// Slots are reused, with the callbacks bound to them, so that a command in flight allocates nothing for its slot. This
// rests on the engine calling each callback exactly once; and the handler must not touch a slot any more once it has
// given the last callback away.
type slot struct {
	replies *replies
	next    *slot
	resp3   bool
	mute    bool // CLIENT REPLY OFF: nothing is written
	from    source
	ends    bool      // the connection ends where the reply would be. Guarded by replies.mu until left is 0, then the writer's
	row     *command  // of the command, for INFO commandstats; nil: nothing is counted
	began   time.Time // when the command was found
	runs    bool      // the command was not rejected before its run
	leads   bool      // messages that come from now on go behind it: it confirms or takes back a subscription, or changes the protocol

	left   int                  // outcomes, or the upstream's replies, still to come; 0: ready. Guarded by replies.mu
	takes  bool                 // a lock was granted, which is undone if the reply cannot be written. Guarded by replies.mu
	out    outcome              // guarded by replies.mu until left is 0, then the writer's
	answer func(*outcome) Reply // makes the reply of the outcome, on the writer's goroutine

	key     quorum.Key
	token   string       // of the lock that the command takes or extends; empty if it is not known
	events  []Event      // of a script by vote that is in the table of families: what the audit log is told if the script took something
	others  []string     // further names, for a command on several keys
	hold    *hold        // begins when the reply is written; nil unless the command is LOCK … HOLD
	alien   script.Alien // what a script that is understood answers, if its key holds no string
	overlap overlap
	reads   bool // it counts in replies.reads until left is 0
	waits   bool // for as long as the client is there; set before the operation begins

	weight  int // what the slot counts towards Limits.Pipeline
	size    int // bytes of the command, counted in backlog.inBytes
	memory  int // bytes that the memory budget counts beside texts, as long as the slot is in the queue
	reserve int // of size, what the memory budget has counted
	output  int // bytes of the reply, counted in backlog.outBytes and reserved in the memory budget

	*callbacks
}

// A source is where the replies of a slot come from.
type source uint8

const (
	proxy   source = iota // the proxy makes one reply, which the writer writes
	relayed               // the relay brings the upstream's replies, and writes each when it is its turn (upstream_relay.go)
)

// callbacks are a slot's methods, made into functions once.
type callbacks struct {
	acquired func(quorum.Acquired)
	insist   func() bool
	written  func(quorum.Written)
	released func(quorum.Released)
	extended func(quorum.Extended)
	viewed   func(quorum.View)
	changed  func(quorum.Changed)
	ran      func(quorum.Ran)
}

// An outcome is what the engine said, whichever method was called. Over several keys it is their sum: the first error,
// and how many were done.
type outcome struct {
	err    error
	done   int       // how many keys were granted, changed, held or found; of PUBLISH, how many subscriptions it met
	fence  int64     // of a lock that was asked for with one
	absent bool      // not held because nobody holds it
	until  time.Time // the reply is true only until then
	lock   lock      // what was granted; if it was taken, it is undone unless the reply is written
	taken  bool      // the lock was taken, not only extended
	held   bool      // the token held the lock before
	text   string    // a value or a holder
	kind   string    // the type of what a read found
	hasOld bool      // text is what a write replaced
	ttl    time.Duration
	reply  Reply // if there is no more to make of the outcome
}

// made is the answer for an outcome that has its reply.
func made(o *outcome) Reply { return o.reply }

var slots sync.Pool

func newSlot(r *replies) *slot {
	sl, reused := slots.Get().(*slot)
	if !reused {
		sl = new(slot)
		sl.callbacks = &callbacks{
			acquired: sl.onAcquired, insist: sl.onSplit, written: sl.onWritten, released: sl.onReleased,
			extended: sl.onExtended, viewed: sl.onViewed, changed: sl.onChanged, ran: sl.onRan,
		}
	}
	sl.replies, sl.memory, sl.answer = r, slotMemory, made
	return sl
}

// recycle gives the slot back. All its outcomes have come.
func (sl *slot) recycle() {
	*sl = slot{callbacks: sl.callbacks}
	slots.Put(sl)
}

// final returns the reply as of now. A lock whose validity has passed by now is answered as refused, and undone: the client's
// clock has been counting since it sent the command. An extension is answered as in doubt: masters may hold the lock still.
func (sl *slot) final() Reply {
	o := &sl.out
	switch {
	case o.err == quorum.ErrWrongType && sl.alien.Known(): //nolint:errorlint // the engine does not wrap it
		return valueReply(sl.alien.Answer(0))
	case o.err != nil:
		return errorReply(o.err)
	}
	if o.lock != nil {
		o.until = o.lock.Until() // this machine may have slept
	}
	if o.until.IsZero() {
		return sl.answer(o)
	}
	//mutant: the writer does not look at the validity
	if o.ttl = time.Until(o.until); o.ttl < time.Millisecond { // the client would be told 0
		o.done, o.until = 0, time.Time{}
		sl.replies.server.counters.late.Add(1)
		o.abandon()
		if !o.taken {
			return errorReply(quorum.ErrLate)
		}
	}
	return sl.answer(o)
}

// abandon undoes the lock, if there is one whose reply has not been written.
func (o *outcome) abandon() {
	if o.lock != nil {
		o.lock.Abandon()
		o.lock = nil
	}
}

func (sl *slot) onAcquired(a quorum.Acquired) {
	o := outcome{err: a.Err, text: a.Holder, fence: a.Fence}
	if a.Refused {
		sl.replies.server.hottest.refuse(sl.key)
	}
	if a.Lock != nil {
		o.lock = sl.replies.server.lockOf(a.Lock)
		o.done, o.taken, o.held = 1, true, a.Held
	}
	sl.resolve(o)
}

// onSplit says whether the command may ask the masters once more. It may not if a later command of the client on the same key is
// under way already. If it may, later commands on the key wait for it from then on.
func (sl *slot) onSplit() bool {
	r := sl.replies
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone || sl.overlap == overlapNone {
		return !r.gone
	}
	for later := sl.next; later != nil; later = later.next {
		if later.touches(sl.key) {
			//mutant: an attempt is made anew behind its release
			return false
		}
	}
	sl.overlap = overlapNone
	r.alone++
	return true
}

func (sl *slot) onWritten(w quorum.Written) {
	sl.resolve(outcome{err: w.Err, done: count(w.Done), text: w.Old, hasOld: w.HadOld})
}

func (sl *slot) onReleased(r quorum.Released) {
	sl.resolve(outcome{err: r.Err, done: count(r.Held), absent: r.Absent})
}

func (sl *slot) onExtended(e quorum.Extended) {
	o := outcome{err: e.Err, done: count(e.Held), absent: e.Absent, until: e.Until}
	if e.Lock != nil {
		o.lock = sl.replies.server.lockOf(e.Lock)
	}
	sl.resolve(o)
}

func (sl *slot) onViewed(v quorum.View) {
	sl.resolve(outcome{err: v.Err, done: count(v.Exists), absent: !v.Exists, text: v.Value, kind: v.Type, ttl: v.TTL})
}

func (sl *slot) onChanged(c quorum.Changed) {
	sl.resolve(outcome{err: c.Err, done: count(c.Applied)})
}

func (sl *slot) onRan(r quorum.Ran) {
	o := outcome{err: r.Err, done: 1, reply: runReply(r.Reply)}
	//mutant: what a script takes for nobody stays
	if r.Lock != nil {
		o.lock, o.taken = sl.replies.server.lockOf(r.Lock), true
	}
	sl.resolve(o)
}

// onExecuted takes the reply that the plan came to.
func (sl *slot) onExecuted(x quorum.Executed, reply Reply) {
	o := outcome{err: x.Err, done: count(x.Err == nil), reply: reply}
	if x.Lock != nil {
		o.lock, o.taken = sl.replies.server.lockOf(x.Lock), true
	}
	sl.resolve(o)
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// resolve takes one outcome, on whatever goroutine the engine has. It does not block.
func (sl *slot) resolve(o outcome) {
	r, size := sl.replies, o.size() // before mu is held: a panic in a reply must not leave it locked
	if spent := r.settle(sl, o, size); spent != "" {
		r.kill(spent)
	}
}

// settle adds an outcome to a slot, and returns the limit that does not let the reply wait, if there is one.
func (r *replies) settle(sl *slot, o outcome, size int) (spent string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone { // the slot stays unready, so that the writer, which may not have noticed yet, does not answer it
		//mutant: what is granted to nobody stays
		o.abandon()
		return ""
	}
	sl.left--
	if r.waker.sentAll != nil {
		sl.withhold(&o)
	}
	sl.merge(o)
	sl.takes = o.lock != nil && o.taken
	if sl.left > 0 {
		return ""
	}
	r.alone -= count(sl.overlap == overlapNone)
	if sl.reads {
		r.reads.note(size, o.err)
	}
	spent = r.backlog.output(sl, size)
	r.tellReady(sl)
	return spent
}

// endHere is resolve for a command that ends the connection instead of being answered. No later reply is written.
func (sl *slot) endHere(err error) {
	sl.replies.mu.Lock()
	sl.ends = true
	sl.replies.mu.Unlock()
	sl.resolve(outcome{err: err})
}

// size is about how much memory the reply will hold on to.
func (o *outcome) size() int {
	size := len(o.text)
	if o.reply != nil {
		size += o.reply.Size()
	}
	return size
}

// merge adds one outcome to those that came before.
func (sl *slot) merge(o outcome) {
	o.done += sl.out.done
	if sl.out.err != nil {
		o.err = sl.out.err
	}
	sl.out = o
}
