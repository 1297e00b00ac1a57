package quorum

import (
	"strings"
	"sync/atomic"
	"time"
)

// Proxies that serve the same clients must agree on the names of locks: a lock that one of the proxies sends to another server has
// two holders. The engine does not know the names. It writes Config.Names into each master, in place of the names that any proxy has
// written there last, and compares the two. It does so at random times, so that each proxy meets each other proxy at some time.
// Masters before Redis 6.2 refuse the command: there nothing is compared.

const (
	namesEvery = 10 * time.Second // on average
	namesLast  = 3 * namesEvery   // then a proxy that is gone is forgotten
	namesWarn  = time.Minute      // between two lines of the log
)

// Names says which names are names of locks. Proxies with the same For must have the same Are.
type Names struct{ For, Are string }

func (n Names) String() string { return n.For + "\n" + n.Are }

// differ returns the Are of another proxy with the same For, if it is different; "" if not.
func (n Names) differ(last any) string {
	text, _ := last.(string)
	other, there, _ := strings.Cut(text, "\n")
	if other != n.For || there == n.Are {
		return ""
	}
	return there
}

// A namesCheck compares what proxies say.
type namesCheck struct {
	warned atomic.Int64 // when the log had last that another proxy takes other names for locks; 0 is never
}

// compare tells every master what names are locks here, and hears what was told last.
func (c *namesCheck) compare(e *Engine) {
	command := []any{"SET", namesKey, e.cfg.Names.String(), "PX", namesLast.Milliseconds(), "GET"}
	e.databases.each(func(l *lane) {
		if l.db == 0 {
			l.ask(command, func(last any) { c.hear(e, last, l.master.Addr()) })
		}
	})
}

func (c *namesCheck) hear(e *Engine, last any, master string) {
	there := e.cfg.Names.differ(last)
	if there == "" {
		return
	}
	e.stats.otherNames.Add(1)
	now, warned := e.now(), c.warned.Load()
	if (warned == 0 || now-instant(warned) >= namesWarn) && c.warned.CompareAndSwap(warned, int64(now)) {
		e.cfg.Logger.Warn("another proxy of this upstream takes other names for locks: one that only one of them takes for a lock can have two "+
			"holders; give both the same lock_keys", "upstream", e.cfg.Names.For, "here", e.cfg.Names.Are, "there", there, "master", master)
	}
}
