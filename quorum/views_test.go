package quorum

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func (w *world) views(key string) Viewed {
	c := make(chan Viewed, 1)
	w.Views(Key{Name: key}, func(v Viewed) { c <- v })
	return <-c
}

// restartWithData puts a master into quarantine without a loss.
func (f *fake) restartWithData() {
	f.mu.Lock()
	f.runID++
	f.mu.Unlock()
	f.cut()
}

// What each master has: m mine, o other's, h a hash, a point nothing. Then what becomes of it: a capital is in quarantine,
// ! down, ~ late.
func TestViewsTellWhatEachMasterHasAndWhyItCounts(t *testing.T) {
	for _, c := range []struct {
		masters, state, token string
		counts                string // by master: + it does, - it does not
		reasons               []string
	}{
		{"...", "free", "", "+++", []string{"", "", ""}},
		{"mmm", "held", "mine", "+++", []string{"", "", ""}},
		{"mm.", "held", "mine", "+++", []string{"", "", ""}},
		{"mmo", "held", "mine", "+++", []string{"", "", ""}},
		{"hhh", "held", "", "+++", []string{"", "", ""}},
		{"m..", "free", "", "+++", []string{"", "", ""}},
		{"mo.", "unclear", "", "+++", []string{"", "", ""}},
		{"mm!", "held", "mine", "++-", []string{"", "", "connection lost|connection refused"}},
		{"mm~", "held", "mine", "++-", []string{"", "", "did not answer within"}},
		{"..!", "free", "", "++-", []string{"", "", "connection"}},
		{"Mm.", "held", "mine", "+++", []string{"quarantined", "", ""}}, // what it still has counts
		{"m.Q", "unknown", "", "++-", []string{"", "", "quarantined"}},  // what it has not does not
		{"m!!", "unknown", "", "+--", []string{"", "connection", "connection"}},
		{"!!!", "unknown", "", "---", []string{"connection", "connection", "connection"}},
	} {
		t.Run(c.masters, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.prepare(c.masters)
				v := w.views(key)
				if v.Err != nil || v.State.String() != c.state || v.View.Value != c.token {
					t.Errorf("got %v, %q: %+v", v.State, v.View.Value, v)
				}
				if left := v.View.TTL; (c.state == "held") != (left > 50*time.Second && left <= minute) {
					t.Errorf("%v is left", left)
				}
				for i, m := range v.Masters {
					if m.Counts != (c.counts[i] == '+') || !reasonIs(m.Reason, c.reasons[i]) {
						t.Errorf("master %d: %+v, want %q", i, m, c.reasons[i])
					}
					answered := !strings.ContainsRune("!~", rune(c.masters[i]))
					if exists := strings.ContainsRune("mMoh", rune(c.masters[i])); m.Answered != answered || (m.Answered && m.Type != "none") != exists || exists != (m.TTL > 50*time.Second) {
						t.Errorf("master %d: %+v", i, m)
					}
					if (m.State == Quarantined) != strings.ContainsRune("MQ", rune(c.masters[i])) || (m.Left > 0) != (m.State == Quarantined) {
						t.Errorf("master %d: %v for %v", i, m.State, m.Left)
					}
				}
			})
		})
	}
}

// prepare makes the masters what the signs say.
func (w *world) prepare(signs string) {
	w.acquire("lock", "x", minute) // so that a quarantine lasts
	for i, sign := range signs {
		w.fakes[i].prepare(sign)
	}
	w.settle()
	for i, sign := range signs {
		if sign == '~' {
			w.fakes[i].stall()
		}
	}
}

func (f *fake) prepare(sign rune) {
	kept := minute + 2*time.Second
	switch sign {
	case 'm', 'M':
		f.set(key, "mine", kept)
	case 'o':
		f.set(key, "other", kept)
	case 'h':
		f.set(key, "digest", kept)
		f.mu.Lock()
		v := f.keys[key]
		v.kind = "hash"
		f.keys[key] = v
		f.mu.Unlock()
	case '!':
		f.leave()
	}
	if sign == 'M' || sign == 'Q' {
		f.restartWithData()
	}
}

func reasonIs(got, want string) bool {
	if want == "" {
		return got == ""
	}
	for part := range strings.SplitSeq(want, "|") {
		if strings.Contains(got, part) {
			return true
		}
	}
	return false
}

// The signs are those of the views.
func TestBreakDeletesWhateverIsThere(t *testing.T) {
	for _, c := range []struct {
		masters string
		applied bool
		fails   bool
		token   string
	}{
		{"mmm", true, false, "mine"},
		{"mmo", true, false, "mine"},
		{"omm", true, false, "mine"},
		{"mo.", true, false, "mine"},
		{"..m", true, false, "mine"},
		{"hhh", true, false, "digest"}, // the fake's
		{"mm!", true, false, "mine"},
		{"mm~", true, false, "mine"},
		{"..Q", false, false, ""},
		{"QQ.", false, false, ""}, // what they do not have need not be deleted
		{"...", false, false, ""},
		{"m!!", false, true, ""},
	} {
		t.Run(c.masters, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.prepare(c.masters)
				done := make(chan Changed, 1)
				w.Break(Key{Name: key}, func(b Changed) { done <- b })
				b := <-done
				if b.Applied != c.applied || (b.Err != nil) != c.fails {
					t.Errorf("got %+v", b)
				}
				if b.Token != c.token {
					t.Errorf("told %q", b.Token)
				}
				for i, f := range w.fakes {
					if strings.ContainsRune("!~", rune(c.masters[i])) {
						continue
					}
					if _, there := f.lookup(key); there {
						t.Errorf("master %d has it still", i)
					}
				}
			})
		})
	}
}

// A server that does not know what it is asked is no reason to end.
func TestBreakReadsAnyReply(t *testing.T) {
	for _, reply := range []any{int64(1), int64(0), int64(-1), "OK", nil, []any{}, []any{int64(1)}, []any{nil, "t"}, map[any]any{}} {
		b := &breakRound{}
		b.entries = make([]entry, 1)
		en := &b.entries[0]
		en.Reply = reply
		en.vote = b.read(en).vote
		if got := b.told(); got != "" && got != "t" {
			t.Errorf("%v tells %q", reply, got)
		}
	}
}

func (f *fake) lookup(key string) (value, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.get(key)
}

func TestALockTellsWhatItConsistsOf(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		expect := func(l *Lock, want ...Key) {
			t.Helper()
			if got := fmt.Sprint(l.AppendKeys(nil)); got != fmt.Sprint(want) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
		k, j := Key{Name: key}, Key{Name: "j"}
		expect(w.acquire(key, "mine", minute).Lock, k)
		expect(w.extend(ExtendRequest{Key: k, Token: "mine", TTL: minute}).Lock, k)
		expect(w.try(AcquireRequest{Key: k, Token: "mine", TTL: minute, Reentrant: true}).Lock, k)
		done := make(chan Executed, 1)
		w.Exec(ExecRequest{Keys: []string{"i", key, "j"}, Plan: func([]View) []Edit {
			return []Edit{{}, {Kind: Put, Value: "new", TTL: minute}, {Kind: Put, Value: "x", TTL: minute}}
		}}, func(x Executed) { done <- x })
		expect((<-done).Lock, k, j)
	})
}
