package quorum

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scan is luaScan. The cursor is a place in the order of names. A fake is not given names that are ours.
func (f *fake) scan(arg func(int) string) any {
	f.scans++
	at, _ := strconv.Atoi(arg(3))
	count, _ := strconv.Atoi(arg(5))
	names := slices.Sorted(maps.Keys(f.keys))
	next := min(at+count, len(names))
	cursor := strconv.Itoa(next)
	if next == len(names) {
		cursor = "0"
	}
	page := []any{cursor}
	for _, name := range names[at:next] {
		if !strings.HasPrefix(name, arg(7)) {
			page = append(page, name)
		}
	}
	return page
}

// fences is luaNewestFences.
func (f *fake) fences(records []any) any {
	all := make([]any, len(records))
	for i, name := range records {
		if v, ok := f.get(name.(string)); ok {
			all[i] = v.text
		}
	}
	return all
}

func (w *world) locks(req LocksRequest) FoundLocks {
	if req.Matches == nil {
		req.Matches = func(string) bool { return true }
	}
	req.Most, req.Within = max(req.Most, 1), max(req.Within, minute)
	c := make(chan FoundLocks, 1)
	w.Locks(req, func(f FoundLocks) { c <- f })
	return <-c
}

// names are those of what was found, in order, and why the search ended.
func (f *FoundLocks) names() string {
	if f.Err != nil {
		return f.Err.Error()
	}
	var all []string
	for _, l := range f.Locks {
		all = append(all, l.Name)
	}
	slices.Sort(all)
	if f.Unclear > 0 {
		all = append(all, fmt.Sprint(f.Unclear, " unclear"))
	}
	return strings.Join(append(all, f.Stop.String()), " ")
}

// Each column is a lock by its name, each row a master: m somebody's token, o another's, h a hash, a point nothing. Then what becomes
// of the master: ! it is down, ~ it is late.
func TestLocksAreThoseThatAQuorumHolds(t *testing.T) {
	for _, c := range []struct {
		masters []string
		want    string
	}{
		{[]string{"abcd", "mmmh", "mmoh", "m.oh"}, "a b c d all"},
		{[]string{"abc", "mm.", "m..", "mm."}, "a b all"},
		{[]string{"ab", "..", "mm", "m."}, "a all"}, // b is not held: a vote in flight
		{[]string{"ab", "..", "m.", "mm"}, "a all"}, // the first two tell all their names
		{[]string{"a", "m!", "m", "m"}, "a all"},
		{[]string{"a", "m~", "m", "m"}, "a all"},
		{[]string{"a", "m", "m", "m~"}, "a all"},
		{[]string{"ab", "..!", ".m", "mm"}, "b 1 unclear all"}, // a may be on the first master, too
		{[]string{"ab", "..~", ".m", "mm"}, "b 1 unclear all"},
		{[]string{"a", "m!", "m~", "m"}, "NOQUORUM 1 of 3 masters answered, 2 needed: "},
		{[]string{"ab", "..", "..", "..", "mm", "mm", "m.", "m."}, "a all"}, // 4 of 7 are one of the first 4
	} {
		t.Run(strings.Join(c.masters, " "), func(t *testing.T) {
			inWorld(t, len(c.masters)-1, func(w *world) {
				for i, row := range c.masters[1:] {
					for j, name := range c.masters[0] {
						w.fakes[i].give(string(name), rune(row[j]))
					}
				}
				for i, row := range c.masters[1:] {
					switch row[len(row)-1] {
					case '!':
						w.fakes[i].leave()
						w.settle()
					case '~':
						w.fakes[i].stall()
					}
				}
				found := w.locks(LocksRequest{Most: 10})
				if got := found.names(); got != c.want && !(found.Err != nil && strings.HasPrefix(got, c.want)) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// give puts what a sign stands for under a name.
func (f *fake) give(name string, sign rune) {
	text := map[rune]string{'m': "mine", 'o': "other", 'h': "digest"}[sign]
	if text == "" {
		return
	}
	f.set(name, text, minute)
	if sign == 'h' {
		f.mu.Lock()
		f.keys[name] = value{text, "hash", f.keys[name].expires}
		f.mu.Unlock()
	}
}

// What is told of a lock is what its holder and an operator need: whose it is, for how long still, and its fence.
func TestALockThatIsFoundTellsWhatItIs(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		long := strings.Repeat("x", shortMax+1)
		for _, f := range w.fakes {
			f.give("s", 'm')
			f.give("h", 'h')
			f.set("long", long, minute)
			f.set(recordPrefix+"s", "77", minute)
			f.set(namesKey, "ours", minute)
		}
		found := w.locks(LocksRequest{Most: 10})
		if got := found.names(); got != "h long s all" {
			t.Fatalf("got %q", got)
		}
		for _, l := range found.Locks {
			want := map[string]string{"s": "string mine 77", "h": "hash  0", "long": "string " + long[:headMax] + "… (513 bytes) 0"}[l.Name]
			if got := fmt.Sprint(l.Type, " ", l.Token, " ", l.Fence); got != want || l.TTL < 50*time.Second || l.TTL > minute {
				t.Errorf("%s: %q for %v, want %q", l.Name, got, l.TTL, want)
			}
		}
	})
}

// A search has bounds, and says which of them ended it. Masters are asked no further then.
func TestASearchForLocksIsBounded(t *testing.T) {
	for _, c := range []struct {
		name  string
		req   LocksRequest
		found int
		stop  Stop
		scans int // questions for names, of all masters
	}{
		{"all", LocksRequest{Most: 3000}, 2500, StopAll, 10},
		{"as many as are there", LocksRequest{Most: 2500}, 2500, StopAll, 10},
		{"a number", LocksRequest{Most: 10}, 10, StopCount, 1},
		{"one name", LocksRequest{Most: 10, Names: []string{"k7"}}, 1, StopAll, 0},
		{"one that is not there", LocksRequest{Most: 10, Names: []string{"none"}}, 0, StopAll, 0},
		{"what matches", LocksRequest{Most: 10, Matches: func(n string) bool { return n == "k7" || n == "k2007" }}, 2, StopAll, 10},
		{"a number, and first of all what is waited for", LocksRequest{Most: 10, First: []string{"k2400", "none", "k2400", namesKey}}, 10, StopCount, 1},
		{"no time", LocksRequest{Most: 10, Within: -1}, 0, StopTime, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				for _, f := range w.fakes {
					for i := range 2500 {
						f.give(fmt.Sprint("k", i), 'm')
					}
				}
				if c.req.Matches == nil {
					c.req.Matches = func(string) bool { return true }
				}
				if c.req.Within == 0 {
					c.req.Within = minute
				}
				got := make(chan FoundLocks, 1)
				w.Locks(c.req, func(f FoundLocks) { got <- f })
				found := <-got
				scans := 0
				for _, f := range w.fakes {
					scans += f.scans
				}
				if c.req.First != nil && (len(found.Locks) == 0 || found.Locks[0].Name != c.req.First[0]) {
					t.Errorf("what is waited for is not found first: %s", found.names())
				}
				if found.Err != nil || len(found.Locks) != c.found || found.Stop != c.stop || scans != c.scans {
					t.Errorf("%d locks, %v, %v, %d questions", len(found.Locks), found.Stop, found.Err, scans)
				}
			})
		})
	}
}

// Whoever asks for all locks, again and again, leaves room for others: one question of a search is under way at a time, and no more
// than two of all searches.
func TestSearchesWaitForEachOther(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, f := range w.fakes {
			for i := range 1500 {
				f.give(fmt.Sprint("k", i), 'm')
			}
		}
		w.fakes[0].stall()
		over := make(chan FoundLocks, 20)
		for range cap(over) {
			w.Locks(LocksRequest{Most: 2000, Within: minute, Matches: func(string) bool { return true }}, func(f FoundLocks) { over <- f })
		}
		queue := &w.databases.lanes(0)[0].queue
		queue.mu.Lock()
		waiting := len(queue.requests)
		queue.mu.Unlock()
		if waiting > 2 {
			t.Errorf("%d questions wait for a master that is late", waiting)
		}
		for range cap(over) {
			if f := <-over; f.Err != nil || len(f.Locks) != 1500 {
				t.Errorf("%d locks, %v", len(f.Locks), f.Err)
			}
		}
	})
}

func TestASearchEndsWithTheEngine(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, f := range w.fakes {
			f.stall()
		}
		over := make(chan FoundLocks, 1)
		w.Locks(LocksRequest{Most: 1, Within: minute, Matches: func(string) bool { return true }}, func(f FoundLocks) { over <- f })
		for _, f := range w.fakes {
			f.resume()
		}
		w.Close()
		if f := <-over; f.Err != nil && f.Err != ErrClosed { //nolint:errorlint // it is not wrapped
			t.Errorf("got %v", f.Err)
		}
	})
}
