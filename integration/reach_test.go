package integration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockproxy/integration/harness"
	"lockproxy/script"
)

// A deed is a command as one caller of a library sends it. The name of the lock is k in it, which is replaced by others.
type deed struct {
	name    string
	kind    script.FamilyKind
	command []string
	walks   bool              // it leads from state to state; others only ask, or are older forms of one that walks
	happens bool              // it is no command, but what becomes of a lock in time
	shared  bool              // the reply may tell of other holders
	grants  func(string) bool // of what takes a lock, or frees it
	refuses string            // what replies begin with that say in several ways that the caller does not hold the lock
}

// A reachable is a family of locks whose states are enumerated.
type reachable struct {
	name  string
	deeds []deed
	alike []map[string]string // how callers can be renamed without a difference
	holds int                 // the most holds of one caller
}

// A state is what one Redis holds of a lock: what was read of each key, as lines, and what makes that again.
type state struct {
	lines []string
	made  [][]string
	steps []string // what led there
	over  bool     // the time of a hold has run out, and others keep the lock
}

// key names the state. States in which only callers that are alike have changed places have one name.
func (s *state) key(r *reachable) string {
	least := ""
	for _, alike := range r.alike {
		if key := renamed(s.lines, alike); least == "" || key < least {
			least = key
		}
	}
	return least
}

func renamed(lines []string, names map[string]string) string {
	var pairs []string
	for from, to := range names {
		pairs = append(pairs, from, to)
	}
	replacer := strings.NewReplacer(pairs...)
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = replacer.Replace(line)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// permuted returns how threads 1 and 2 of clients aa and bb can change places; the first two keep those of bb where they are.
func permuted() (all []map[string]string) {
	for _, clients := range []string{"ab", "ba"} {
		for _, b := range []string{"12", "21"} {
			for _, a := range []string{"12", "21"} {
				one, other := strings.Repeat(clients[:1], 2), strings.Repeat(clients[1:], 2)
				all = append(all, map[string]string{
					"aa:1": one + ":" + a[:1], "aa:2": one + ":" + a[1:], "bb:1": other + ":" + b[:1], "bb:2": other + ":" + b[1:],
				})
			}
		}
	}
	return all
}

// A walker finds the states that a family can reach, on a Redis of its own.
type walker struct {
	*testing.T
	c *harness.Conn
}

func (w *walker) do(command ...string) []byte {
	w.Helper()
	reply, err := w.c.Do(command...)
	if err != nil {
		w.Fatal(err)
	}
	return reply
}

func (w *walker) strings(command ...string) []string {
	w.Helper()
	all, err := harness.Strings(w.do(command...))
	if err != nil {
		w.Fatalf("%q: %v", command, err)
	}
	return all
}

// A move is a step from one state to another.
type move struct{ from, to *state }

// walk returns all states, and all moves between them, each once.
func (w *walker) walk(r *reachable) (states []*state, moves []move) {
	states = []*state{{}}
	seen, moved := map[string]bool{states[0].key(r): true}, map[string]bool{}
	for i := 0; i < len(states); i++ {
		from := states[i]
		for _, d := range r.deeds {
			if !d.walks {
				continue
			}
			to := w.step(from, &d)
			if to.most() > r.holds || slices.Equal(to.lines, from.lines) {
				continue
			}
			both := &state{lines: append(prefixed("from ", from.lines), prefixed("to ", to.lines)...)}
			if name := both.key(r); !moved[name] {
				moved[name] = true
				moves = append(moves, move{from, to})
				if d.happens { // not yet on one master, or there before
					moves = append(moves, move{to, from})
				}
			}
			if name := to.key(r); !seen[name] {
				seen[name] = true
				states = append(states, to)
			}
		}
	}
	return states, moves
}

func prefixed(prefix string, lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, prefix+line)
	}
	return all
}

// step makes one state, runs a deed there, and returns what that has come to.
func (w *walker) step(from *state, d *deed) *state {
	w.Helper()
	w.do("FLUSHALL")
	for _, command := range from.made {
		w.do(command...)
	}
	w.do(d.command...)
	to := &state{steps: append(slices.Clone(from.steps), d.name), over: from.over || d.happens}
	keys := w.strings("KEYS", "*")
	slices.Sort(keys)
	for _, key := range keys {
		if !strings.Contains(key, "latch") { // which Redisson deletes behind each unlock
			w.look(to, key)
		}
	}
	slices.Sort(to.lines)
	return to
}

// look reads one key. The lines of a sorted set are without its scores, which are times.
func (w *walker) look(s *state, key string) {
	w.Helper()
	make, step := []string(nil), 1
	switch kind := string(w.do("TYPE", key)); kind {
	case "+string\r\n":
		value, _ := harness.Bulk(w.do("GET", key))
		make = []string{"SET", key, value}
		s.lines = append(s.lines, key+" = "+value)
	case "+hash\r\n":
		make, step = append([]string{"HSET", key}, w.strings("HGETALL", key)...), 2
	case "+list\r\n":
		make = append([]string{"RPUSH", key}, w.strings("LRANGE", key, "0", "-1")...)
	case "+zset\r\n":
		make = []string{"ZADD", key}
		for i, word := range w.strings("ZRANGE", key, "0", "-1", "WITHSCORES") {
			if i%2 == 0 {
				make = append(make, "", word)
				s.lines = append(s.lines, key+" has "+word)
			} else {
				make[len(make)-2] = word
			}
		}
	default:
		w.Fatalf("%s is %q", key, kind)
	}
	if make[0] == "HSET" || make[0] == "RPUSH" {
		for i := 2; i < len(make); i += step {
			line := fmt.Sprintf("%s %s", key, strings.Join(make[i:i+step], "="))
			if step == 1 {
				line = fmt.Sprintf("%s %d. %s", key, i, make[i])
			}
			s.lines = append(s.lines, line)
		}
	}
	s.made = append(s.made, make)
	if left, _ := harness.Int(w.do("PTTL", key)); left > 0 {
		s.made = append(s.made, []string{"PEXPIRE", key, strconv.FormatInt(left, 10)})
	}
}

// most returns the largest number of holds.
func (s *state) most() (most int) {
	for _, line := range s.lines {
		if _, count, is := strings.Cut(line, "="); is {
			if n, err := strconv.Atoi(strings.TrimSpace(count)); err == nil && n < 1_000_000 { // else a time
				most = max(most, n)
			}
		}
	}
	return most
}
