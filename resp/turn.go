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
	r.waker.tell()
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
	r.waker.free(sl)
	r.backlog.remove(sl)
	r.backlog.weigh(0)
	sl.recycle()
	r.unthrottle()
}

// awaitTurn is takeTurn without mu held. It returns how many replies of the slot are still to come.
func (r *replies) awaitTurn(sl *slot) (left int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.takeTurn(sl); err != nil || sl == nil {
		return 0, err
	}
	return sl.left, nil
}

// wrote notes that the relay has written n replies of the slot; if sl is nil, a part of a message. If whole, the turn is over. It says
// whether all replies of the slot are written, and fails if the client is gone.
func (r *replies) wrote(sl *slot, n int, whole bool) (done bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone || r.written { // the queue has been, or will be, taken out of the counts as a whole
		return false, errGone
	}
	if sl != nil {
		if sl.left -= n; sl.left == 0 {
			r.popRelayed(sl)
			done = true
		}
	}
	if whole {
		r.giveTurn()
	}
	return done, nil
}

// joins has the upstream owe one more reply of the slot, if the slot is the last in the queue, and as mute. uplink.mu is held, so that the
// slot is not popped meanwhile.
func (r *replies) joins(last *slot, mute bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last == nil || last != r.tail || last.mute != mute || r.closing.Load() {
		return false
	}
	last.left++
	return true
}

// pushRelayed is push without mu held.
func (r *replies) pushRelayed(sl *slot) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.push(sl)
}

// leftOf returns how many replies of the slot are still to come.
func (r *replies) leftOf(sl *slot) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sl.left
}

// isOwedThere says whether the next reply is to come from the upstream.
func (r *replies) isOwedThere() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head != nil && r.head.owedThere()
}

// seenByRelay says whether the client is gone, whether it may send more, and whether the relay writes to it.
func (r *replies) seenByRelay() (gone, hearing, relaying bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone, r.waker.sentAll == nil, r.relaying
}
