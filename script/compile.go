package script

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua/parse"
)

// compile returns the error that Redis answers to a text that is not Lua, or nil. Its wording after the colon is not
// always that of Redis's own compiler.
func compile(text string) error {
	_, err := lua.Parse(strings.NewReader(text), "user_script")
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
