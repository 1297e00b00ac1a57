package quorum

import "slices"

// Two rounds on one key must be in the same order in every lane, or each might win on some masters where the other lost (rule 2).
// So a round is pushed to its lanes with the mutexes of its keys held. Each of them, Engine.order, is for a stripe of all
// keys.

// stripes appends the stripes of keys, ascending, so that two rounds cannot each wait for the other.
func (e *Engine) stripes(to []uint32, names []string) []uint32 {
	for _, name := range names {
		to = append(to, hash(name)%uint32(len(e.order)))
	}
	slices.Sort(to)
	return slices.Compact(to)
}

func (e *Engine) lockOrder(stripes []uint32) {
	for _, s := range stripes {
		e.order[s].Lock()
	}
}

func (e *Engine) unlockOrder(stripes []uint32) {
	for _, s := range stripes {
		e.order[s].Unlock()
	}
}
