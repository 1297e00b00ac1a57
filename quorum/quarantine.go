package quorum

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"lockproxy/quorum/vouch"
)

// A quarantine is a lane's knowledge of its master's quarantine. The recovery's mu guards it.
type quarantine struct {
	*vouch.Quarantine
	text, canary string // as they are on the master
	epoch        int64
	surveyed     instant              // when the latest survey began; 0 if none did
	said         map[int]vouch.Report // the other masters' answers, by slot
}

// A recovery sees the quarantines of a lane's master through. The recovery asks the other masters for how long locks may live that
// this master has forgotten, waits so long, and has the master's grants count again.
type recovery struct {
	target
	examiner
	epochs *epochs

	mu sync.Mutex  // guards is
	is *quarantine // nil if the master is clean
}

// set takes the text that is written on the master: "" if the master is clean.
func (r *recovery) set(text, canary string) {
	r.mu.Lock()
	was := r.is
	switch {
	case text == "":
		r.is = nil
	case was == nil || was.text != text || was.canary != canary:
		c, _ := vouch.ParseCanary(canary)
		r.is = &quarantine{
			Quarantine: vouch.NewQuarantine(reasonOf(text), r.engine.now(), r.engine.bounds.Load().Kept, r.engine.cfg.DriftFactor),
			text:       text, canary: canary, epoch: c.Epoch,
		}
	}
	is, most := r.is, time.Duration(0)
	if is != nil {
		most = is.Until - is.Since // the monitor changes Until
	}
	r.mu.Unlock()
	if is == nil && was != nil && !was.Known { // during the quarantine too few others were there to be told of the epoch
		//mutant: who was away is not told of a quarantine that ended by itself
		r.epochs.tellOthers(was.said)
	}
	switch {
	case is == nil && was != nil:
		r.log(slog.LevelInfo, "clean: grants count again", "after", (r.engine.now() - was.Since).Round(time.Millisecond))
	case is != nil && is != was:
		r.log(slog.LevelWarn, "quarantined: grants do not count", "reason", is.Reason, "at_most", most.Round(time.Second))
	}
}

// current returns the master's quarantine, nil if the master is clean.
func (r *recovery) current() *quarantine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.is
}

// cause returns why a vote does not count because of the quarantine; "" if the master is clean.
func (r *recovery) cause() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.is == nil {
		return ""
	}
	return r.is.cause(r.engine.now())
}

// describe notes the quarantine, if the master is in quarantine, in the master's status.
func (r *recovery) describe(s *MasterStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q, now := r.is, r.engine.now(); q != nil {
		s.State, s.Cause, s.Since, s.Left = Quarantined, q.cause(now), now-q.Since, max(q.Until-now, 0)
	}
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

// span puts a remaining time into words: 1h, 2m30s, 12s. The least is 1s.
func span(d time.Duration) string {
	return DurationText(max(d+time.Second-1, time.Second).Truncate(time.Second))
}

// DurationText is d as the configuration has it: 1h, not 1h0m0s.
func DurationText(d time.Duration) string { return withoutZeros.Replace(d.String()) }

var withoutZeros = strings.NewReplacer("h0m0s", "h", "m0s", "m")

// surveyEvery is how often the other masters are asked for their horizons until enough have answered.
const surveyEvery = time.Second

// seeThrough takes the next step that ends a quarantine (rule 7).
func (r *recovery) seeThrough(now instant) {
	r.mu.Lock()
	q := r.is
	if q == nil {
		r.mu.Unlock()
		return
	}
	//mutant: an earlier server tells how long a quarantine lasts
	maps.DeleteFunc(q.said, func(slot int, t vouch.Report) bool { return r.epochs.roster[slot].Load() > t.Epoch }) // an earlier server's
	n, said := len(r.engine.masters), slices.Collect(maps.Values(q.said))
	if !q.Known {
		q.Outlast(r.engine.bounds.Load().Kept, r.engine.cfg.DriftFactor) // a master that has been met since may have told of longer locks
		if q.Hear(said, n, now, r.engine.cfg.DriftFactor) {
			r.log(slog.LevelInfo, "quarantine: the other masters have said for how long", "at_most", (q.Until - now).Round(time.Millisecond))
		}
	}
	over := now >= q.Until
	fence := vouch.Fence(said, n) // the fence that the master is to be seeded with, or 0 if too few others have told
	survey := !over && !q.Known && (q.surveyed == 0 || now-q.surveyed >= surveyEvery)
	if survey {
		q.surveyed, q.said = now, make(map[int]vouch.Report)
	}
	r.mu.Unlock()
	switch {
	case over:
		r.end(q, fence)
	case survey:
		for _, other := range r.epochs.peers {
			if &other.recovery != r {
				r.survey(q, other)
			}
		}
	}
}

// survey asks another master for its horizon, and tells the master the epochs.
func (r *recovery) survey(q *quarantine, other *lane) {
	args := luaSurvey.whole([]string{rosterKey, horizonKey, quarantineKey}, r.epochs.roster.args()...)
	other.ask(args, func(reply any) {
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
		r.epochs.roster.learn(text)
		t := vouch.Report{
			Epoch:   other.connection.epoch,
			Horizon: time.Duration(ms) * time.Millisecond,
			Clean:   quarantined == 0 && r.epochs.latest().Load() == q.epoch,
		}
		if seeded {
			t.Fence = fence
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.is == q {
			q.said[other.master.slot] = t
		}
	})
}

// end ends the quarantine for all proxies, if the master still has the quarantine q. The master is seeded with the fence, if the fence
// is not 0.
func (r *recovery) end(q *quarantine, fence int64) {
	args := luaEndQuarantine.whole([]string{rosterKey, canaryKey, quarantineKey}, append(r.epochs.roster.args(), fence, q.canary, q.text)...)
	r.ask(args, func(reply any) {
		if reply == int64(1) {
			r.set("", q.canary)
			return
		}
		r.suspect()
	})
}

// A tender has a master's quarantines end in all databases together. A database that no client of this proxy uses has no lanes. If
// the quarantine there began to end only when a client comes, another master might have forgotten its locks by then, and too few
// would remember: the client would wait for TTLMax. So unused databases get lanes until the quarantine is over.
type tender struct {
	engine *Engine
	seen   []*quarantine // by master: the quarantine in database 0 for which lanes were opened last
	opened []int         // the databases to which the tender gave lanes
}

// look opens lanes when a master comes into quarantine in database 0, where a loss of the whole master always shows, and closes a
// database's lanes when no master is in quarantine there.
func (t *tender) look() {
	e := t.engine
	if first := e.databases.all[0].open.Load(); first != nil && t.hasNews(*first) {
		for db := range e.cfg.Tended {
			if e.databases.all[db].open.Load() == nil {
				e.databases.open(db)
				t.opened = append(t.opened, db)
			}
		}
	}
	t.opened = slices.DeleteFunc(t.opened, e.databases.closeHealed)
}

// hasNews says that a master has come into quarantine, or into another quarantine, since the last call.
func (t *tender) hasNews(first laneSet) (news bool) {
	t.seen = slices.Grow(t.seen, len(first))[:len(first)]
	for i, l := range first {
		q := l.recovery.current()
		news = news || q != nil && q != t.seen[i]
		t.seen[i] = q
	}
	return news
}

// isHealing says that a lane's master can be reached, and is in quarantine or has yet to be assessed.
func isHealing(l *lane) bool {
	up, down := l.queue.connection()
	return down == "" && (!up || l.recovery.current() != nil)
}
