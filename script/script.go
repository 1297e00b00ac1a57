// Package script knows the meaning of Lua texts.
//
// Lock libraries release and extend their locks with small Lua scripts. Such a text cannot simply be sent to every
// master: merging the masters' replies needs their meaning. So a text is first understood:
//
//	text ── Cache ── SHA-1 seen before? ──────────────────────────────────────────────► Script
//	          │                                                                           ▲
//	          └─ new: tokens ── syntax tree ── run in three worlds ── effects, replies ── Meaning
//
// A lock script can find three worlds: its key is absent, holds the script's token, or holds something else. The text
// is run once in each world, with symbols for KEYS and ARGV. The effects on the key name the operation: "nothing,
// deleted, nothing" is a release, however the text is written. The returned values are the dialect of its library. A
// condition on an argument, such as ARGV[3] == "0", splits the runs, and each side is understood by itself.
//
// Promises: a Meaning holds for all keys and arguments that its Bind accepts. So the operation and its answer are those
// of a Redis whose key always has a TTL. A text beyond the known subset of Lua and of commands is not recognised;
// nothing is guessed. Recognising takes bounded time and memory for any text.
//
// Not promised: other types than strings, functions, PUBLISH, calls with several keys. (A loop over KEYS is understood
// for calls with one key; Bind refuses others.) A script that tells the holder of the lock, or the TTL, is understood
// only if it does nothing else.
//
// A Script that is not recognised may be of a known Family. The Family says how the replies of N masters merge. The
// replies to any other Script merge only if they are equal.
//
// A shape stands for texts that differ on the surface only. A shape leads to a Family, or to the name of a text for
// people to read; never to a Meaning.
package script

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Script is a Lua text and its meaning.
type Script struct {
	SHA     string   // SHA-1 of Text, 40 lower-case hex digits
	Text    string   // as the client sent the text
	Meaning *Meaning // nil: not recognised
	Family  *Family  // nil: not in the table

	// Compiles says that the text is known to be Lua. If not, masters are to compile the text before its first use.
	Compiles bool
}

// shebangFlags are the flags that Redis 7 knows.
var shebangFlags = []string{"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"}

// checkShebang returns Redis's error about a first line that begins with #!, or nil. The rest of the text is for Lua.
func checkShebang(text string) error {
	if !strings.HasPrefix(text, "#!") {
		return nil
	}
	first, _, found := strings.Cut(text, "\n")
	if !found || strings.Contains(first, "\x00") {
		return errors.New("ERR Invalid script shebang")
	}
	words := strings.FieldsFunc(first, func(r rune) bool { return strings.ContainsRune(" \t\v\f\r", r) })
	if words[0] != "#!lua" {
		return fmt.Errorf("ERR Unexpected engine in script shebang: %s", words[0])
	}
	for _, word := range words[1:] {
		list, found := strings.CutPrefix(word, "flags=")
		if !found {
			return fmt.Errorf("ERR Unknown lua shebang option: %s", word)
		}
		if list == "" {
			continue
		}
		for flag := range strings.SplitSeq(list, ",") {
			if !slices.Contains(shebangFlags, flag) {
				return fmt.Errorf("ERR Unexpected flag in script shebang: %s", flag)
			}
		}
	}
	return nil
}

// Writes says that Redis treats the script as a writing one, whatever its commands: the script has a shebang without
// the flag no-writes.
func (s *Script) Writes() bool {
	first, _, _ := strings.Cut(s.Text, "\n")
	return strings.HasPrefix(first, "#!") && !strings.Contains(first, "no-writes")
}
