package quorum

import "slices"

// Two rounds on one key must be in the same order in every lane, or each might win on some masters where the other lost (rule 2).
// So a round is pushed to its lanes with the mutexes of its keys held. Each of them, Engine.order, is for a stripe of all
// keys.

// stripe returns which of the mutexes is that of name.
func (e *Engine) stripe(name string) int { return int(hash(name) % uint32(len(e.order))) }

// stripes returns the stripes of several keys, ascending, so that two rounds cannot each wait for the other; nil for
// one key.
func (e *Engine) stripes(first int, others []string) []int {
	if len(others) == 0 {
		return nil
	}
	all := []int{first}
	for _, name := range others {
		all = append(all, e.stripe(name))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (e *Engine) lockOrder(only int, stripes []int) {
	if stripes == nil {
		e.order[only].Lock()
	}
	for _, s := range stripes {
		e.order[s].Lock()
	}
}

func (e *Engine) unlockOrder(only int, stripes []int) {
	if stripes == nil {
		e.order[only].Unlock()
	}
	for _, s := range stripes {
		e.order[s].Unlock()
	}
}
