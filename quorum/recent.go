package quorum

import "hash/maphash"

// recent remembers which entry took which hold on one lane, for the last few milliseconds of the master's clock: time
// alone does not tell two keys apart that were set in the same millisecond. It belongs to the lane's loop.
type recent struct {
	young, old generation
	turned     int64 // when old was young, ms on the master's clock
}

// A generation is a hash table whose parts are used again: every lock costs one insert on every master, and a map
// would be half as fast.
type generation struct {
	chains []int32 // by the hash of a hold: 1 + the index of its latest taking, 0 if there is none
	all    []taking
}

// A taking is one key that an entry set.
type taking struct {
	hold
	entry *entry
	tag   uint32 // more of the hash than its chain
	older int32  // as in chains
}

const (
	// recentFor is how long an entry is remembered at least, ms.
	recentFor = 5
	// recentChains is about how many keys a fast master sets in that time.
	recentChains = 1024
)

// seed keeps clients from choosing names that meet in one chain.
var seed = maphash.MakeSeed()

// turn forgets what is older than two generations.
func (r *recent) turn(now int64) {
	if now >= r.turned && now < r.turned+recentFor {
		return
	}
	r.young, r.old = r.old, r.young
	r.young.forget()
	r.turned = now
}

// took notes that en set the key of h where none was. So the key of any entry before it is gone, and is not to be
// undone.
func (r *recent) took(h hold, en *entry) {
	hash := maphash.Comparable(seed, h)
	if last := r.lastOf(hash, h); last != nil && last != en {
		last.pass()
	}
	r.young.add(hash, h, en)
}

// last returns the latest entry that took h, if that was recently.
func (r *recent) last(h hold) *entry { return r.lastOf(maphash.Comparable(seed, h), h) }

func (r *recent) lastOf(hash uint64, h hold) *entry {
	if en := r.young.last(hash, h); en != nil {
		return en
	}
	return r.old.last(hash, h)
}

func (g *generation) add(hash uint64, h hold, en *entry) {
	if g.chains == nil {
		g.chains = make([]int32, recentChains)
	}
	chain := &g.chains[hash%recentChains]
	g.all = append(g.all, taking{h, en, uint32(hash >> 32), *chain})
	*chain = int32(len(g.all))
}

func (g *generation) last(hash uint64, h hold) *entry {
	if len(g.all) == 0 {
		return nil
	}
	for i := g.chains[hash%recentChains]; i > 0; {
		t := &g.all[i-1]
		if t.tag == uint32(hash>>32) && t.hold == h {
			return t.entry
		}
		i = t.older
	}
	return nil
}

// forget empties the generation. After a burst it gives the memory back.
func (g *generation) forget() {
	clear(g.chains)
	clear(g.all)
	g.all = g.all[:0]
	if cap(g.all) > 4*recentChains {
		g.all = nil
	}
}

// pass says that no key of this entry is there, or that it cannot be told from another's: it is not to be undone.
func (en *entry) pass() {
	en.round.mu.Lock()
	en.passed = true
	en.round.mu.Unlock()
}

func (en *entry) hasPassed() bool {
	en.round.mu.Lock()
	defer en.round.mu.Unlock()
	return en.passed
}
