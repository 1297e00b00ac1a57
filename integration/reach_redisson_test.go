package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockproxy/integration/harness"
	"lockproxy/script"
)

// Words of Redisson's scripts.
const (
	redissonTTL  = "30000"
	redissonWait = "300000"
)

// A deedWriter writes the deeds of one class of Redisson for callers.
type deedWriter struct {
	*testing.T
	now     string
	callers []string
	walks   []string // what the deeds that walk begin with, by SHA-1
	deeds   []deed
}

// script adds what the callers send with a script of the table, as far as its text has use for the keys and arguments.
func (w *deedWriter) script(f *script.Family, who string, keys []string, args ...string) {
	w.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "redisson", f.SHA+".lua"))
	if err != nil {
		w.Fatal(err)
	}
	for len(keys) > 0 && !strings.Contains(string(text), "KEYS["+strconv.Itoa(len(keys))) && !strings.Contains(string(text), "#KEYS") {
		keys = keys[:len(keys)-1]
	}
	command := slices.Concat([]string{"EVAL", string(text), strconv.Itoa(len(keys))}, keys, args)
	w.deeds = append(w.deeds, deed{
		name: f.Does + " by " + who, kind: f.Kind, command: command, shared: f.Kind == script.Releases && f.Holder > 0,
		grants: func(reply string) bool {
			if f.Granted == script.GrantNil {
				return reply == "$-1\r\n"
			}
			n, is := harness.Int([]byte(reply))
			return is && n > 0
		},
		walks: slices.ContainsFunc(w.walks, func(sha string) bool { return strings.HasPrefix(f.SHA, sha) }),
	})
}

// asks adds a command of Redis.
func (w *deedWriter) asks(command ...string) {
	w.deeds = append(w.deeds, deed{name: strings.Join(command, " "), kind: script.Asks, command: command})
}

// families calls a function with each row of the class that is not refused.
func (w *deedWriter) families(class string, add func(f *script.Family, has func(string) bool)) {
	for _, f := range script.Families() {
		if f.Library == "Redisson "+class && f.Kind != script.Refused {
			add(&f, func(word string) bool { return strings.HasPrefix(f.Does, word) })
		}
	}
}

func latch(f *script.Family, who string) string {
	return "redisson_unlock_latch:{k}:" + f.SHA[:8] + who
}

func (w *deedWriter) readWrite() {
	const channel = "redisson_rwlock:{k}"
	w.families("RReadWriteLock", func(f *script.Family, has func(string) bool) {
		for _, who := range w.callers {
			hold, write := "{k}:"+who+":rwlock_timeout", who+":write"
			switch {
			case has("read lock"):
				w.script(f, who, []string{"k", hold}, redissonTTL, who, write)
			case has("write lock"):
				w.script(f, who, []string{"k"}, redissonTTL, write)
			case has("read unlock"):
				w.script(f, who, []string{"k", channel, hold, "{k}", latch(f, who)}, "0", who, "publish", redissonTTL)
			case has("write unlock"):
				w.script(f, who, []string{"k", channel, latch(f, who)}, "1", redissonTTL, write, "publish", redissonTTL)
			case has("read watchdog, 4.4"), f.SHA[:4] == "38d2":
				w.script(f, who, []string{"k", "{k}"}, redissonTTL, "1", who)
			case has("read watchdog"):
				w.script(f, who, []string{"k", "{k}"}, redissonTTL, who)
			}
		}
		for i := 1; i < len(w.callers) && f.SHA[:4] == "38d2"; i += 2 {
			two := w.callers[i-1 : i+1]
			w.script(f, strings.Join(two, " and "), []string{"k", "{k}"}, append([]string{redissonTTL, "2"}, two...)...)
		}
		switch {
		case has("read forceUnlock"), has("write forceUnlock"):
			w.script(f, "anybody", []string{"k", channel}, "0", "publish")
		case has("read isLocked"):
			w.script(f, "anybody", []string{"k"})
		}
	})
	w.families("RLock", func(f *script.Family, has func(string) bool) {
		for _, who := range w.callers {
			if has("watchdog") || has("expire") {
				w.script(f, who+":write", []string{"k"}, redissonTTL, who+":write")
			}
		}
	})
	w.asks("HGET", "k", "mode")
	for _, who := range w.callers {
		w.asks("HEXISTS", "k", who)
		w.asks("HEXISTS", "k", who+":write")
		w.asks("HGET", "k", who)
		w.asks("HGET", "k", who+":write")
	}
	w.asks("EXISTS", "k")
	w.asks("PTTL", "k")
}

// readWriteOver has also that a hold runs out, as one with a lease does, or one whose client stood still.
func (w *deedWriter) readWriteOver() {
	w.readWrite()
	for _, who := range w.callers {
		hold := "{k}:" + who + ":rwlock_timeout:"
		w.deeds = append(w.deeds, deed{
			name: "the time of " + who + "'s holds is over", command: []string{"DEL", hold + "1", hold + "2"}, walks: true, happens: true,
		})
	}
}

func (w *deedWriter) plain() {
	const channel = "redisson_lock__channel:{k}"
	w.families("RLock", func(f *script.Family, has func(string) bool) {
		spins := strings.Contains(f.Does, "unlock of RSpinLock")
		for _, who := range w.callers {
			switch {
			case has("lock"):
				w.script(f, who, []string{"k"}, redissonTTL, who, "not twice")
			case has("unlock") && spins:
				w.script(f, who, []string{"k", latch(f, who)}, redissonTTL, who, redissonTTL)
			case has("unlock"):
				w.script(f, who, []string{"k", channel, latch(f, who)}, "0", redissonTTL, who, "publish", redissonTTL)
			case has("watchdog, many"):
				w.script(f, who, []string{"k"}, redissonTTL, who)
				w.script(f, who+", with another", []string{"k", "other {k}"}, redissonTTL, who, who)
			case has("watchdog"):
				w.script(f, who, []string{"k"}, redissonTTL, who)
			}
		}
		switch {
		case has("forceUnlock"):
			w.script(f, "anybody", []string{"k", channel}, "0", "publish")
		case has("expire"):
			w.script(f, "anybody", []string{"k"}, redissonTTL, "")
		}
	})
	w.holders()
}

func (w *deedWriter) fair() {
	const channel = "redisson_lock__channel:{k}"
	all := []string{"k", queueOf("k"), timeoutsOf("k")}
	w.families("RFairLock", func(f *script.Family, has func(string) bool) {
		for _, who := range w.callers {
			switch {
			case has("lock, tryLock with a wait, 2.7"):
				ends := strconv.Itoa(atoi(w.now) + atoi(redissonWait))
				w.script(f, who, all, redissonTTL, who, ends, w.now)
			case has("lock"):
				w.script(f, who, all, redissonTTL, who, redissonWait, w.now, "not twice")
			case has("tryLock"):
				w.script(f, who, all, redissonTTL, who, w.now, redissonWait, "not twice")
			case has("unlock"):
				w.script(f, who, append(slices.Clone(all), channel, latch(f, who)), "0", redissonTTL, who, w.now, "publish", redissonTTL)
			case has("leaving"):
				w.script(f, who, all[1:], who, redissonWait)
			}
		}
		if has("forceUnlock") {
			w.script(f, "anybody", append(slices.Clone(all), channel), "0", w.now, "publish")
		}
	})
	w.families("RLock", func(f *script.Family, has func(string) bool) {
		for _, who := range w.callers {
			if has("watchdog") {
				w.script(f, who, []string{"k"}, redissonTTL, who)
			}
		}
	})
	w.holders()
}

// holders asks who holds a hash.
func (w *deedWriter) holders() {
	for _, who := range w.callers {
		w.asks("HEXISTS", "k", who)
		w.asks("HGET", "k", who)
	}
	w.asks("EXISTS", "k")
	w.asks("PTTL", "k")
}

func (w *deedWriter) several() {
	const channel = "redisson_lock__channel:{k}"
	w.families("FasterMultiLock", func(f *script.Family, has func(string) bool) {
		for _, members := range [][]string{{"x"}, {"x", "y"}} {
			of := " on " + strings.Join(members, " and ")
			add := func(who string, keys []string, args ...string) {
				w.script(f, who+of, keys, append(args, members...)...)
			}
			for _, who := range w.callers {
				switch {
				case has("tryLock"):
					add(who, []string{"k"}, w.now, redissonTTL, who)
				case has("lock"):
					add(who, []string{"k"}, redissonTTL, w.now, who)
				case has("unlock"):
					add(who, []string{"k", channel, latch(f, who)}, who, "0", redissonTTL, "publish", redissonTTL, w.now)
				case has("watchdog, 3.38"):
					add(who, []string{"k"}, who, redissonTTL, w.now)
				case has("watchdog"):
					add(who, []string{"k"}, redissonTTL, w.now, who)
				case has("isHeldByThread"):
					add(who, []string{"k"}, w.now, who)
				}
			}
			switch {
			case has("forceUnlock"):
				add("anybody", []string{"k", channel}, "0", "publish")
			case has("isLocked"):
				add("anybody", []string{"k"}, w.now)
			}
		}
	})
	w.asks("EXISTS", "k")
}

func atoi(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
