package chaos

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A ledger is what a lock guards: a file with a number, and a file with a line for each increment of it. Its mutex keeps
// one access to the files whole, as the kernel would; it is not held from a reading to the write that follows, so
// nothing but the lock keeps two sections apart.
type ledger struct {
	mu      sync.Mutex // guards all below
	counter *os.File
	log     *os.File
	writes  []write // in the order in which they reached the file
}

// A write is one increment.
type write struct {
	token       string
	overran     bool // it came after the validity of its lock: its worker was paused
	overwritten bool
}

// A reading is the counter as one section saw it.
type reading struct {
	value  int
	writes int // how many writes there had been
}

// sums are what became of the increments.
type sums struct {
	increments int
	lost       int // overwritten within the validity of both locks: the lock was held twice
	excused    int // overwritten by a write, or as one, that overran
	overran    int
}

func newLedger(dir, name string) (*ledger, error) {
	l := &ledger{}
	var err error
	if l.counter, err = os.Create(filepath.Join(dir, name+".counter")); err != nil {
		return nil, err
	}
	l.log, err = os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	return l, err
}

func (l *ledger) close() {
	_ = l.counter.Close()
	_ = l.log.Close()
}

func (l *ledger) read() (reading, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.value()
	return reading{n, len(l.writes)}, err
}

// value reads the file. An empty one is 0.
func (l *ledger) value() (int, error) {
	b := make([]byte, 20)
	n, _ := l.counter.ReadAt(b, 0)
	text := strings.TrimSpace(string(b[:n]))
	if text == "" {
		return 0, nil
	}
	return strconv.Atoi(text)
}

// increment writes what was read and one more. The lock that guards this is valid until then.
func (l *ledger) increment(r reading, token string, until time.Time) (sums, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.counter.WriteAt(fmt.Appendf(nil, "%-20d", r.value+1), 0); err != nil {
		return sums{}, err
	}
	if _, err := fmt.Fprintf(l.log, "%d %s\n", r.value+1, token); err != nil {
		return sums{}, err
	}
	w := write{token: token, overran: time.Now().After(until)}
	s := sums{increments: 1}
	if w.overran {
		s.overran++
	}
	for i := r.writes; i < len(l.writes); i++ {
		other := &l.writes[i]
		switch {
		case other.overwritten:
		case w.overran || other.overran:
			s.excused++
		default:
			s.lost++
		}
		other.overwritten = true
	}
	l.writes = append(l.writes, w)
	return s, nil
}

func (s *sums) add(o sums) {
	s.increments += o.increments
	s.lost += o.lost
	s.excused += o.excused
	s.overran += o.overran
}

// check reads the files anew. If no increment was overwritten, the counter is their number, and the log is in order.
func (l *ledger) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.writes {
		if w.overwritten {
			return nil
		}
	}
	n, err := l.value()
	if err != nil {
		return err
	}
	if n != len(l.writes) {
		return fmt.Errorf("the counter is %d after %d increments", n, len(l.writes))
	}
	if _, err := l.log.Seek(0, 0); err != nil {
		return err
	}
	lines := bufio.NewScanner(l.log)
	for i, w := range l.writes {
		if want := fmt.Sprintf("%d %s", i+1, w.token); !lines.Scan() || lines.Text() != want {
			return fmt.Errorf("line %d of the log is %q, not %q", i+1, lines.Text(), want)
		}
	}
	return lines.Err()
}

// A ledger that finds nothing proves nothing.
func TestALedgerCountsWhatALockFailedToGuard(t *testing.T) {
	valid, over := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for _, c := range []struct {
		name        string
		first, then time.Time // the end of validity of a section, and of one that begins within it and ends after it
		want        sums
	}{
		{"both valid", valid, valid, sums{increments: 2, lost: 1}},
		{"the overwritten one overran", over, valid, sums{increments: 2, excused: 1, overran: 1}},
		{"the overwriting one overran", valid, over, sums{increments: 2, excused: 1, overran: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := newLedger(t.TempDir(), "resource")
			if err != nil {
				t.Fatal(err)
			}
			defer l.close()
			var got sums
			step := func(token string, until time.Time, within func()) {
				r, err := l.read()
				if err != nil {
					t.Fatal(err)
				}
				within()
				s, err := l.increment(r, token, until)
				if err != nil {
					t.Fatal(err)
				}
				got.add(s)
			}
			step("a", valid, func() {})
			step("b", valid, func() {})
			if got != (sums{increments: 2}) || l.check() != nil {
				t.Errorf("one after the other: %+v, %v", got, l.check())
			}
			got = sums{}
			step("c", c.then, func() { step("d", c.first, func() {}) })
			if got != c.want {
				t.Errorf("one within the other: got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestALedgerChecksItsFiles(t *testing.T) {
	l, err := newLedger(t.TempDir(), "resource")
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for range 3 {
		r, _ := l.read()
		if _, err := l.increment(r, "token", time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.check(); err != nil {
		t.Error(err)
	}
	if _, err := l.counter.WriteAt([]byte("2 "), 0); err != nil {
		t.Fatal(err)
	}
	if err := l.check(); err == nil {
		t.Error("a counter of 2 after 3 increments passed")
	}
}
