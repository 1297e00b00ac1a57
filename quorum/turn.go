package quorum

import "sync"

// turns lets the Execs of this engine on one key run one after the other, in the order in which they came. An Exec reads, then
// compares: of two at a time, one would have to begin again. With turns, only other proxies and commands of one round can make
// an Exec begin again.
type turns struct {
	mu    sync.Mutex
	taken map[Key][]func() // those that wait for the key
}

// take calls f when this caller has the turn on all keys. They are taken one by one, in the order given: it must be ascending,
// for two callers in different orders would wait for each other.
func (t *turns) take(db int, names []string, f func()) {
	for i, name := range names {
		key := Key{db, name}
		t.mu.Lock()
		queue, busy := t.taken[key]
		if busy {
			t.taken[key] = append(queue, func() { t.take(db, names[i+1:], f) })
			t.mu.Unlock()
			return
		}
		if t.taken == nil {
			t.taken = make(map[Key][]func())
		}
		t.taken[key] = nil
		t.mu.Unlock()
	}
	f()
}

// give ends the turn on all keys, and begins the next ones.
func (t *turns) give(db int, names []string) {
	var next []func()
	t.mu.Lock()
	for _, name := range names {
		key := Key{db, name}
		queue := t.taken[key]
		if len(queue) == 0 {
			delete(t.taken, key)
			continue
		}
		next = append(next, queue[0])
		t.taken[key] = queue[1:]
	}
	t.mu.Unlock()
	for _, f := range next {
		f()
	}
}

// pending counts the keys that somebody has the turn on.
func (t *turns) pending() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.taken)
}
