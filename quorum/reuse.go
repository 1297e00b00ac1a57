package quorum

import (
	"hash/maphash"
	"sync/atomic"
)

// A reuse remembers which tokens were used on which resources, so that an attempt can be told whose token was used there
// before. From what is under a key on a master nobody can tell whose it is, then: another attempt's key with another TTL,
// or one that was extended, may look as if it had been set at any time.
//
// It remembers the latest of each of many places, one place for each hold, so it may forget after some ten thousand
// other attempts.
type reuse struct {
	seed   maphash.Seed
	places [1 << 15]atomic.Uint64
}

func newReuse() *reuse { return &reuse{seed: maphash.MakeSeed()} }

// use notes an attempt, and returns whether there was one with the same token before.
func (r *reuse) use(h hold) bool {
	sum := maphash.Comparable(r.seed, h) | 1 // never the zero of an empty place
	return r.places[sum>>1%uint64(len(r.places))].Swap(sum) == sum
}
