package integration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
	"lockproxy/script"
)

// TestEveryStateOfARedissonLockIsAnsweredAsByOneRedis runs every script of every version of Redisson in the table in every state that
// two threads of two clients can reach, and on masters of which one has missed the step that led there, with all masters and with
// one away. The reply is that of one Redis, or an error.
func TestEveryStateOfARedissonLockIsAnsweredAsByOneRedis(t *testing.T) {
	requireRedis(t)
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	four, three, two := []string{"aa:1", "aa:2", "bb:1", "bb:2"}, []string{"aa:1", "aa:2", "bb:1"}, []string{"aa:1", "bb:1"}
	readWrite := []string{"9555", "6306", "6e1b", "21f5"}
	var all []reachable
	for _, r := range []struct {
		name    string
		callers []string
		alike   []map[string]string
		holds   int
		walks   []string
		write   func(*deedWriter)
	}{
		{"RReadWriteLock", four, permuted(), 2, readWrite, (*deedWriter).readWrite},
		{"RReadWriteLock whose holds run out", three, permuted()[:2], 1, readWrite, (*deedWriter).readWriteOver},
		{"RLock", four, permuted(), 2, []string{"149c", "6866"}, (*deedWriter).plain},
		{"RFairLock", three, permuted()[:2], 2, []string{"8f6e", "367f", "d1dd"}, (*deedWriter).fair},
		{"FasterMultiLock", two, permuted(), 2, []string{"eba4", "5088"}, (*deedWriter).several},
	} {
		w := &deedWriter{T: t, now: now, callers: r.callers, walks: r.walks}
		r.write(w)
		all = append(all, reachable{name: r.name, deeds: w.deeds, alike: r.alike, holds: r.holds})
	}
	newReachCheck(t).run(all)
}

// A reachCheck compares what lockproxy replies with what one Redis does.
type reachCheck struct {
	*testing.T
	masters []*harness.Redis
	servers []*harness.Conn // of one Redis, and of the masters
	proxy   *harness.Conn
	errors  int
	made    int // how many locks were made
}

func newReachCheck(t *testing.T) *reachCheck {
	c := &reachCheck{T: t, masters: startMasters(t, 3)}
	c.servers = append(c.servers, dial(t, startMasters(t, 1)[0].Addr))
	for _, m := range c.masters {
		c.servers = append(c.servers, dial(t, m.Addr))
	}
	c.proxy = dial(t, startProxy(t, harness.Addrs(c.masters)).Addr)
	allVote(t, c.proxy, c.masters)
	return c
}

// A trial is a deed in a state that the masters may hold in different versions.
type trial struct {
	deed   *deed
	state  *state
	missed *state // what one master holds that has missed a step, if any
	stale  int    // which
	lock   string // the name of the lock
	away   bool   // a third master is away
}

// run makes all trials of all families, first with all masters, and then with one away.
func (c *reachCheck) run(all []reachable) {
	var trials [][]*trial
	for _, r := range all {
		w := &walker{T: c.T, c: c.servers[0]}
		states, moves := w.walk(&r)
		var of []*trial
		for i := range r.deeds {
			if r.deeds[i].happens {
				continue
			}
			for _, s := range states {
				of = append(of, &trial{deed: &r.deeds[i], state: s})
			}
			for n, m := range moves {
				of = append(of, &trial{deed: &r.deeds[i], state: m.to, missed: m.from, stale: n % 2})
			}
		}
		c.Logf("%s: %d states, %d moves, %d deeds, %d trials", r.name, len(states), len(moves), len(r.deeds), len(of))
		trials = append(trials, of)
	}
	c.each(all, trials, "all masters")
	c.masters[2].Kill()
	c.servers = c.servers[:3]
	c.each(all, trials, "one master away")
}

func (c *reachCheck) each(all []reachable, trials [][]*trial, with string) {
	for i, r := range all {
		c.errors = 0
		begun := time.Now()
		wrong := map[string]int{}
		for some := range slices.Chunk(trials[i], 200) {
			c.chunk(some, with, wrong)
		}
		for what, n := range wrong {
			c.Errorf("%s, with %s, %d times: %s", r.name, with, n, what)
		}
		c.Logf("%s, with %s: %d trials in %v, of which %d are answered with an error", r.name, with, len(trials[i]), time.Since(begun).Round(time.Millisecond), c.errors)
	}
}

// chunk makes the trials' locks on all servers, and runs the deeds.
func (c *reachCheck) chunk(some []*trial, with string, wrong map[string]int) {
	for _, t := range some {
		t.away = len(c.servers) < 4
		c.made++
		t.lock = "k" + strconv.Itoa(c.made)
	}
	for i, server := range c.servers {
		var raw []byte
		sent := 0
		for _, t := range some {
			s := t.state
			if t.missed != nil && i == 1+t.stale {
				s = t.missed
			}
			for _, command := range s.made {
				raw = harness.Encode(raw, t.named(command)...)
				sent++
			}
		}
		c.pipe(server, raw, sent)
	}
	var raw []byte
	for _, t := range some {
		raw = harness.Encode(raw, t.named(t.deed.command)...)
	}
	want, got := c.pipe(c.servers[0], raw, len(some)), c.pipe(c.proxy, raw, len(some))
	for i, t := range some {
		why := t.differs(want[i], got[i])
		if strings.HasPrefix(got[i], "-") && !strings.HasPrefix(want[i], "-") {
			c.errors++
		}
		if why == "" {
			continue
		}
		what := fmt.Sprintf("%s: %s", t.deed.name, why)
		if wrong[what]++; wrong[what] == 1 {
			c.Logf("%s, with %s, missed by %d %v:\n  %s\n  one Redis %q, lockproxy %q\n  held %q\n  held by the one that missed it %q",
				t.lock, with, t.stale, t.missed != nil, strings.Join(append(slices.Clone(t.state.steps), t.deed.name), "; "), want[i], got[i],
				t.state.lines, t.staleLines())
		}
	}
}

func (t *trial) staleLines() []string {
	if t.missed == nil {
		return nil
	}
	return t.missed.lines
}

// pipe sends requests and returns the replies.
func (c *reachCheck) pipe(to *harness.Conn, raw []byte, n int) []string {
	c.Helper()
	sent := make(chan error, 1)
	go func() { sent <- to.Send(raw) }()
	replies := make([]string, n)
	for i := range replies {
		reply, err := to.Reply()
		if err != nil {
			c.Fatal(err)
		}
		replies[i] = string(reply)
	}
	if err := <-sent; err != nil {
		c.Fatal(err)
	}
	return replies
}

// named puts the lock's name into a command, but not into a text.
func (t *trial) named(command []string) []string {
	out := slices.Clone(command)
	for i, word := range out {
		switch {
		case word == "k":
			out[i] = t.lock
		case i > 1 || command[0] != "EVAL":
			out[i] = strings.ReplaceAll(word, "{k}", "{"+t.lock+"}")
		}
	}
	return out
}

// differs says what is wrong with a reply, or nothing.
func (t *trial) differs(want, got string) string {
	switch {
	case got == want:
		return ""
	case strings.HasPrefix(got, "-"): // not to know who holds it is never wrong; but where masters agree, it is known
		if t.missed != nil || t.state.over || strings.HasPrefix(want, "-") {
			return ""
		}
	case t.deed.kind == script.Takes && t.takesAlike(want, got),
		t.deed.kind == script.Releases && t.missed != nil && t.away && t.freesAlike(want, got),
		t.deed.kind == script.Extends && t.missed != nil && t.refusesAlike(want, got),
		near(want, got):
		return ""
	}
	return fmt.Sprintf("%.40q in place of %.40q", got, want)
}

// takesAlike says that replies to a script that takes a lock are as good as each other. When to ask again is not compared, unless one Redis
// says at once, and no quorum may hold the lock. What it grants may be refused for a moment where masters do not agree; and of a lock that nobody holds, another may be the
// first in the queue.
func (t *trial) takesAlike(want, got string) bool {
	wanted, told := t.deed.grants(want), t.deed.grants(got)
	doubtful := t.missed != nil && t.away
	free := t.missed == nil || !t.away || t.missed.isFree()
	if n, is := harness.Int([]byte(got)); is && !wanted && !told && want == ":0\r\n" && n > 1000 && free {
		return false
	}
	return wanted == told || doubtful && wanted || doubtful && t.state.isFree() && t.missed.isFree()
}

// freesAlike says that replies to a script that frees a lock are as good as each other: where one of two masters still held what one Redis
// does not, it may have been held, and is so no longer; so may have been one more of several locks. Whether others still hold it with the
// caller is not known then.
func (t *trial) freesAlike(want, got string) bool {
	if t.deed.grants != nil && !t.deed.grants(want) && t.deed.grants(got) {
		return true
	}
	freed, is := harness.Int([]byte(got))
	had, _ := harness.Int([]byte(want))
	return is && (freed > had || t.deed.shared && (had == 0 || freed == 0))
}

// refusesAlike says that both replies refuse. Whether somebody else has the lock, or nobody, is not known as soon as that it is not the caller.
func (t *trial) refusesAlike(want, got string) bool {
	return t.deed.refuses != "" && strings.HasPrefix(want, t.deed.refuses) && strings.HasPrefix(got, t.deed.refuses)
}

// near says that replies are the same but for times left, which are about the same.
func near(want, got string) bool {
	return slices.EqualFunc(strings.Split(want, "\r\n"), strings.Split(got, "\r\n"), func(wanted, told string) bool {
		return wanted == told || nearTime(wanted, told)
	})
}

// nearTime says that both lines are times left, and about the same: a key is kept for longer than is promised.
func nearTime(want, got string) bool {
	wanted, err1 := strconv.Atoi(strings.TrimPrefix(want, ":"))
	told, err2 := strconv.Atoi(strings.TrimPrefix(got, ":"))
	return err1 == nil && err2 == nil && wanted > 1000 && told > 1000 && max(wanted-told, told-wanted) < 5000+wanted/50
}

// isFree says that nobody holds the lock, though some may wait for it.
func (s *state) isFree() bool {
	return !slices.ContainsFunc(s.lines, func(line string) bool { return strings.HasPrefix(line, "k ") || strings.HasPrefix(line, "and{k} ") })
}
