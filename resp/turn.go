package resp

// The writer and the relay of the upstream's replies share the client's side of the connection: only one of the two writes at a time. The
// relay keeps its turn until a reply is whole.

// awaitTurn waits until the relay may write the replies of the slot or, if sl is nil, a message. No message is written before the client is
// told of the subscription. awaitTurn returns how many replies of the slot are still to come, and fails if the client is gone.
func (r *replies) awaitTurn(sl *slot) (left int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.gone && !r.written && (r.batch != nil || sl != nil && r.head != sl || sl == nil && r.untold != nil) {
		r.turn.Wait()
	}
	if r.gone || r.written {
		return 0, errGone
	}
	r.relaying, r.relayedBy = true, sl
	if sl != nil {
		left = sl.left
	}
	return left, nil
}

// wrote notes that the relay has written n replies of the slot; if sl is nil, a part of a message. If whole, the turn is over: the writer
// may write again. wrote says whether all replies of the slot are written, and fails if the client is gone.
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
		r.relaying, r.relayedBy = false, nil
		r.waker.tell()
		if r.head != nil && r.head.left == 0 || r.closing.Load() {
			r.ready.Signal()
		}
	}
	return done, nil
}

// popRelayed takes a slot with all replies written from the queue. mu is held.
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

// owe gives a command for the upstream its place: in the previous command's slot, if that slot is the last in the queue and as mute, or
// else in the fresh slot. owe returns the slot; nil if the connection is ending. uplink.mu is held, so that last is not popped meanwhile.
func (r *replies) owe(last, fresh *slot) *slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last != nil && last == r.tail && last.mute == fresh.mute && !r.closing.Load() {
		last.left++
		return last
	}
	if !r.push(fresh) {
		return nil
	}
	return fresh
}

// isOwedThere says whether the next reply is to come from the upstream.
func (r *replies) isOwedThere() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head != nil && r.head.owedThere()
}

// seenByRelay says whether the client is gone, whether the client may send more, and whether the relay is writing.
func (r *replies) seenByRelay() (gone, hearing, relaying bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone, r.waker.sentAll == nil, r.relaying
}
