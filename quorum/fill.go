package quorum

import (
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// A master may have nothing of a lock that others hold: it was away when the lock was taken, or has lost its data since. Whoever
// extends the lock for long would lose it when the other masters have been restarted as well, one after the other. So an
// extension that finds the same again as the one before fills the gap: it sets the key where nothing is.
//
// That is no vote in this round, but it is one in the next. Nobody else loses anything by it: it takes no key's place, and none
// that was forgotten, as a master in quarantine fills nothing. Nor does it bring back a lock that is gone (rule 11): a master
// fills the gap only within the validity of the extension before, by its own clock, so that nobody can have held the lock
// since; and what it has set lives no longer than what the others had then. Somebody may have taken the lock away all the same.
// So what was filled is undone unless a quorum of the others has the lock still, and the answer counts.

// gaps are the locks of which some masters had nothing when a quorum extended them.
type gaps struct {
	mu    sync.Mutex // guards known
	known *simplelru.LRU[gapKey, gap]
}

type gapKey struct {
	key   Key
	token string
}

type gap struct {
	masters uint64  // a bit for each that had nothing
	until   instant // the end of the validity
	kept    instant // when the others let it go
}

const (
	gapsMax    = 10_000
	gapTextMax = 512 // of name and token together: nobody has longer ones and a gap remembered
)

func (g *gaps) init() { g.known, _ = simplelru.NewLRU[gapKey, gap](gapsMax, nil) }

func (g *gaps) of(key Key, token string) (gap, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known.Len() == 0 {
		return gap{}, false
	}
	return g.known.Get(gapKey{key, token})
}

// note remembers a gap, or that there is none.
func (g *gaps) note(key Key, token string, is gap) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case is.masters == 0 && g.known.Len() > 0:
		g.known.Remove(gapKey{key, token})
	case is.masters != 0 && len(key.Name)+len(token) <= gapTextMax:
		key.Name = strings.Clone(key.Name)
		g.known.Add(gapKey{key, strings.Clone(token)}, is)
	}
}

// noteGap is called when a quorum has extended the lock, and for each answer after that.
func (x *extension) noteGap() {
	if x.req.Add {
		return
	}
	is := gap{until: x.until(), kept: x.start + x.kept}
	x.mu.Lock()
	defer x.mu.Unlock() // so that what is noted last knows most
	for i := range x.entries {
		if en := &x.entries[i]; en.fate == answered && en.blank {
			is.masters |= 1 << i
		}
	}
	x.engine.gaps.note(x.req.Key, x.req.Token, is)
}

// A filling is an extension that fills a gap.
type filling struct {
	*extension
	gap gap
}

// compose makes the command for one master; see composer.
func (f *filling) compose(en *entry, now int64) {
	if f.gap.masters&(1<<en.master) == 0 || en.lane.quarantineCause() != "" {
		en.Args = f.args()
		return
	}
	valid, kept := f.gap.until-en.lane.gathered, f.gap.kept-en.lane.gathered
	en.expires = en.lane.expiry(f.hold().hash(), now+kept.Milliseconds())
	keys := []string{f.req.Key.Name, horizonKey, canaryKey}
	if f.req.Fenced {
		keys = append(keys, recordPrefix+f.req.Key.Name)
	}
	en.Args = luaFill.all(keys, []any{
		f.req.Token, f.kept.Milliseconds(), en.expires, now + valid.Milliseconds(), en.lane.link.marks.canary,
	})
}

func (f *filling) read(en *entry) (Vote, string) {
	if en.Err == nil && en.Reply == int64(filled) {
		en.took, en.blank = true, true
		return Refused, ""
	}
	return f.extension.read(en)
}

// ended undoes what was filled, unless it may stay.
func (f *filling) ended(d Decision) {
	var all []*undo
	f.mu.Lock()
	for i := range f.entries {
		if u := f.undoOf(&f.entries[i], false); u != nil {
			all = append(all, u)
		}
	}
	f.mu.Unlock()
	pushUndos(f.engine, nil, all, func() {})
	f.extension.ended(d)
}

// settled undoes what was filled after that, also if a release was not sent meanwhile; see lane.owe.
func (f *filling) settled(en *entry) {
	owed := en.lane.owes(f.hold())
	f.mu.Lock()
	u := f.undoOf(en, owed)
	f.mu.Unlock()
	if u != nil {
		u.lane.pushUndo(u)
	}
	f.extension.settled(en)
}

// undoOf returns what removes what was filled on a master, or may have been, once: where the lock is gone, or that is not known,
// or was given back, or the answer does not count. It is called with the round's mu held.
func (f *filling) undoOf(en *entry, owed bool) *undo {
	certain := en.fate == answered && en.took
	possible := en.fate == unknown && en.expires != 0
	stays := f.decision == Won && en.vote == Refused && !owed
	if en.undoing || stays || !certain && !possible {
		return nil
	}
	en.undoing = true
	return newUndo(en, f.gap.kept-f.start, luaUndo.whole(f.req.Key.Name, f.req.Token, en.expires))
}
