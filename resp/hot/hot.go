// Package hot finds the keys that clients contend for, in fixed memory.
//
// A Sketch takes weights of keys, and tells the keys with the largest sums of the last minutes. The sketch is of the kind "space saving"
// (Metwally, Agrawal, El Abbadi, 2005): it counts keysMax keys, and a further key takes the place of the key with the least sum.
package hot

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"lockproxy/quorum"
)

const (
	keysMax  = 64
	nameMax  = 256         // bytes; longer names are cut, and names that begin alike count as one key
	halfLife = time.Minute // all sums halve so often
	least    = 0.01        // a smaller sum is forgotten
)

// A Sketch sums weights by key. The zero Sketch is empty. Methods may be called on any goroutine.
type Sketch struct {
	mu     sync.Mutex // guards the following fields
	sums   []sum
	at     map[quorum.Key]int // the place of a key's sum
	halved time.Time
}

// A sum is the weight of one key since the sketch counts the key.
type sum struct {
	key    quorum.Key
	weight float64
	error  float64 // the part of weight that may belong to the keys which had the place before
}

// A Key is one of the hottest keys.
type Key struct {
	quorum.Key
	PerMinute float64 // at least so much weight a minute, lately
}

// Add adds a weight to the key. Where another goroutine uses the sketch at this moment, the weight is dropped: no caller waits.
func (s *Sketch) Add(key quorum.Key, weight float64, now time.Time) {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	s.age(now)
	key.Name = key.Name[:min(len(key.Name), nameMax)]
	i, counted := s.at[key]
	if !counted {
		key.Name = strings.Clone(key.Name) // the name is a part of the whole command
		i = s.place(key)
	}
	s.sums[i].weight += weight
}

// place returns the place of a further key. If all places are taken, the key gets the place of the least sum, which becomes the key's error.
func (s *Sketch) place(key quorum.Key) int {
	if s.at == nil {
		s.at = make(map[quorum.Key]int, keysMax)
	}
	i := len(s.sums)
	if i < keysMax {
		s.sums = append(s.sums, sum{})
	} else {
		i = 0
		for j := range s.sums {
			if s.sums[j].weight < s.sums[i].weight {
				i = j
			}
		}
		delete(s.at, s.sums[i].key)
	}
	s.at[key] = i
	s.sums[i] = sum{key, s.sums[i].weight, s.sums[i].weight}
	return i
}

// age halves the sums once for each half-life that is over.
func (s *Sketch) age(now time.Time) {
	if s.halved.IsZero() {
		s.halved = now
	}
	for ; now.Sub(s.halved) >= halfLife; s.halved = s.halved.Add(halfLife) {
		if len(s.sums) == 0 {
			s.halved = now
			return
		}
		for i := range s.sums {
			s.sums[i].weight, s.sums[i].error = s.sums[i].weight/2, s.sums[i].error/2
		}
		s.sums = slices.DeleteFunc(s.sums, func(of sum) bool { return of.weight < least })
		clear(s.at)
		for i := range s.sums {
			s.at[s.sums[i].key] = i
		}
	}
}

// Top returns the n hottest keys at most, the hottest first.
func (s *Sketch) Top(n int, now time.Time) []Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.age(now)
	// A steady weight of 1 a minute sums up to 1 when the sums were just halved, and to 2 before they are halved again.
	minutes := 1 + now.Sub(s.halved).Minutes()
	var all []Key
	for i := range s.sums {
		if rate := (s.sums[i].weight - s.sums[i].error) / minutes; rate >= least {
			all = append(all, Key{s.sums[i].key, rate})
		}
	}
	slices.SortFunc(all, func(a, b Key) int {
		return cmp.Or(cmp.Compare(b.PerMinute, a.PerMinute), cmp.Compare(a.DB, b.DB), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(n, len(all))]
}
