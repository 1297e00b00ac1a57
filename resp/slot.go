package resp

import (
	"sync"
	"time"

	"lockproxy/quorum"
	"lockproxy/script"
)

// A slot is one command's place in the order of its connection's replies. The reader makes the slot, the handler's reply or the engine's
// outcomes fill the slot, and the writer writes the slot.
//
// Slots are reused, with the callbacks bound to them, so that a command in flight allocates nothing for its slot. Reuse relies on two
// promises: the engine calls each callback exactly once, and the handler never touches a slot after giving the last callback away.
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
	timing  timing    // of the operation, for the slow log; guarded by replies.mu until left is 0, then the writer's
	leads   bool      // later messages go behind the reply, which confirms or ends a subscription, or changes the protocol

	left   int                  // outcomes, or the upstream's replies, still to come; 0: ready. Guarded by replies.mu
	takes  bool                 // a lock was granted, to be undone if the reply cannot be written. Guarded by replies.mu
	out    outcome              // guarded by replies.mu until left is 0, then the writer's
	answer func(*outcome) Reply // makes the reply of the outcome, on the writer's goroutine

	key     quorum.Key
	token   string       // of the lock that the command takes or extends; empty: unknown
	events  []Event      // for tell, if a script by vote took something; only for scripts in the table of families
	voted   bool         // a script by vote takes or extends the key's lock, if the script takes or extends any
	others  []string     // further names, for a command on several keys
	hold    *hold        // begins when the reply is written; nil unless the command is LOCK … HOLD
	alien   script.Alien // the answer of an understood script, if the key holds no string
	overlap overlap
	reads   bool // the slot counts in replies.reads until left is 0
	waits   bool // the command waits as long as the client is there; set before the operation begins

	weight  int // the slot's share of Limits.Pipeline
	size    int // bytes of the command, counted in backlog.inBytes
	memory  int // bytes counted by the memory budget beside texts, while the slot is in the queue
	reserve int // the part of size counted by the memory budget
	output  int // bytes of the reply, counted in backlog.outBytes and reserved in the memory budget

	*callbacks
}

// A source is where the replies of a slot come from.
type source uint8

const (
	proxy   source = iota // the proxy: one reply, written by the writer
	relayed               // the upstream: the relay writes each reply in its turn (upstream_relay.go)
)

// callbacks are a slot's methods, made into functions once for all uses of the slot.
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

// An outcome is the engine's answer, whichever method was called. Over several keys, the outcomes add up: the first error, and how many
// keys were done.
type outcome struct {
	err    error
	done   int       // how many keys were granted, changed, held or found; of PUBLISH, how many subscriptions it met
	fence  int64     // of a lock that was asked for with a fence
	absent bool      // not held by the token, because nobody holds the lock
	until  time.Time // when the reply stops being true; zero: never
	lock   lock      // the lock granted; if taken, undone unless the reply is written
	taken  bool      // the lock was taken, not only extended
	held   bool      // the token held the lock before
	text   string    // a value or a holder
	kind   string    // the type of the value found by a read
	hasOld bool      // text is the value replaced by a write
	ttl    time.Duration
	reply  Reply // the complete reply, if the outcome has one
}

// made is the answer for an outcome with its reply. The other fields of the outcome do not matter.
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

// recycle gives the slot back. All outcomes have come.
func (sl *slot) recycle() {
	sl.timing.forget()
	*sl = slot{callbacks: sl.callbacks, timing: sl.timing}
	slots.Put(sl)
}

// owedThere says whether the upstream still owes replies to the slot's commands.
func (sl *slot) owedThere() bool { return sl.from != proxy && sl.left > 0 }

// final returns the reply as of now. A lock whose validity has passed is answered as refused, and undone: the client's clock has been
// counting since the client sent the command. A late extension is answered as in doubt: masters may hold the lock still.
func (sl *slot) final() Reply {
	o := &sl.out
	switch {
	case o.err == quorum.ErrWrongType && sl.alien.Known(): //nolint:errorlint // the engine does not wrap the error
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

// abandon undoes the lock, if there is a lock whose reply is not written.
func (o *outcome) abandon() {
	if o.lock != nil {
		o.lock.Abandon()
		o.lock = nil
	}
}

func (sl *slot) onAcquired(a quorum.Acquired) {
	o := outcome{err: a.Err, text: a.Holder, fence: a.Fence}
	if a.Refused {
		sl.replies.server.noteRefusal(sl.key)
	}
	if a.Lock != nil {
		o.lock = sl.replies.server.lockOf(a.Lock)
		o.done, o.taken, o.held = 1, true, a.Held
	}
	sl.resolve(o)
}

// onSplit says whether the command may ask the masters once more after split votes. A later command of the client under way on the same key
// forbids another attempt. After a yes, later commands on the key wait for this command.
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

// onExecuted takes the plan's reply.
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

// resolve takes one outcome, on any goroutine of the engine, without blocking.
func (sl *slot) resolve(o outcome) {
	r, size := sl.replies, o.size() // before mu is held: a panic in a reply must not leave it locked
	if spent := r.settle(sl, o, size); spent != "" {
		r.kill(spent)
	}
}

// settle adds an outcome to a slot. If a limit forbids the reply to wait, settle returns the limit.
func (r *replies) settle(sl *slot, o outcome, size int) (spent string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone { // the slot stays unready, so a writer that has not noticed yet does not answer
		//mutant: what is granted to nobody stays
		o.abandon()
		return ""
	}
	sl.left--
	if r.waker.sentAll != nil {
		sl.withhold(&o)
	}
	o.done += sl.out.done // earlier outcomes, and the first error
	if sl.out.err != nil {
		o.err = sl.out.err
	}
	sl.out = o
	sl.takes = o.lock != nil && o.taken
	if sl.left > 0 {
		return ""
	}
	sl.timing.end()
	r.alone -= count(sl.overlap == overlapNone)
	if sl.reads {
		r.reads.note(size, o.err)
	}
	spent = r.backlog.output(sl, size)
	if r.head == sl {
		r.ready.Signal()
	}
	r.waker.free(sl)
	return spent
}

// endHere is resolve for a command whose answer is the end of the connection. No later reply is written.
func (sl *slot) endHere(err error) {
	sl.replies.mu.Lock()
	sl.ends = true
	sl.replies.mu.Unlock()
	sl.resolve(outcome{err: err})
}

// size is about how much memory the reply will hold.
func (o *outcome) size() int {
	size := len(o.text)
	if o.reply != nil {
		size += o.reply.Size()
	}
	return size
}
