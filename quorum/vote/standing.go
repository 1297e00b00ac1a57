package vote

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"lockproxy/quorum/rules"
)

// A Queue is a fair lock's queue of waiting clients: KEYS[2] is a list of their fields in the hash KEYS[1], in the order of their
// turns, and KEYS[3] a sorted set of the fields by when their places time out.
type Queue struct {
	Wake string // the prefix of the channel on which a client hears of its turn; the client's field follows
}

// A standing is the standing of one client, summed over the queues of all masters.
type standing struct {
	who    string
	holds  int // on how many masters the client has the lock
	firsts int // on how many masters the client is first, or has the lock
	places int // on how many masters the client has a place, or the lock
	before int // how many others are before the client
}

// FirstOf chooses the client that is to be first, given the replies to luaQueue: nobody, if a quorum say that one client has the
// lock, or no client waits anywhere. A client that is first on most masters goes before others, then a client with most places: a
// client with few places may have given up. everywhere says that each master on which somebody waits has that client first already. A
// quorum of these masters is not enough: some may be in quarantine, and their grants do not count.
//
// Where no such client has a quorum of places, the caller is to be first if the caller has a quorum of places and grants: a master
// that granted the lock could give no place. Else a client that has left could keep the lock from all, for as long as its place
// lasts, where a single master that missed the leaving makes the quorum with masters whose queues are empty.
func FirstOf(replies []any, caller string, grants int) (who string, everywhere bool) {
	all, waiting := make(map[string]*standing), 0
	for _, reply := range replies {
		list, ok := reply.([]any)
		if !ok || len(list) != 3 {
			continue
		}
		queue, _ := list[1].([]any)
		holder, _ := list[0].(string)
		if holder != "" {
			queue = []any{holder}
		}
		if len(queue) > 0 {
			waiting++
		}
		for i, x := range queue {
			name, _ := x.(string)
			s := all[name]
			if s == nil {
				s = &standing{who: name}
				all[name] = s
			}
			if s.places, s.before = s.places+1, s.before+i; i == 0 {
				s.firsts++
			}
			if holder != "" {
				s.holds++
			}
		}
	}
	if waiting == 0 {
		return "", true
	}
	best := slices.MinFunc(slices.Collect(maps.Values(all)), func(a, b *standing) int {
		return cmp.Or(b.firsts-a.firsts, b.places-a.places, a.before-b.before, strings.Compare(a.who, b.who))
	})
	quorum, asks := rules.Quorum(len(replies)), all[caller]
	switch {
	case best.holds >= quorum:
		return "", true
	case best.places < quorum && asks != nil && asks.places+grants >= quorum:
		return caller, false
	}
	return best.who, best.firsts == waiting
}

// Untold is for how long a quorum of masters keeps a lock if too few have told.
const Untold = -1

// FreeIn returns in how many ms a quorum of masters may be free of the lock, given the replies to luaQueue: 0 if they are; or untold.
func FreeIn(replies []any) int64 {
	var held []int64
	for _, reply := range replies {
		if list, ok := reply.([]any); ok && len(list) == 3 {
			ms, _ := list[2].(int64)
			held = append(held, ms)
		}
	}
	slices.Sort(held)
	if quorum := rules.Quorum(len(replies)); len(held) >= quorum {
		return held[quorum-1]
	}
	return Untold
}
