package upstream

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// TrunksMax bounds how many Trunks are fit for use: one for each database and protocol.
const TrunksMax = 32

// ErrManyTrunks says that there are TrunksMax already.
var ErrManyTrunks = errors.New("too many connections are shared")

// Trunk returns the Trunk that began with this greeting, and connects if there is none. The Trunk may end at any time; a write that
// takes longer than writeMax ends it.
func (u *Redis) Trunk(g Greeting, writeMax time.Duration, log *slog.Logger) (*Trunk, error) {
	if t, _ := u.fitTrunk(g); t != nil {
		return t, nil
	}
	u.connecting.Lock()
	defer u.connecting.Unlock()
	t, n := u.fitTrunk(g)
	switch {
	case t != nil:
		return t, nil
	case n >= TrunksMax:
		return nil, ErrManyTrunks
	}
	return u.newTrunk(g, writeMax, log)
}

// fitTrunk returns the Trunk of this greeting, or nil and how many others there are.
func (u *Redis) fitTrunk(g Greeting) (fit *Trunk, others int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for t := range u.trunks {
		switch {
		case !t.Fit():
		case t.Greeting == g:
			return t, 0
		default:
			others++
		}
	}
	return nil, others
}

// Trunks returns how many there are.
func (u *Redis) Trunks() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := 0
	for t := range u.trunks {
		if !t.dead.Load() {
			n++
		}
	}
	return n
}

// CloseTrunks ends all Trunks. The caller sees to it that nobody makes another.
func (u *Redis) CloseTrunks() {
	u.mu.Lock()
	all := slices.Collect(maps.Keys(u.trunks))
	u.mu.Unlock()
	for _, t := range all {
		t.Close()
	}
}
