package gate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lockproxy/quorum/rules"
)

// A model of the first waiters of several proxies, each with its forecast, and of masters that run what each sender sent in
// order, whenever they come to it. Who has the lock gives it back to all masters.
type model struct {
	t     *rapid.T
	now   time.Time
	hasty bool // a try ends as soon as it is decided, not when all have answered
	q     int
	keys  []modelKey
	heads []*modelHead
	works map[string][]func() // by sender and master
	bells map[string]int      // by master and head: on their way
	cuts  int                 // so many links between heads and masters may break yet
	mends int                 // so many of these are made anew
	wary  bool                // one has broken
}

type modelKey struct {
	holder  string
	expires time.Time
}

type modelHead struct {
	forecast
	name  string
	heard uint64          // the masters whose bells it hears
	votes []time.Duration // by master, as Acquired.FreeIn, while it tries; else nil
	asked uint64          // heard, when the try began
	tries int             // in vain
	done  bool

	handing  bool     // the try goes with the holder's release
	next     forecast // of who waits behind it, if the try gets the lock
	rang     uint64   // the release's bells, while handing
	unheeded bool     // the handover failed
}

const ttl = time.Minute

func (m *model) isFree(master int) bool { return !m.now.Before(m.keys[master].expires) }

// freeAt returns when a quorum will be free, if nothing else happens.
func (m *model) freeAt() time.Time {
	var all []time.Time
	for _, k := range m.keys {
		all = append(all, k.expires)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all[m.q-1]
}

func (m *model) send(sender string, master int, do func()) {
	name := fmt.Sprint("work ", sender, " ", master)
	m.works[name] = append(m.works[name], do)
}

// del has a master delete the key, if it is the sender's, and ring.
func (m *model) del(sender string, master int) {
	m.send(sender, master, func() {
		if k := &m.keys[master]; k.holder == sender && !m.isFree(master) {
			k.expires = m.now
			for i := range m.heads {
				m.bells[fmt.Sprint("bell ", i, " ", master)]++
			}
		}
	})
}

func (m *model) try(h *modelHead) {
	h.heed(m.q)
	h.asked = h.heard
	h.votes = slices.Repeat([]time.Duration{-1}, len(m.keys))
	for i := range m.keys {
		votes := h.votes
		m.send(h.name, i, func() {
			if k := &m.keys[i]; m.isFree(i) {
				*k = modelKey{h.name, m.now.Add(ttl)}
				votes[i] = 0
			} else {
				votes[i] = k.expires.Sub(m.now)
			}
		})
	}
}

func tally(votes []time.Duration) (granted, pending int) {
	for _, v := range votes {
		switch {
		case v == 0:
			granted++
		case v < 0:
			pending++
		}
	}
	return granted, pending
}

// decided says that a try can end. Masters that have not answered by then have told nothing.
func (m *model) decided(votes []time.Duration) bool {
	granted, pending := tally(votes)
	return granted >= m.q || granted+pending < m.q && (m.hasty || pending == 0)
}

// handOver has the holder give back what it has on some masters, and h try behind that.
func (m *model) handOver(h *modelHead, on []int) {
	h.handing, h.next = true, h.renewed(m.q)
	h.votes = slices.Repeat([]time.Duration{-1}, len(m.keys))
	votes := h.votes
	for i := range m.keys {
		m.send(h.name, i, func() {
			k := &m.keys[i]
			if slices.Contains(on, i) && k.holder == "holder" && !m.isFree(i) {
				k.expires = m.now
				for n, other := range m.heads {
					if other == h {
						m.bells[fmt.Sprint("own ", n, " ", i)]++
					} else {
						m.bells[fmt.Sprint("bell ", n, " ", i)]++
					}
				}
			}
			if m.isFree(i) {
				*k = modelKey{h.name, m.now.Add(ttl)}
				votes[i] = 0
			} else {
				votes[i] = k.expires.Sub(m.now)
			}
		})
	}
}

// own is a bell of the handover's release.
func (h *modelHead) own(master int, now time.Time) {
	switch {
	case h.handing:
		h.rang |= 1 << master
	case h.unheeded:
		h.ring(master, now)
	}
}

// over ends a try.
func (m *model) over(h *modelHead) {
	granted, _ := tally(h.votes)
	h.done = granted >= m.q
	switch {
	case h.done && h.handing: // the next waiter is the head, and the lock is given back at once
		h.done, h.handing, h.forecast = false, false, h.next
		h.won(m.now.Add(ttl))
		for i := range m.keys {
			m.del(h.name, i)
		}
		h.votes = nil
		return
	case h.done:
	case h.handing:
		h.handing, h.unheeded = false, true
		for i := range m.keys {
			if h.rang>>i&1 == 1 {
				h.ring(i, m.now)
			}
		}
	default:
		h.tries++
		h.lost(m.now, slices.Clone(h.votes), h.asked, 0, min(splitWait<<min(h.tries, 20), splitWaitMax), len(m.keys))
	}
	for i, vote := range h.votes {
		if h.done || vote <= 0 {
			m.del(h.name, i)
		}
	}
	h.votes = nil
}

// settle plays until nothing happens any more, and returns when that changes; false if nobody waits any more.
func (m *model) settle() (next time.Time, waiting bool) {
	for range 20000 {
		events := m.events()
		if len(events) > 0 {
			m.happen(rapid.SampledFrom(events).Draw(m.t, "event"))
			continue
		}
		for _, h := range m.heads {
			if at := h.at(m.q); !h.done && (!waiting || at.Before(next)) {
				next, waiting = at, true
			}
		}
		late := next.Sub(m.now)
		if free := m.freeAt(); free.After(m.now) {
			late = next.Sub(free)
		}
		asleep := time.Duration(0) // no longer than this, where masters have told nothing, or are not heard
		if m.hasty || m.wary {
			asleep = splitWaitMax
		}
		if late > asleep {
			m.t.Fatalf("all sleep on until %v: %+v", next, m.keys)
		}
		return next, waiting
	}
	m.t.Fatal("there is no end to it")
	return next, waiting
}

func (m *model) events() (list []string) {
	trying := slices.ContainsFunc(m.heads, func(h *modelHead) bool { return h.votes != nil })
	for i, h := range m.heads {
		switch {
		case h.done:
		case h.votes != nil:
			if m.decided(h.votes) {
				list = append(list, fmt.Sprint("over ", i, " 0"))
			}
		case !h.at(m.q).After(m.now) && (h.tries < 5 || !trying): // in the end, pauses part them
			list = append(list, fmt.Sprint("try ", i, " 0"))
		}
	}
	for i, h := range m.heads {
		for master := range m.keys {
			switch heard := h.heard>>master&1 == 1; {
			case !heard && m.mends > 0:
				list = append(list, fmt.Sprint("mend ", i, " ", master))
			case heard && m.cuts > 0:
				list = append(list, fmt.Sprint("cut ", i, " ", master))
			}
		}
	}
	for name, works := range m.works {
		if len(works) > 0 {
			list = append(list, name)
		}
	}
	for name, n := range m.bells {
		if n > 0 {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

func (m *model) happen(event string) {
	var what, who string
	var master int
	if _, err := fmt.Sscan(event, &what, &who, &master); err != nil {
		m.t.Fatal(err)
	}
	head := func() *modelHead { return m.heads[who[0]-'0'] }
	switch what {
	case "work":
		do := m.works[event][0]
		m.works[event] = m.works[event][1:]
		do()
	case "bell":
		m.bells[event]--
		if h := head(); h.heard>>master&1 == 1 {
			h.ring(master, m.now)
		}
	case "own":
		m.bells[event]--
		if h := head(); h.heard>>master&1 == 1 {
			h.own(master, m.now)
		}
	case "cut":
		m.cuts--
		m.wary = true
		head().heard &^= 1 << master
		head().ring(master, m.now)
	case "mend":
		m.mends--
		head().heard |= 1 << master
	case "try":
		m.try(head())
	case "over":
		m.over(head())
	}
}

func newModel(t *rapid.T) *model {
	n := rapid.IntRange(3, 5).Draw(t, "masters")
	m := &model{t: t, now: start, q: rules.Quorum(n), keys: make([]modelKey, n), works: map[string][]func(){}, bells: map[string]int{}}
	m.hasty = rapid.Bool().Draw(t, "hasty")
	for i := range rapid.IntRange(1, 3).Draw(t, "proxies") {
		m.heads = append(m.heads, &modelHead{name: fmt.Sprint(i), heard: all})
	}
	return m
}

// hold gives the lock to somebody on a quorum, and returns these masters. On others somebody has left something, or nothing.
func (m *model) hold() []int {
	all := rapid.Permutation(numbers(len(m.keys))).Draw(m.t, "masters")
	on := all[:rapid.IntRange(m.q, len(all)).Draw(m.t, "how many hold it")]
	for _, i := range all {
		left := time.Duration(rapid.IntRange(0, 90).Draw(m.t, "what is left")) * time.Second
		m.keys[i] = modelKey{"nobody", m.now.Add(left)}
	}
	for _, i := range on {
		m.keys[i] = modelKey{"holder", m.now.Add(ttl)}
	}
	return on
}

// The holder gives back what it has on some masters, or on all. Whoever waits gets the lock then, or when the rest expires, even
// if it does not hear some masters.
func TestNobodySleepsOnWhileAQuorumIsFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		m.cuts = rapid.IntRange(0, len(m.keys)-m.q).Draw(t, "links that break")
		m.mends = rapid.IntRange(0, m.cuts).Draw(t, "that are made anew")
		on := m.hold()
		for _, i := range on[rapid.IntRange(0, len(on)).Draw(t, "how many keep it"):] {
			m.del("holder", i)
		}
		for {
			next, waiting := m.settle()
			if !waiting {
				return
			}
			m.now = next
		}
	})
}

// The lock is handed over to a first waiter, while the other proxies' heads sleep, or try. Also if the release reaches some masters
// only, and the attempt fails, whoever waits gets the lock when a quorum is free.
func TestNobodySleepsOnAfterAHandover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		m.cuts = rapid.IntRange(0, len(m.keys)-m.q).Draw(t, "links that break")
		on := m.hold()
		for _, i := range on {
			m.keys[i].expires = m.now.Add(ttl)
		}
		for range rapid.IntRange(0, 40).Draw(t, "events before") {
			if events := m.events(); len(events) > 0 {
				m.happen(rapid.SampledFrom(events).Draw(t, "event"))
			}
		}
		if h := m.heads[0]; h.votes == nil && !h.done {
			m.handOver(h, on[rapid.IntRange(0, len(on)).Draw(t, "how many keep it"):])
		}
		for {
			next, waiting := m.settle()
			if !waiting {
				return
			}
			m.now = next
		}
	})
}

// Where the holder's key is not, whoever tries is granted, and what is undone there rings for the others. They hear it, and
// sleep. Only where masters had not answered when it was decided, they look once more, or twice.
func TestNobodyPollsWhileAQuorumIsHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		m.hold()
		for i := range m.keys {
			if !m.isFree(i) {
				m.keys[i].expires = m.now.Add(ttl)
			}
		}
		most := 1
		if m.hasty {
			most = 10
		}
		for next, _ := m.settle(); next.Before(start.Add(ttl)); next, _ = m.settle() {
			m.now = next
		}
		for _, h := range m.heads {
			if h.tries > most {
				t.Fatalf("%d tries", h.tries)
			}
		}
	})
}
