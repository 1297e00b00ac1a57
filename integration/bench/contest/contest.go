// Package contest lets clients lock and unlock again and again, on one key or on keys of their own, and tells how they fared. lockproxy
// and its peers run the same contest, so that their figures are measured alike.
package contest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Locker is one client of a lock. One goroutine uses it.
type Locker interface {
	Lock() error // returns when this client has the lock
	Unlock() error
	Close()
}

// A Contest says who locks what, and for how long.
type Contest struct {
	Clients, Keys int // client i locks key i modulo Keys
	Duration      time.Duration
}

// A Result tells what clients came to within the duration. JSON carries it from the program of the peers.
type Result struct {
	Locks                    int // each was given back
	LockP50, LockP99         time.Duration
	HandoverP50, HandoverP99 time.Duration // from an unlock's call to the next lock's return; 0 if there are several keys
	Fewest, Most             int           // locks of the client that had fewest, and of the client that had most
}

// A run is a contest under way.
type run struct {
	start    time.Time
	deadline time.Time
	released atomic.Int64 // nanoseconds since start, when the latest unlock was called; 0 after the next lock's return
}

// A score is one client's part of the result.
type score struct{ waits, handovers []time.Duration }

// Run lets the clients contend. Each ends with the lock that it waits for at the deadline; such locks do not count.
func (c Contest) Run(open func(client int, key string) (Locker, error)) (Result, error) {
	lockers := make([]Locker, 0, c.Clients)
	defer func() {
		for _, l := range lockers {
			l.Close()
		}
	}()
	for i := range c.Clients { // before the clock starts
		l, err := open(i, fmt.Sprintf("contest:%d", i%c.Keys))
		if err != nil {
			return Result{}, fmt.Errorf("client %d: %w", i, err)
		}
		lockers = append(lockers, l)
	}
	start := time.Now()
	r := &run{start: start, deadline: start.Add(c.Duration)}
	scores, errs := make([]score, c.Clients), make([]error, c.Clients)
	var running sync.WaitGroup
	for i, l := range lockers {
		running.Go(func() { errs[i] = r.contend(l, &scores[i]) })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	return c.result(scores), nil
}

func (r *run) contend(l Locker, s *score) error {
	for began := time.Now(); began.Before(r.deadline); began = time.Now() {
		if err := l.Lock(); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		now := time.Now()
		released := r.released.Swap(0)
		if now.Before(r.deadline) {
			s.waits = append(s.waits, now.Sub(began))
			if released > 0 {
				s.handovers = append(s.handovers, now.Sub(r.start)-time.Duration(released))
			}
		}
		r.released.Store(int64(time.Since(r.start)))
		if err := l.Unlock(); err != nil {
			return fmt.Errorf("unlock: %w", err)
		}
	}
	return nil
}

func (c Contest) result(scores []score) Result {
	var waits, handovers []time.Duration
	res := Result{Fewest: len(scores[0].waits)}
	for _, s := range scores {
		waits, handovers = append(waits, s.waits...), append(handovers, s.handovers...)
		res.Fewest, res.Most = min(res.Fewest, len(s.waits)), max(res.Most, len(s.waits))
	}
	res.Locks = len(waits)
	res.LockP50, res.LockP99 = percentiles(waits)
	if c.Keys == 1 {
		res.HandoverP50, res.HandoverP99 = percentiles(handovers)
	}
	return res
}

// percentiles returns p50 and p99, 0 where there are none, and sorts.
func percentiles(all []time.Duration) (p50, p99 time.Duration) {
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100]
}
