package resp

import (
	"errors"
	"sync"
	"sync/atomic"

	"lockproxy/resp/upstream"
)

// trunks are the connections to the upstream that clients share: one for each database and protocol, made at first need
// and kept until it breaks.
type trunks struct {
	mu  sync.Mutex // guards all
	all map[trunkKey]*trunkPlace
}

type trunkKey struct {
	db    int
	resp3 bool
}

// A trunkPlace has a trunk, nil at first. Who finds it dead puts another one there, with mu held.
type trunkPlace struct {
	mu    sync.Mutex
	trunk atomic.Pointer[upstream.Trunk]
}

// trunksMax bounds databases and protocols. Clients of any further have links.
const trunksMax = 32

var errManyTrunks = errors.New("too many connections are shared")

// trunk returns the trunk, which may end at any time. It connects if need be.
func (s *Server) trunk(key trunkKey) (*upstream.Trunk, error) {
	p := s.trunks.place(key)
	if p == nil {
		return nil, errManyTrunks
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.trunk.Load(); t != nil && t.Fit() {
		return t, nil
	}
	g := upstream.Greeting{RESP3: key.resp3, DB: key.db, Name: "lockproxy-shared"}
	t, err := s.cfg.Upstream.NewTrunk(g, s.cfg.Limits.Write, s.log)
	if err != nil {
		return nil, err
	}
	p.trunk.Store(t)
	return t, nil
}

func (t *trunks) place(key trunkKey) *trunkPlace {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.all[key]
	if p == nil && len(t.all) < trunksMax {
		if t.all == nil {
			t.all = map[trunkKey]*trunkPlace{}
		}
		p = &trunkPlace{}
		t.all[key] = p
	}
	return p
}

// count returns how many there are.
func (t *trunks) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, p := range t.all {
		if trunk := p.trunk.Load(); trunk != nil && !trunk.Dead() {
			n++
		}
	}
	return n
}
