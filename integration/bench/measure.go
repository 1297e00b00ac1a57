package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"lockproxy/integration/harness"
)

// A result is what one run, or the median of several, came to. What a part does not measure is 0.
type result struct {
	perSecond float64
	p50, p99  time.Duration
	lost      float64 // the share of requests whose key was not found on the masters afterwards

	count            int           // of requests
	handP50, handP99 time.Duration // of the hand-over of one lock: from an unlock sent to the next lock had
	fewest, most     float64       // locks of the client that had fewest, and of the client that had most, to the mean
	spent            costs
}

// A subject is one of those compared. Its run makes about perRun requests, or as many as fit into the duration.
type subject struct {
	name    string
	masters []*harness.Redis // cleared before each run
	keep    bool             // its requests leave their keys behind, so that they can be counted afterwards
	run     func(load load) (result, error)
	before  func() error // before each run, or nil
	after   func() error
}

// A load says how hard to push.
type load struct {
	clients, pipeline int
	requests          int           // for tools that count requests
	duration          time.Duration // for those that watch the clock
}

// calibration is how many requests of each client the first run makes, to learn how many fill the duration.
const calibration = 40

// compare runs all subjects in turn, round after round, and returns what the rounds came to, of each subject.
func compare(s settings, clients, pipeline int, subjects []subject) ([][]result, error) {
	all := make([][]result, len(subjects))
	requests := make([]int, len(subjects))
	for round := range s.rounds + 1 {
		for i, sub := range subjects {
			l := load{clients: clients, pipeline: pipeline, duration: s.duration, requests: requests[i]}
			if round == 0 { // warms up and calibrates
				l.requests, l.duration = max(2000, calibration*clients*pipeline), s.duration/4
			}
			res, err := sub.measure(l)
			if err != nil {
				return nil, fmt.Errorf("%s, %d clients: %w", sub.name, clients, err)
			}
			if round == 0 {
				requests[i] = max(int(res.perSecond*s.duration.Seconds()), clients*pipeline)
				continue
			}
			all[i] = append(all[i], res)
		}
	}
	return all, nil
}

// measure makes one run on cleared masters.
func (sub subject) measure(l load) (res result, err error) {
	if sub.before != nil {
		if err := sub.before(); err != nil {
			return result{}, err
		}
	}
	res, err = sub.run(l)
	if sub.after != nil {
		if err := sub.after(); err != nil {
			return result{}, err
		}
	}
	if err != nil {
		return result{}, err
	}
	most, err := clearAll(sub.masters)
	if err == nil && sub.keep && l.requests > 0 {
		res.lost = max(0, 1-float64(most)/float64(l.requests))
	}
	return res, err
}

// clearAll clears the masters, if there are any, and returns the largest number of keys that a quorum of them held.
func clearAll(masters []*harness.Redis) (int, error) {
	if len(masters) == 0 {
		return 0, nil
	}
	counts, errs := make([]int, len(masters)), make([]error, len(masters))
	var wg sync.WaitGroup
	for i, m := range masters {
		wg.Go(func() { counts[i], errs[i] = m.Clear() })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	slices.Sort(counts)
	quorum := len(counts)/2 + 1
	return counts[len(counts)-quorum], nil
}

// median returns the median of each figure.
func median(rs []result) result {
	var m result
	for _, figure := range figuresOf {
		values := make([]float64, len(rs))
		for i := range rs {
			values[i] = figure.get(&rs[i])
		}
		figure.set(&m, middle(values))
	}
	return m
}

// middle returns the median, and sorts.
func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// timed runs one function per client again and again until the duration is over. A latency is that of one call.
func timed(l load, newClient func(i int) (call func() error, end func(), err error)) (result, error) {
	latencies, errs := make([][]time.Duration, l.clients), make([]error, l.clients)
	calls, ends := make([]func() error, l.clients), make([]func(), l.clients)
	for i := range l.clients { // connect before the clock starts
		var err error
		if calls[i], ends[i], err = newClient(i); err != nil {
			return result{}, err
		}
		defer ends[i]()
	}
	start := time.Now()
	deadline := start.Add(l.duration)
	var wg sync.WaitGroup
	for i := range l.clients {
		wg.Go(func() {
			for began := time.Now(); began.Before(deadline) && errs[i] == nil; {
				errs[i] = calls[i]()
				now := time.Now()
				latencies[i] = append(latencies[i], now.Sub(began))
				began = now
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	for _, err := range errs {
		if err != nil {
			return result{}, err
		}
	}
	sorted := slices.Concat(latencies...)
	slices.Sort(sorted)
	return result{
		count:     len(sorted),
		perSecond: float64(len(sorted)) / took.Seconds(),
		p50:       sorted[len(sorted)/2],
		p99:       sorted[len(sorted)*99/100],
	}, nil
}
