package gate

import (
	"errors"
	"slices"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/pubsub"
)

// A gate belongs to its goroutine, run. The goroutine ends when nobody waits any more.
type gate struct {
	gates   *Gates
	key     quorum.Key
	changed chan struct{} // a bell rang, somebody left, or a handover is over
	heard   uint64        // masters whose bells were heard since before the last try
	splits  int           // consecutive tries with split votes
	vain    int           // tries in vain since a master that had refused became free
	tried   int           // begun at the end of the latest try

	// The mu of Gates guards the fields below.
	queue      []*Waiter // the head first; some may be over
	subscribed bool      // only the goroutine sets it
	forecast   forecast
	holder     string    // the token of the latest waiter who got the lock, until the token's release; "" if not known
	handover   *handover // under way; nil if none is
	begun      int       // how many handovers have begun
	unused     string    // the name of the bells of the latest handover that did not get the lock
	handed     bool      // a handover has got the lock since the goroutine last looked
}

// Pauses that do not follow from a master's answer.
const (
	// ringWait is how long the bells of a quorum may take to come, one after the other. After ringWait fewer bells
	// count, too, if no try has told the state of the masters.
	ringWait = 20 * time.Millisecond
	// splitWait plus the duration of the try is the longest pause after votes that were split more than once. A master
	// that has told nothing is asked again after splitWait at the latest. Each try in vain doubles that time, up to
	// splitWaitMax.
	splitWait    = 4 * time.Millisecond
	splitWaitMax = time.Second
)

func (g *gate) topic() pubsub.Topic { return pubsub.Topic{Kind: pubsub.Bell, Name: g.key.Name} }

func (g *gate) run() {
	for w := g.head(); w != nil; w = g.head() {
		if wait := g.wait(); wait > 0 {
			g.sleep(wait)
			continue
		}
		began := time.Now()
		a, tried := g.try(w)
		if !tried {
			g.sleep(time.Hour) // the end of the handover wakes the head
			continue
		}
		if a.Refused && !g.subscribed {
			a = g.subscribe()
			if g.subscribed {
				continue // the lock may have been released meanwhile
			}
			g.note(w, a.Err)
		}
		switch {
		case a.Err != nil && !lacksQuorum(a.Err), a.Lock != nil && !g.subscribed: // the next waiter has to look for itself, and to subscribe
			g.splits, g.vain = 0, 0
		case a.Lock != nil:
			g.splits, g.vain = 0, 0
			g.won(time.Now().Add(w.req.TTL))
		default:
			g.lost(a, time.Since(began))
		}
	}
	if g.subscribed {
		g.gates.bells.Unsubscribe(g, []pubsub.Topic{g.topic()})
	}
}

// waiting returns the number of waiters. The mu of Gates is held.
func (g *gate) waiting() int {
	n := 0
	for _, w := range g.queue {
		if !w.over {
			n++
		}
	}
	return n
}

// head returns the first waiter. If nobody waits, head removes the gate and returns nil.
func (g *gate) head() *Waiter {
	g.gates.mu.Lock()
	defer g.gates.mu.Unlock()
	g.queue = slices.DeleteFunc(g.queue, func(w *Waiter) bool { return w.over })
	if g.handed {
		g.handed, g.splits, g.vain = false, 0, 0
	}
	if len(g.queue) == 0 {
		delete(g.gates.gates, g.key)
		return nil
	}
	return g.queue[0]
}

// try makes one attempt for the head, and ends the head's wait unless the head may go on. During a handover try does nothing, and returns
// false.
func (g *gate) try(w *Waiter) (a quorum.Acquired, tried bool) {
	mu := &g.gates.mu
	mu.Lock()
	//mutant: a waiter tries beside its handover
	if g.handover != nil {
		mu.Unlock()
		return a, false
	}
	if g.forecast.freed(time.Now()) != 0 {
		g.vain = 0
	}
	g.forecast.heed(g.gates.quorum)
	w.trying = !w.over
	mu.Unlock()
	if !w.trying { // only this goroutine sets trying
		return quorum.Acquired{Refused: true}, true
	}
	g.heard = g.gates.bells.Confirmed(g.topic()) // not before heed, which forgets the bells: a master also rings when it is no longer heard
	result := make(chan quorum.Acquired, 1)
	g.gates.engine.Acquire(w.req, func(a quorum.Acquired) { result <- a })
	a = <-result

	mu.Lock()
	w.trying, g.tried = false, g.begun
	w.err = a.Err
	if a.Lock != nil {
		g.holder = w.req.Token
	}
	w.over = a.Lock != nil || a.Err != nil && !lacksQuorum(a.Err) || w.late
	over, cause := w.over, w.cause
	mu.Unlock()
	if over {
		if cause != nil && a.Refused {
			a = quorum.Acquired{Err: cause}
		}
		w.finish(a)
	}
	return a, true
}

// note keeps the error for the end of the wait, or ends the wait at once.
func (g *gate) note(w *Waiter, err error) {
	if !lacksQuorum(err) {
		w.end(quorum.Acquired{Err: err})
		return
	}
	g.gates.mu.Lock()
	w.err = err
	g.gates.mu.Unlock()
}

func lacksQuorum(err error) bool {
	var none *quorum.NoQuorum
	return errors.As(err, &none)
}

// subscribe makes the masters' bells heard.
func (g *gate) subscribe() quorum.Acquired {
	result := make(chan error, 1)
	g.gates.bells.Subscribe(g, []pubsub.Topic{g.topic()}, func(err error) { result <- err })
	err := <-result
	g.gates.mu.Lock()
	defer g.gates.mu.Unlock()
	g.subscribed = err == nil
	return quorum.Acquired{Err: err}
}

// Deliver takes the bell of one master.
func (g *gate) Deliver(m pubsub.Message) {
	g.gates.mu.Lock()
	defer g.gates.mu.Unlock()
	if !g.counts(m) {
		return
	}
	//mutant: nobody hears the bells
	g.ring(m.Master)
}

// ring takes the bell of a master that may be free. mu is held.
func (g *gate) ring(master int) {
	now := time.Now()
	g.forecast.ring(master, now)
	//mutant: bells of other releases during a handover are forgotten
	if g.handover != nil {
		g.handover.forecast.ring(master, now)
	}
	g.signal()
}

// signal wakes the goroutine. mu is held, or the hub's mu.
func (g *gate) signal() {
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// won is called after a try that got the lock. A handover since the end of the try tells more: won and lost leave its forecast.
func (g *gate) won(expires time.Time) {
	g.gates.mu.Lock()
	defer g.gates.mu.Unlock()
	if g.begun == g.tried {
		g.forecast.won(expires)
	}
}

// lost is called after a try in vain that lasted for took. After split votes, the other clients also try again when
// they hear the undo. The first time there is no pause: the clients hear the undo at different moments, and may part by
// that. After that, random pauses part the clients. The pauses grow, because more clients may compete.
func (g *gate) lost(a quorum.Acquired, took time.Duration) {
	pause, soon := g.gates.pause, time.Duration(0)
	if g.splits > 0 {
		soon = pause(1 + min(took<<min(g.splits, 10), splitWait+took))
	}
	if g.splits++; !slices.Contains(a.FreeIn, 0) {
		g.splits = 0
	}
	retry := pause(min(splitWait<<min(g.vain, 20), splitWaitMax))
	g.vain++
	g.gates.mu.Lock()
	defer g.gates.mu.Unlock()
	if g.begun != g.tried {
		return
	}
	g.forecast.lost(time.Now(), a.FreeIn, g.heard, soon, retry, g.gates.masters)
}

// wait returns how long the head is to sleep.
func (g *gate) wait() time.Duration {
	g.gates.mu.Lock()
	defer g.gates.mu.Unlock()
	return time.Until(g.forecast.at(g.gates.quorum))
}

// sleep ends when something has changed, or after d.
func (g *gate) sleep(d time.Duration) {
	select {
	case <-g.changed:
	case <-time.After(d):
	}
}
