package vouch

import (
	"strings"
	"testing"
	"time"
)

// all calls f with every mark there can be, of few values.
func all(f func(Canary)) {
	for i := range 2 * 3 * 3 * 2 * 2 * 2 * 2 {
		pick := func(n int) int {
			d := i % n
			i /= n
			return d
		}
		f(Canary{
			DB: pick(2), Process: []string{"-", "p", "q"}[pick(3)], Lineage: []string{"-", "x", "y"}[pick(3)],
			Epoch: []int64{5, 9}[pick(2)], Members: []string{"m", "n"}[pick(2)],
			Bounds:  []Bounds{{time.Hour, time.Second, 0.5, time.Second}, {1500 * time.Microsecond, 0, 0.01, 0}}[pick(2)],
			Durable: pick(2) == 1, Past: Past{Place: "here"},
		})
	}
}

// mayHaveForgotten is the rule in plain words.
func mayHaveForgotten(was, now Canary, latest int64) bool {
	if was.DB != now.DB {
		return true
	}
	sameProcess := was.Process == now.Process || was.Process == "-" || now.Process == "-"
	promoted := now.Lineage != "-" && now.Lineage != was.Lineage
	if sameProcess {
		return promoted
	}
	readItsAOF := was.Durable && now.Durable && !now.Incomplete && now.Lineage == "-" && was.Epoch >= latest && was.Slot == now.Slot
	return !readItsAOF
}

func TestJudge(t *testing.T) {
	all(func(was Canary) {
		mark := was.String()
		all(func(now Canary) {
			now.FirstFile = true
			for _, now.MayBeDurable = range []bool{false, true} {
				if now.MayBeDurable && now.Durable {
					continue
				}
				for _, latest := range []int64{0, 6} {
					expectJudgement(t, mark, was, now, latest)
				}
				now.Slot = 1
				expectJudgement(t, mark, was, now, 0)
				now.Slot, now.Incomplete = was.Slot, true
				expectJudgement(t, mark, was, now, 0)
				now.Incomplete = false
			}
		})
	})
}

// expectJudgement judges a master that is now so, and that was marked so.
func expectJudgement(t *testing.T, mark string, was, now Canary, latest int64) {
	t.Helper()
	j := Assess(mark, now, latest)
	if was.Members != now.Members {
		if j.Finding != Foreign || j.Reason == "" {
			t.Fatalf("%+v, %+v: %+v: it is another deployment's", was, now, j)
		}
		return
	}
	next := j.Next
	forgot := mayHaveForgotten(was, now, latest)
	switch {
	case forgot != (j.Finding == Forgot), forgot != (j.Reason != ""):
		t.Fatalf("%+v, %+v: %+v: forgot %v", was, now, j, forgot)
	case forgot && (next.Epoch <= was.Epoch || next.Epoch < now.Epoch):
		t.Fatalf("%+v, %+v: epoch %d is not new", was, now, next.Epoch)
	case !forgot && was.Durable && !next.Durable && (was.Epoch < latest || next.Epoch != was.Epoch+1):
		t.Fatalf("%+v, %+v: epoch %d is not the next, or it was replaced before", was, now, next.Epoch)
	case !forgot && next.Durable == was.Durable && next.Epoch != was.Epoch, !forgot && (next == was) != (j.Finding == Same):
		t.Fatalf("%+v, %+v: %+v", was, now, j)
	case forgot && next.Slot != now.Slot, !forgot && next.Slot != was.Slot:
		t.Fatalf("%+v, %+v: next %+v: proxies that do not agree on the slot would mark it in turns", was, now, next)
	case !forgot && was.Process != now.Process && was.Process != "-" && now.Process != "-" && next.Lineage != now.Lineage:
		t.Fatalf("%+v, %+v: next %+v: it has read its AOF, and may become a replica of its former master again", was, now, next)
	case next.Bounds != was.And(now.Bounds), next.Members != was.Members, next.DB != now.DB:
		t.Fatalf("%+v, %+v: next %+v", was, now, next)
	case next.Durable && !now.Durable && !((now.MayBeDurable || was.Epoch < latest) && was.Durable && !forgot):
		t.Fatalf("%+v, %+v: not durable: %+v", was, now, next)
	}
	mark = next.String()
	// Whoever marked it finds it as it is, and so do others who are permitted less: else they would mark it in turns.
	for _, process := range []string{now.Process, "-"} {
		for _, lineage := range []string{now.Lineage, "-"} {
			again := now
			again.Process, again.Lineage, again.Incomplete = process, lineage, false
			if process == "-" || lineage == "-" && now.Lineage != "-" {
				again.Durable, again.MayBeDurable = false, true
			}
			if k := Assess(mark, again, max(latest, next.Epoch)); k.Finding != Same {
				t.Fatalf("%+v: marked %+v, and then judged %+v", again, next, k)
			}
		}
	}
}

func TestAMasterWithoutAMarkMayHaveForgotten(t *testing.T) {
	all(func(now Canary) {
		if j := Assess("", now, 0); j.Finding != Forgot || j.Reason != New || j.Next != now {
			t.Fatalf("%+v: %+v", now, j)
		}
		next := now
		now.Incomplete = true
		if j := Assess("", now, 0); j.Finding != Forgot || j.Reason != Incomplete || j.Next != next {
			t.Fatalf("%+v: %+v", now, j)
		}
	})
}

func TestWhatIsNoMarkIsForeign(t *testing.T) {
	good := Canary{Process: "p", Lineage: "-", Epoch: 7, Members: "m", Bounds: Bounds{time.Hour, 50 * time.Millisecond, 0.01, time.Second}}
	for _, text := range []string{
		"x", "lockproxy-1", "lockproxy-0 7 p - m 1h 50ms 0.01 volatile 0", "lockproxy-1 -7 p - m 1h 50ms 0.01 volatile 0",
		"lockproxy-1 x p - m 1h 50ms 0.01 volatile 0", "lockproxy-1 7 p - m 2562047h 50ms 0.01 volatile 0", "lockproxy-1 7 p - m 99999999999h 50ms 0.01 volatile 0",
		"lockproxy-1 7 p - m 3600000 50ms 0.01 volatile 0", "lockproxy-1 7 p - m -1h 50ms 0.01 volatile 0",
		"lockproxy-1 7 p - m 1h -50ms 0.01 volatile 0", "lockproxy-1 7 p - m 1h 50 0.01 volatile 0",
		"lockproxy-1 7 p - m 1h 50ms 1.1 volatile 0", "lockproxy-1 7 p - m 1h 50ms NaN volatile 0",
		"lockproxy-1 7 p - m 1h 50ms -0.1 volatile 0", "lockproxy-1 7 p - m 1h 50ms 0.01 volatile zero",
		"lockproxy-1 7 p - m 3600000 volatile 0", "lockproxy-1 7 p - m 1h 50ms 0.01 volatile zero 0",
		"lockproxy-1 7 p - m 1h 50ms 0.01 -1s volatile 2 0", "lockproxy-1 7 p - m 1h 50ms 0.01 2562047h volatile 2 0", good.String() + " more",
	} {
		if j := Assess(text, good, 0); j.Finding != Foreign {
			t.Errorf("%q: %+v", text, j)
		}
	}
}

// Whoever is told that it is another deployment's runs lockproxy init, which frees all locks.
func TestAMarkInAnotherFormatIsAnotherVersions(t *testing.T) {
	now := Canary{Process: "p", Lineage: "-", Members: "m"}
	for text, want := range map[string]bool{
		"lockproxy-2" + strings.TrimPrefix(now.String(), canaryFormat): true,
		"lockproxy-2 {}":                            true,
		now.String() + " more":                      true, // as versions tell more
		"lockproxy-1 7 p - m 1h0m0s 0s 0 durable 0": true, // as versions told less
		now.String():                                false,
		"x":                                         false,
		"":                                          false,
	} {
		j := Assess(text, now, 0)
		if unread := j.Finding == Foreign && j.Reason == Unread; unread != want || IsUnread(text) != want {
			t.Errorf("%q: %+v, unread %v", text, j, IsUnread(text))
		}
	}
}
