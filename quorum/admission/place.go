package admission

import "container/list"

// A Place is one client's place in line. The client begins one operation after the other, and calls Admit before each.
// Only one goroutine may call the methods.
type Place struct {
	control *Control
	wake    func()
	lined   bool // the client was in line since the latest Yield
	refused bool // the latest Admit since then said no

	inLine  *list.Element // nil: not in line; control.mu guards inLine and the fields below
	keys    int64         // of the waiting operation
	granted int64         // how many rounds may begin without waiting again
}

// Place returns a place that is not in line. wake is called, without any lock of the Control, when a waiting client may
// go on. wake must not block. The client then calls Admit again.
func (c *Control) Place(wake func()) *Place { return &Place{control: c, wake: wake} }

// Admit says whether an operation on keys keys may begin now. If not, p is in line, and wake is called once when the
// client's turn has come.
func (p *Place) Admit(keys int) bool {
	c := p.control
	p.refused = c.Waiting() > 0 || c.room() <= 0
	if !p.refused {
		return true
	}
	p.lined = true
	p.enter(int64(keys))
	c.look() // a round that ended before p was in line has woken nobody
	p.enter(int64(keys))
	return !p.refused
}

// enter takes keys from p's granted rounds, or gives p a place in line.
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
		c.granted.Add(-p.granted) // too few for the operation
		p.keys, p.granted, p.inLine = keys, 0, c.line.PushBack(p)
		c.waiting.Add(1)
	}
}

// Yield is called when the client begins no more operations for now. Other clients get the unused part of p's granted
// rounds. If the client has not called Admit since the Yield before, another command holds it up. Then p leaves the
// line, because p could not use its turn.
func (p *Place) Yield() {
	refused := p.refused
	p.refused = false
	if !p.lined || refused {
		return
	}
	p.lined = false
	p.giveBack()
}

// Leave takes p out of the line, and gives p's granted rounds to other clients. Leave is for a client that has gone, or
// waits for something else.
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
