package admission

import "container/list"

// A Place is one client's place in line. The client begins one operation after the other, and asks Admit before each. The methods
// are for one goroutine.
type Place struct {
	control *Control
	wake    func()
	lined   bool // it was in line since the latest Yield
	refused bool // the latest Admit since then said no

	inLine  *list.Element // nil: it is not; control.mu guards it and what follows
	keys    int64         // of the operation that it waits for
	granted int64         // how many rounds may begin without waiting again
}

// Place returns a place that is not in line. wake is called when a client that waits may go on, without any lock of the Control,
// and must not block: the client then asks Admit again.
func (c *Control) Place(wake func()) *Place { return &Place{control: c, wake: wake} }

// Admit says whether an operation on so many keys may begin now. If not, p is in line, and wake is called, once, when it is its turn.
func (p *Place) Admit(keys int) bool {
	c := p.control
	p.refused = c.Waiting() > 0 || c.room() <= 0
	if !p.refused {
		return true
	}
	p.lined = true
	p.enter(int64(keys))
	c.look() // whatever ended before p was in line has woken nobody
	p.enter(int64(keys))
	return !p.refused
}

// enter takes so much of what p was granted, or its place in line.
func (p *Place) enter(keys int64) {
	c := p.control
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p.granted >= keys:
		p.granted -= keys
		c.granted.Add(-keys)
		p.refused = false
	case p.inLine == nil:
		c.granted.Add(-p.granted) // it does not suffice
		p.keys, p.granted, p.inLine = keys, 0, c.line.PushBack(p)
		c.waiting.Add(1)
	}
}

// Yield is called when the client begins no more operations for now: others get what p was granted and has not used. If the client
// has not asked since the Yield before, because something else holds it up, p leaves the line: else it might get its turn, and not
// use it.
func (p *Place) Yield() {
	refused := p.refused
	p.refused = false
	if !p.lined || refused {
		return
	}
	p.lined = false
	p.giveBack()
}

// Leave is for a client who is gone, or waits for something else: p is not in line any more, and others get what it was granted.
func (p *Place) Leave() {
	if p.lined {
		p.giveBack()
	}
}

func (p *Place) giveBack() {
	c := p.control
	c.mu.Lock()
	if p.inLine != nil {
		c.remove(p)
	}
	c.granted.Add(-p.granted)
	p.granted = 0
	c.mu.Unlock()
	c.look()
}
