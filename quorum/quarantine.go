package quorum

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"lockproxy/quorum/vouch"
)

// A quarantine is what a lane knows of its master's quarantine. The lane's mu guards it.
type quarantine struct {
	*vouch.Quarantine
	text, canary string // as they are on the master
	epoch        int64
	asked        instant                 // when the latest survey began; 0 if none did
	said         map[int]vouch.Testimony // by slot: what the others have said
}

// setQuarantine takes what is written on the master: "" if it is clean.
func (l *lane) setQuarantine(text, canary string) {
	l.mu.Lock()
	was := l.quarantine
	switch {
	case text == "":
		l.quarantine = nil
	case was == nil || was.text != text || was.canary != canary:
		c, _ := vouch.ParseCanary(canary)
		l.quarantine = &quarantine{
			Quarantine: vouch.NewQuarantine(reasonOf(text), l.engine.now(), l.engine.bounds.Load().Kept, l.engine.cfg.DriftFactor),
			text:       text, canary: canary, epoch: c.Epoch,
		}
	}
	is := l.quarantine
	l.mu.Unlock()
	if is == nil && was != nil && !was.Known { // too few others were there to be told of the epoch while it lasted
		//mutant: who was away is not told of a quarantine that ended by itself
		l.tellOthers(was.said)
	}
	switch {
	case is == nil && was != nil:
		l.log(slog.LevelInfo, "clean: grants count again", "after", (l.engine.now() - was.Since).Round(time.Millisecond))
	case is != nil && is != was:
		l.log(slog.LevelWarn, "quarantined: grants do not count", "reason", is.Reason, "at_most", (is.Until - is.Since).Round(time.Second))
	}
}

// isIn returns the master's quarantine, nil if it is clean.
func (l *lane) isIn() *quarantine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.quarantine
}

// quarantineCause says why a vote does not count because of the quarantine; "" if the master is clean.
func (l *lane) quarantineCause() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quarantine == nil {
		return ""
	}
	return l.quarantine.cause(l.engine.now())
}

// cause tells a client why the master's grant does not count, and for how long.
func (q *quarantine) cause(now instant) string {
	left := span(q.Until - now)
	switch {
	case q.Known:
		return "quarantined " + left + " more (" + q.Reason + ")"
	case now-q.Since < 2*surveyEvery:
		return "quarantined up to " + left + " more (" + q.Reason + "; asking the other masters), or until lockproxy init, if no client holds a lock"
	}
	return "quarantined " + left + " more (" + q.Reason + "; too few other masters remember), or until lockproxy init, if no client holds a lock"
}

// span puts a time that is left into words: 1h, 2m30s, 12s. It is never told to be over.
func span(d time.Duration) string {
	return DurationText(max(d+time.Second-1, time.Second).Truncate(time.Second))
}

// DurationText is d as the configuration has it: 1h, not 1h0m0s.
func DurationText(d time.Duration) string { return withoutZeros.Replace(d.String()) }

var withoutZeros = strings.NewReplacer("h0m0s", "h", "m0s", "m")

// surveyEvery is how often the other masters are asked for their horizons until enough have answered.
const surveyEvery = time.Second

// seeThrough takes the next step that ends a quarantine (rule 7).
func (l *lane) seeThrough(now instant) {
	l.mu.Lock()
	q := l.quarantine
	if q == nil {
		l.mu.Unlock()
		return
	}
	//mutant: an earlier server tells how long a quarantine lasts
	maps.DeleteFunc(q.said, func(slot int, t vouch.Testimony) bool { return l.roster[slot].Load() > t.Epoch }) // an earlier server's
	n, said := len(l.engine.masters), slices.Collect(maps.Values(q.said))
	if !q.Known {
		q.Outlast(l.engine.bounds.Load().Kept, l.engine.cfg.DriftFactor) // a master that has been met since may have told of longer locks
		if q.Hear(said, n, now, l.engine.cfg.DriftFactor) {
			l.log(slog.LevelInfo, "quarantine: the other masters have said for how long", "at_most", (q.Until - now).Round(time.Millisecond))
		}
	}
	over := now >= q.Until
	fence := vouch.Fence(said, n) // what the master is to be seeded with, or 0 if too few others have told
	survey := !over && !q.Known && (q.asked == 0 || now-q.asked >= surveyEvery)
	if survey {
		q.asked, q.said = now, make(map[int]vouch.Testimony)
	}
	l.mu.Unlock()
	switch {
	case over:
		l.endQuarantine(q, fence)
	case survey:
		for _, other := range l.peers {
			if other != l {
				other.survey(l, q)
			}
		}
	}
}

// survey asks the master for its horizon, on behalf of the lane of one that is quarantined, and tells it the epochs.
func (l *lane) survey(of *lane, q *quarantine) {
	args := luaSurvey.whole([]string{rosterKey, horizonKey, quarantineKey}, l.roster.args()...)
	l.ask(args, func(reply any) {
		list, ok := reply.([]any)
		if !ok || len(list) != 5 {
			return
		}
		ms, ok1 := list[0].(int64)
		quarantined, ok2 := list[1].(int64)
		text, ok3 := list[2].(string)
		fence, seeded, ok4 := fenceReply(reply, 3)
		if !ok1 || !ok2 || !ok3 || !ok4 {
			return
		}
		l.roster.learn(text)
		t := vouch.Testimony{
			Epoch:   l.link.epoch,
			Horizon: time.Duration(ms) * time.Millisecond,
			Clean:   quarantined == 0 && of.latestEpoch().Load() == q.epoch,
		}
		if seeded {
			t.Fence = fence
		}
		of.hear(q, l.master.slot, t)
	})
}

// hear takes what one other master said.
func (l *lane) hear(q *quarantine, slot int, t vouch.Testimony) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quarantine == q {
		q.said[slot] = t
	}
}

// endQuarantine ends the master's quarantine for all proxies, if it is still the one that was seen. The master is seeded with
// the fence, if that is not 0.
func (l *lane) endQuarantine(q *quarantine, fence int64) {
	args := luaEndQuarantine.whole([]string{rosterKey, canaryKey, quarantineKey}, append(l.roster.args(), fence, q.canary, q.text)...)
	l.ask(args, func(reply any) {
		if reply == int64(1) {
			l.setQuarantine("", q.canary)
			return
		}
		l.suspect = true
	})
}
