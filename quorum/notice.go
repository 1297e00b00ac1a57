package quorum

import (
	"slices"
	"sync"
	"sync/atomic"

	"lockproxy/quorum/rules"
)

// A Notice tells whether a key was changed through this engine since the notice was asked for. WATCH needs notices where a change leaves
// value and expiry as before. The zero Notice tells of nothing.
type Notice struct {
	board   *notices
	key     Key
	changed atomic.Bool
}

// Changed says whether an operation that began since has changed the key, or may have. The answer is known with the operation's.
func (n *Notice) Changed() bool { return n.changed.Load() }

// End forgets the notice. Call End once nobody needs the notice.
func (n *Notice) End() {
	if n.board != nil {
		n.board.remove(n)
	}
}

// notices are the notices that have not ended.
type notices struct {
	n  atomic.Int64 // how many there are: most often none, and then a round asks no more
	mu sync.Mutex   // guards all below
	of map[Key][]*Notice
}

func (b *notices) make(key Key) *Notice {
	n := &Notice{board: b, key: key}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = make(map[Key][]*Notice)
	}
	b.of[n.key] = append(b.of[n.key], n)
	b.n.Add(1)
	return n
}

func (b *notices) remove(n *Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := slices.DeleteFunc(b.of[n.key], func(other *Notice) bool { return other == n })
	b.n.Add(int64(len(rest) - len(b.of[n.key])))
	if b.of[n.key] = rest; len(rest) == 0 {
		delete(b.of, n.key)
	}
}

// on returns the notices of these keys.
func (b *notices) on(db int, names []string) (all []*Notice) {
	if b.n.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		all = append(all, b.of[Key{DB: db, Name: name}]...)
	}
	return all
}

// tellNotices tells the notices of the round's keys of a round that has ended. It is called without mu.
func (r *round) tellNotices(d rules.Decision) {
	if d == rules.Lost {
		return
	}
	for _, n := range r.notices {
		//mutant: what a round leaves alone is changed
		if !r.operation.mayHaveChanged(d, n.key.Name) {
			continue
		}
		//mutant: what leaves value and expiry as they were is no change
		n.changed.Store(true)
	}
}
