package console

import (
	"sync"
	"time"

	"lockproxy/quorum"
)

// How much the charts show.
const (
	sampleEvery = 10 * time.Second
	chartSpan   = time.Hour
	chartLeast  = 5 * time.Minute
	samplesMax  = int(chartSpan/sampleEvery) + 1
)

// A history is the engine's counts in the last hour.
type history struct {
	mu  sync.Mutex // guards the fields below
	all []sample   // the oldest first
}

// A sample is the engine's counts at one moment.
type sample struct {
	at    time.Time
	stats quorum.Stats
}

func (h *history) note(at time.Time, s quorum.Stats) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all = append(h.all, sample{at, s}); len(h.all) > samplesMax {
		h.all = append(h.all[:0:0], h.all[1:]...)
	}
}

// A point is the change between two samples.
type point struct {
	at                          time.Time
	acquired, refused, noQuorum float64 // a second
	p50, p99                    float64 // ms, of rounds; 0 if there was none
}

// points returns the change from sample to sample.
func (h *history) points() []point {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []point
	for i := 1; i < len(h.all); i++ {
		a, b := h.all[i-1], h.all[i]
		seconds := b.at.Sub(a.at).Seconds()
		if seconds <= 0 {
			continue
		}
		rate := func(now, before uint64) float64 { return float64(now-before) / seconds }
		rounds := between(b.stats.Rounds, a.stats.Rounds)
		all = append(all, point{
			at:       b.at,
			acquired: rate(b.stats.Acquired, a.stats.Acquired),
			refused:  rate(b.stats.Refused, a.stats.Refused),
			noQuorum: rate(b.stats.NoQuorum+b.stats.Expired, a.stats.NoQuorum+a.stats.Expired),
			p50:      float64(rounds.Quantile(0.5).Microseconds()) / 1000,
			p99:      float64(rounds.Quantile(0.99).Microseconds()) / 1000,
		})
	}
	return all
}

// between returns the rounds of b less the rounds of a.
func between(b, a quorum.Durations) quorum.Durations {
	d := quorum.Durations{Count: b.Count - a.Count, Sum: b.Sum - a.Sum}
	for i := range d.Below {
		d.Below[i] = b.Below[i] - a.Below[i]
	}
	return d
}
