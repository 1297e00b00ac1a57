package script

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua/parse"
)

// compile returns the error that Redis answers to a text that is not Lua, or nil. Its wording after the colon is not
// always that of Redis's own compiler.
func compile(text string) error {
	body, err := withoutShebang(text)
	if err != nil {
		return err
	}
	_, err = lua.Parse(strings.NewReader(body), "user_script")
	if err == nil {
		return nil
	}
	line, message, token := 1, err.Error(), ""
	var e *lua.Error
	if errors.As(err, &e) {
		line, message, token = e.Pos.Line, e.Message, e.Token
	}
	if line == lua.EOF {
		line, token = 1+strings.Count(text, "\n"), "<eof>"
	}
	message = strings.Join(strings.Fields(message), " ")
	return fmt.Errorf("ERR Error compiling script (new function): user_script:%d: %s near '%.40s'", line, message, token)
}

// shebangFlags are those that Redis 7 knows.
var shebangFlags = []string{"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"}

// withoutShebang returns the text with its first line emptied, if that says #!lua and flags, or Redis's error about it.
func withoutShebang(text string) (string, error) {
	if !strings.HasPrefix(text, "#!") {
		return text, nil
	}
	first, rest, found := strings.Cut(text, "\n")
	if !found {
		return "", errors.New("ERR Invalid script shebang")
	}
	words := strings.Fields(first)
	if words[0] != "#!lua" {
		return "", fmt.Errorf("ERR Unexpected engine in script shebang: %s", words[0])
	}
	for _, word := range words[1:] {
		list, found := strings.CutPrefix(word, "flags=")
		if !found {
			return "", fmt.Errorf("ERR Unknown lua shebang option: %s", word)
		}
		for _, flag := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
			if !slices.Contains(shebangFlags, flag) {
				return "", fmt.Errorf("ERR Unexpected flag in script shebang: %s", flag)
			}
		}
	}
	return "\n" + rest, nil
}
