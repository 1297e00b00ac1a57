package resp

// The writer and the relay of the upstream's replies share the client's side of the connection: one of them writes at a time. The relay
// keeps its turn until a reply is whole.

// takeTurn waits until the relay may write the replies of the slot or, if sl is nil, a message. No message is written before the
// client is told of its subscription. mu is held.
func (r *replies) takeTurn(sl *slot) error {
	for r.batch != nil || sl != nil && r.head != sl || sl == nil && r.untold != nil {
		if r.gone || r.written {
			return errGone
		}
		r.turn.Wait()
	}
	if r.gone || r.written {
		return errGone
	}
	r.relaying, r.relayedBy = true, sl
	return nil
}

// giveTurn lets the writer write again. mu is held.
func (r *replies) giveTurn() {
	r.relaying, r.relayedBy = false, nil
	r.tellReader()
	if r.head != nil && r.head.left == 0 || r.closing.Load() {
		r.ready.Signal()
	}
}

// popRelayed takes a slot from the queue whose replies are all written. mu is held.
func (r *replies) popRelayed(sl *slot) {
	r.head = sl.next
	if r.head == nil {
		r.tail = nil
	}
	r.owed--
	r.freeReader(sl)
	r.backlog.remove(sl)
	r.backlog.weigh(0)
	sl.recycle()
	r.unthrottle()
}
