package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	workersMax = 8
	resources  = 3 // few, so that somebody is waiting for each when a lock is lost
	margin     = 30 * time.Millisecond
)

// A crew is a number of workers that increment counters under locks.
type crew struct {
	ttl     time.Duration
	name    string
	ledgers []*ledger
	history *history
	stop    chan struct{}
	done    sync.WaitGroup

	mu     sync.Mutex // guards all below
	tally  tally
	causes map[string]int
	errs   []error
}

// A tally counts what workers met.
type tally struct {
	sums
	locks     int // granted
	refused   int
	unknown   int
	abandoned int // sections that did not write, as validity was about to end
	dropped   int // locks that were no longer held, by what their holder was told, within their validity
}

// startCrew starts one worker for each client. It closes the clients in the end.
func startCrew(dir, name string, ttl time.Duration, clients []client) (*crew, error) {
	c := &crew{ttl: ttl, name: name, history: newHistory(), stop: make(chan struct{}), causes: map[string]int{}}
	for i := range resources {
		l, err := newLedger(dir, fmt.Sprintf("%s-%d", name, i))
		if err != nil {
			return nil, err
		}
		c.ledgers = append(c.ledgers, l)
	}
	for i, cl := range clients {
		w := &worker{crew: c, id: i, client: cl}
		c.done.Go(w.run)
	}
	return c, nil
}

// finish stops the workers and returns what they met and what is wrong with it, besides lost updates.
func (c *crew) finish() (tally, map[string]int, error) {
	close(c.stop)
	c.done.Wait()
	errs := c.errs
	for _, l := range c.ledgers {
		errs = append(errs, l.check())
		l.close()
	}
	return c.tally, c.causes, errors.Join(errs...)
}

func (c *crew) now() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tally
}

func (c *crew) count(change func(*tally)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.tally)
}

// A worker locks, works and releases until its crew is stopped.
type worker struct {
	*crew
	id     int
	client client
}

func (w *worker) run() {
	defer w.client.close()
	for n := 0; ; n++ {
		if !w.rest(between(10*time.Millisecond, 30*time.Millisecond)) {
			return
		}
		i := rand.IntN(resources)
		v := &visit{worker: w, ledger: w.ledgers[i], resource: fmt.Sprintf("%s:%d", w.name, i), token: fmt.Sprintf("%s:%d:%d", w.name, w.id, n)}
		if err := v.run(); err != nil {
			w.mu.Lock()
			w.errs = append(w.errs, err)
			w.mu.Unlock()
			return
		}
	}
}

// rest pauses the worker; false means that it is to stop.
func (w *worker) rest(d time.Duration) bool {
	select {
	case <-w.stop:
		return false
	case <-time.After(d):
		return true
	}
}

func between(least, most time.Duration) time.Duration { return least + rand.N(most-least) }

// A visit is one attempt and, if it is granted, what is done under the lock.
type visit struct {
	*worker
	ledger          *ledger
	resource, token string
	until           time.Time
}

// run returns an error only if the files fail.
func (v *visit) run() error {
	switch v.ask(acquire) {
	case refused:
		v.count(func(t *tally) { t.refused++ })
		return nil
	case unknown:
		v.count(func(t *tally) { t.unknown++ })
		v.ask(release)
		v.rest(between(0, 20*time.Millisecond))
		return nil
	}
	v.count(func(t *tally) { t.locks++ })
	defer v.giveBack()
	return v.work()
}

// ask makes one request, records it, and says what came of it.
func (v *visit) ask(a action) outcome {
	sent := time.Now()
	var o outcome
	var cause string
	switch a {
	case acquire:
		o, cause = v.client.acquire(v.resource, v.token, v.ttl)
	case extend:
		o, cause = v.client.extend(v.resource, v.token, v.ttl)
	case release:
		o, cause = v.client.release(v.resource, v.token)
	}
	until := validUntil(sent, v.ttl)
	v.history.add(v.id, v.resource, v.token, a, o, sent, until)
	if o == done && a != release {
		v.until = until
	}
	if cause != "" {
		v.mu.Lock()
		v.causes[cause]++
		v.mu.Unlock()
	}
	return o
}

// work is the section: read, think, write. A third of the sections are long, and half of those extend their lock.
func (v *visit) work() error {
	r, err := v.ledger.read()
	if err != nil {
		return err
	}
	switch rand.IntN(6) {
	case 0:
		time.Sleep(between(v.ttl/8, v.ttl/3))
		if v.ask(extend) == refused {
			v.drop()
			return nil
		}
		time.Sleep(between(v.ttl/8, v.ttl/3))
	case 1:
		time.Sleep(between(v.ttl/4, v.ttl*2/3))
	default:
		time.Sleep(between(0, 40*time.Millisecond))
	}
	if time.Now().Add(margin).After(v.until) {
		v.count(func(t *tally) { t.abandoned++ })
		return nil
	}
	s, err := v.ledger.increment(r, v.token, v.until)
	v.count(func(t *tally) { t.add(s) })
	return err
}

func (v *visit) giveBack() {
	if v.ask(release) == refused {
		v.drop()
	}
}

func (v *visit) drop() {
	if time.Now().Before(v.until) {
		v.count(func(t *tally) { t.dropped++ })
	}
	v.until = time.Time{} // once
}
