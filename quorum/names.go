package quorum

import "time"

// Proxies of one deployment must agree on which names are those of locks: a lock that one of them sends to another server has two
// holders. The engine does not know which names these are. It writes what Config.Names says of them into each master, in place of
// what another proxy has written there, and compares the two. Masters before Redis 6.2 refuse that command: there nothing is compared.

const (
	namesEvery = 10 * time.Second
	namesLast  = 3 * namesEvery // then a proxy that is gone is forgotten
	namesWarn  = time.Minute    // between two lines of the log
)

// compareNames tells every master what names are locks here, and hears what was told last.
func (e *Engine) compareNames() {
	if e.cfg.Names == "" {
		return
	}
	command := []any{"SET", namesKey, e.cfg.Names, "PX", namesLast.Milliseconds(), "GET"}
	e.eachLane(func(l *lane) {
		if l.db == 0 {
			l.ask(command, func(last any) { e.hearNames(last, l.master.Addr()) })
		}
	})
}

func (e *Engine) hearNames(last any, master string) {
	there, _ := last.(string)
	if there == "" || there == e.cfg.Names {
		return
	}
	e.stats.otherNames.Add(1)
	now, warned := e.now(), e.namesWarned.Load()
	if (warned == 0 || now-instant(warned) >= namesWarn) && e.namesWarned.CompareAndSwap(warned, int64(now)) {
		e.cfg.Logger.Warn("another proxy takes other names for locks: one that only one of them takes for a lock can have two holders; "+
			"give all proxies the same lock_keys, and the same first database", "here", e.cfg.Names, "there", there, "master", master)
	}
}
