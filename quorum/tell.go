package quorum

import "lockproxy/quorum/vouch"

// A master's new epoch is told to the other masters, as soon as each can be reached, so that a proxy which meets the master with
// older data learns from them that the data is old. There are two cases that a survey does not cover:
//
//   - The master keeps less on disk than it did (rule 7b). It has forgotten nothing, and so gets a new epoch without a quarantine.
//     But from now on its file may be an old one, in which its mark has the epoch before.
//   - Other masters were away during its quarantine, and that ended by ttl_max (rule 7a). The address may still lead back to the
//     server that was there before.

// tellOthers has the other masters told the epochs, except those in told, by slot, which know. It is called when this master has
// come to a new epoch.
func (l *lane) tellOthers(told map[int]vouch.Testimony) {
	for _, other := range l.engine.lanesOf(l.db) {
		if _, knows := told[other.master.slot]; other != l && !knows {
			other.behind.Store(true)
			other.tellEpochs()
		}
	}
}

// tellEpochs tells the master the epochs of all. Until it has them all it is told again, with each heartbeat.
func (l *lane) tellEpochs() {
	l.ask(luaTell.whole([]string{rosterKey}, l.roster.args()...), l.wasTold)
}

func (l *lane) wasTold(any) {
	l.behind.Store(false)                    // before the epochs are compared: a later one may come meanwhile
	if !l.roster.isIn(l.link.marks.roster) { // these marks were read behind the command that told
		l.behind.Store(true)
	}
}

// A proxy that has just started, or comes to a new database, may meet a master on an older file before any other master has told it
// of the later epoch. Until it has heard the others it leaves the former run id in the mark. So the mark goes on showing that the
// server has started on a file, and the first proxy that hears the others will know.

// heardOthers says that enough other masters are connected for one of them to know of any later epoch (rule 7b).
func (l *lane) heardOthers() bool {
	n := 0
	for _, other := range l.engine.lanesOf(l.db) {
		if other != l && other.isUp() {
			n++
		}
	}
	return n >= Quorum(len(l.engine.masters))-1
}

// isUp says that the master is connected. Then its roster has been read.
func (l *lane) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current != nil && l.down == ""
}
