package script

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

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
