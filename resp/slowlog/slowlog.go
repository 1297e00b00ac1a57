// Package slowlog keeps the latest slow commands, in Redis's form and in fixed memory.
//
// A Log takes a slow command with its arguments, and cuts them as Redis does. The caller measures the time.
package slowlog

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Redis's default settings.
const (
	Threshold  = 10 * time.Millisecond // a command that takes so long is slow, if no setting says otherwise
	EntriesMax = 128
)

// The bounds of an entry; those of arguments are Redis's.
const (
	ArgsMax = 32
	argMax  = 128 // bytes
	nameMax = 128 // bytes
)

// A Log has the latest slow commands. The zero Log is empty. Methods may be called on any goroutine.
type Log struct {
	taken atomic.Int64 // the millisecond of the latest entry, since 1970

	mu    sync.Mutex // guards the fields from here on
	ring  [EntriesMax]Entry
	first int64 // the least ID since Reset
	next  int64 // ID
}

// An Entry is one slow command.
type Entry struct {
	ID     int64
	At     time.Time
	Took   time.Duration
	Args   []string
	Client string // address
	Name   string // of the client
}

// Takes says whether the log takes a slow command at this moment. A Log takes one command each millisecond: where all commands are slow, as
// behind masters far away, more entries would tell nothing, and cost time.
func (l *Log) Takes(now time.Time) bool {
	latest, ms := l.taken.Load(), now.UnixMilli()
	return latest != ms && l.taken.CompareAndSwap(latest, ms)
}

// Add adds a command with n arguments, of which e.Args has the first; ArgsMax of them are enough. Add gives the entry its ID, and copies all
// text. The oldest entry goes if there are EntriesMax.
func (l *Log) Add(e Entry, n int) {
	e.Args = shown(e.Args, n)
	e.Name = strings.Clone(e.Name[:min(len(e.Name), nameMax)])
	l.mu.Lock()
	defer l.mu.Unlock()
	e.ID = l.next
	l.ring[e.ID%EntriesMax] = e
	l.next++
}

// shown returns what Redis shows of n arguments: the last is a count if there are more than ArgsMax, and a long one is cut.
func shown(first []string, n int) []string {
	args := make([]string, min(len(first), ArgsMax))
	for i := range args {
		more := len(first[i]) - argMax
		switch {
		case n > ArgsMax && i == ArgsMax-1:
			args[i] = fmt.Sprintf("... (%d more arguments)", n-i)
		case more > 0:
			args[i] = fmt.Sprintf("%s... (%d more bytes)", first[i][:argMax], more)
		default:
			args[i] = strings.Clone(first[i]) // and not the whole command with it
		}
	}
	return args
}

// Latest returns the n latest entries, the latest first; all if n is negative.
func (l *Log) Latest(n int64) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := l.len()
	if n < 0 || n > most {
		n = most
	}
	latest := make([]Entry, n)
	for i := range latest {
		latest[i] = l.ring[(l.next-1-int64(i))%EntriesMax]
	}
	return latest
}

// Len returns the number of entries.
func (l *Log) Len() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.len()
}

// len is Len with mu held.
func (l *Log) len() int64 { return min(l.next-l.first, EntriesMax) }

// Reset removes all entries. IDs go on.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.ring[:])
	l.first = l.next
}
