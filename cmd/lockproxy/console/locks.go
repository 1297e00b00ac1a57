package console

import (
	"context"
	"errors"
	"sync"
	"time"

	"lockproxy/quorum"
)

// Bounds of one page's questions to the masters.
const (
	locksShown  = 100
	queuesShown = 20
	patternMax  = 512
	patience    = 2 * time.Second // for all questions of one page
	fresh       = time.Second     // how long an answer is shown again for the same question
)

// A listing finds locks for the page. A search looks through the names of masters, so one search is under way at a time, however many
// browsers show the page. For a second, the same question gets the same answer without a search.
type listing struct {
	engine Engine
	turn   sync.Mutex // held by the goroutine that searches; guards the fields below
	db     int
	match  string
	at     time.Time
	found  quorum.FoundLocks
}

var errBusy = errors.New("the masters did not answer in time; the page asks again")

// find returns the locks whose names the pattern matches; "" matches all.
func (l *listing) find(ctx context.Context, db int, match string) (quorum.FoundLocks, error) {
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.db == db && l.match == match && time.Since(l.at) < fresh {
		return l.found, l.found.Err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := await(ctx, func(done func(quorum.FoundLocks)) {
		l.engine.Locks(quorum.LocksRequest{DB: db, Pattern: match, Matches: anyName, Most: locksShown, Within: patience / 2}, done)
	})
	if err != nil {
		return found, err
	}
	l.db, l.match, l.at, l.found = db, match, time.Now(), found
	return found, found.Err
}

func anyName(string) bool { return true }

// await waits for an answer of the engine, which comes once.
func await[T any](ctx context.Context, ask func(done func(T))) (T, error) {
	c := make(chan T, 1)
	ask(func(answer T) { c <- answer })
	select {
	case answer := <-c:
		return answer, nil
	case <-ctx.Done():
		var none T
		return none, errBusy
	}
}
