package quorum

import "lockproxy/quorum/vouch"

// A master that keeps less on disk than it did comes to a new epoch, without a quarantine: it has forgotten nothing. But its
// file may be an old one from then on, in which its mark has the epoch before. So the other masters are told the new one
// (rule 7b), as soon as they can be reached: whoever meets the master again on that file has heard of it from them.
//
// Nor can others be told of a quarantine while it lasts where they are away, so that it ends by itself. They are told then (rule 7a):
// the address may lead back to the server that was there before.

// tellOthers has the other masters told the epochs, but for those that have been, by slot. It is called when this one has come to a
// new one.
func (l *lane) tellOthers(told map[int]vouch.Testimony) {
	for _, other := range l.engine.lanesOf(l.db) {
		if _, knows := told[other.master.slot]; other != l && !knows {
			other.behind.Store(true)
			other.tell()
		}
	}
}

// tell tells the master the epochs of all. Until it has them all it is told again, with each heartbeat.
func (l *lane) tell() {
	l.ask(luaTell.whole([]string{rosterKey}, l.roster.args()...), l.wasTold)
}

func (l *lane) wasTold(any) {
	l.behind.Store(false)                    // before a look at the epochs: a later one may come meanwhile
	if !l.roster.isIn(l.link.marks.roster) { // which was read after this
		l.behind.Store(true)
	}
}

// A proxy that has just started, or comes to a new database, may meet a master on an older file before any other master can tell it
// of the later epoch. Until it has heard the others it leaves the run id in the mark as it is: so the mark goes on showing, to
// whoever hears them first, that the server has started on a file.

// heardOthers says that so many other masters are connected that one of them was told of any later epoch (rule 7b).
func (l *lane) heardOthers() bool {
	n := 0
	for _, other := range l.engine.lanesOf(l.db) {
		if other != l && other.isUp() {
			n++
		}
	}
	return n >= Quorum(len(l.engine.masters))-1
}

// isUp says that the master is connected, and what it knows of epochs is known.
func (l *lane) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current != nil && l.down == ""
}
