package quorum

import (
	"crypto/sha1" //nolint:gosec // Redis can compute SHA-1, which tells values apart that expire in one millisecond
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// A history is the values that a quorum is known to have, or to have had, under the keys that Execs have changed lately, and when
// each master's copy expires. Repairs use the history.
type history struct {
	mu      sync.Mutex
	learned uint64 // how many versions so far
	keys    *simplelru.LRU[Key, versions]
}

// versions are the known versions of one key: by master, the latest first.
type versions [][historyVersions]version

// A version is a master's value, told apart from others by its digest and the millisecond of its expiry.
type version struct {
	digest [sha1.Size]byte
	ends   int64  // when the value expires, ms of the master's clock; 0 if there is no version
	nr     uint64 // history.learned when this was learnt
}

const (
	historyKeys     = 10_000
	historyNameMax  = 512 // longer keys are not remembered
	historyVersions = 2   // of a key on a master: the value told last, and the value that may have been set before the connection broke
)

func (h *history) init() { h.keys, _ = simplelru.NewLRU[Key, versions](historyKeys, nil) }

// now returns the nr of the latest note.
func (h *history) now() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.learned
}

// of returns the versions that a master may still have, as far as they were known when nr was the latest.
func (h *history) of(key Key, master int, nr uint64) []version {
	h.mu.Lock()
	defer h.mu.Unlock()
	var known []version
	if all, ok := h.keys.Get(key); ok {
		for _, v := range all[master] {
			if v.ends != 0 && v.nr <= nr {
				known = append(known, v)
			}
		}
	}
	return known
}

// learn notes that one master has, or may have, a value of a quorum. masters is the number of masters.
func (h *history) learn(key Key, master, masters int, digest [sha1.Size]byte, ends int64) {
	if ends <= 0 || len(key.Name) > historyNameMax {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	all, ok := h.keys.Get(key)
	if !ok {
		all = make(versions, masters)
		key.Name = strings.Clone(key.Name)
		h.keys.Add(key, all)
	}
	known := &all[master]
	for _, v := range known {
		if v.digest == digest && v.ends == ends {
			return
		}
	}
	h.learned++
	copy(known[1:], known[:])
	known[0] = version{digest, ends, h.learned}
}

func digestOf(value string) [sha1.Size]byte { return sha1.Sum([]byte(value)) } //nolint:gosec // see the import
