package slowlog

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var start = time.Unix(1_700_000_000, 0)

func TestTheLogTakes(t *testing.T) {
	var l Log
	for _, c := range []struct {
		what string
		at   time.Duration
		want bool
	}{
		{"the first command", 0, true},
		{"no other within the millisecond", time.Millisecond - 1, false},
		{"the next millisecond's", time.Millisecond, true},
		{"a command after the clock was set back", -time.Hour, true},
	} {
		if got := l.Takes(start.Add(c.at)); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

func TestTheLogHasTheLatestEntries(t *testing.T) {
	var l Log
	ids := func(n int64) (ids []int64) {
		for _, e := range l.Latest(n) {
			ids = append(ids, e.ID)
		}
		return ids
	}
	want := func(when string, n int64, want ...int64) {
		t.Helper()
		if got := ids(n); !slices.Equal(got, want) {
			t.Errorf("%s, Latest(%d) has %v, want %v", when, n, got, want)
		}
	}
	want("at first", -1)
	for range 3 {
		l.Add(Entry{}, 0)
	}
	want("with three", 0)
	want("with three", 2, 2, 1)
	want("with three", 4, 2, 1, 0)
	want("with three", -1, 2, 1, 0)
	for range EntriesMax {
		l.Add(Entry{}, 0)
	}
	if all := ids(-1); len(all) != EntriesMax || all[0] != EntriesMax+2 || all[EntriesMax-1] != 3 || l.Len() != EntriesMax {
		t.Errorf("the full log has %v, Len %d", all, l.Len())
	}
	l.Reset()
	want("after Reset", -1)
	l.Add(Entry{}, 0)
	want("after Reset", -1, EntriesMax+3)
	if l.Len() != 1 {
		t.Errorf("Len %d after Reset", l.Len())
	}
}

func TestArgumentsAreShownAsByRedis(t *testing.T) {
	many := strings.Fields(strings.Repeat("x ", 40))
	for _, c := range []struct {
		first []string
		n     int
		want  []string
	}{
		{nil, 0, []string{}},
		{[]string{"GET", ""}, 2, []string{"GET", ""}},
		{[]string{strings.Repeat("k", 128)}, 1, []string{strings.Repeat("k", 128)}},
		{[]string{strings.Repeat("k", 129)}, 1, []string{strings.Repeat("k", 128) + "... (1 more bytes)"}},
		{[]string{strings.Repeat("k", 130)}, 1, []string{strings.Repeat("k", 128) + "... (2 more bytes)"}},
		{many[:32], 32, many[:32]},
		{many[:32], 33, append(many[:31:31], "... (2 more arguments)")},
		{many, 40, append(many[:31:31], "... (9 more arguments)")},
	} {
		if got := shown(c.first, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%d arguments are shown as %q, want %q", c.n, got, c.want)
		}
	}
}

// Many writers and readers at one time leave a whole log. The race detector watches.
func TestTheLogIsForAllGoroutines(t *testing.T) {
	var l Log
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				l.Add(Entry{Args: []string{"GET", "k"}}, 2)
				for _, e := range l.Latest(2) {
					if len(e.Args) != 2 {
						t.Errorf("entry %+v", e)
					}
				}
			}
		})
	}
	all.Wait()
	if latest := l.Latest(-1); len(latest) != EntriesMax || latest[0].ID != 799 {
		t.Errorf("%d entries, the latest %+v", len(latest), latest[0])
	}
}

// The log's memory is bounded, whatever clients send.
func FuzzShown(f *testing.F) {
	f.Add("SET k v", "name")
	f.Add(strings.Repeat("a ", 100), strings.Repeat("n", 1000))
	f.Add(strings.Repeat("a", 1000), "")
	f.Add("\x00\xff \r\n", "\x00")
	f.Fuzz(func(t *testing.T, text, name string) {
		args := strings.Split(text, " ")
		var l Log
		l.Add(Entry{Args: args[:min(len(args), ArgsMax)], Name: name}, len(args))
		e := l.Latest(1)[0]
		if len(e.Args) > ArgsMax || len(e.Name) > nameMax {
			t.Errorf("%d arguments, a name of %d bytes", len(e.Args), len(e.Name))
		}
		for i, arg := range e.Args {
			if len(arg) > argMax+len("... (9223372036854775807 more bytes)") {
				t.Errorf("an argument of %d bytes", len(arg))
			}
			whole := len(args[i]) <= argMax && (len(args) <= ArgsMax || i < ArgsMax-1)
			if whole != (arg == args[i]) {
				t.Errorf("%q is shown as %q", args[i], arg)
			}
		}
	})
}
