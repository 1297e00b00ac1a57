package script

import (
	"strings"
	"testing"
)

func TestATextThatIsNotLuaIsRefusedAndForgotten(t *testing.T) {
	c := NewCache(4)
	for text, want := range map[string]string{
		"if this is not Lua then": "user_script:1: ",
		"return 1\nreturn 2 +":    "user_script:2: ",
		"return 'open":            "user_script:1: ",
	} {
		s, err := c.Load(text)
		if err == nil || !strings.HasPrefix(err.Error(), "ERR Error compiling script (new function): "+want) {
			t.Errorf("%q: got %v, %v", text, s, err)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("%q: the error is more than a line: %q", text, err)
		}
	}
	if c.scripts.Len() != 0 {
		t.Error("kept")
	}
}

func TestAScriptThatIsNotRecognisedIsStillLua(t *testing.T) {
	c := NewCache(4)
	for _, text := range []string{
		"for i, k in ipairs(KEYS) do redis.call('del', k) end return #KEYS",
		"local function f(a, ...) return a end return f(1)",
		"-- nothing", "", "return {1, {ok='x'}, [[long]]}",
	} {
		if _, err := c.Load(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add("return redis.call('get', KEYS[1])")
	f.Add("--[[ x ]] if a then elseif b then end")
	f.Add("return 'open")
	f.Add("#!lua flags=no-writes\nreturn 1")
	f.Add("#!")
	f.Fuzz(func(t *testing.T, text string) {
		err := compile(text)
		switch {
		case err == nil, strings.HasPrefix(err.Error(), "ERR Error compiling script"):
		case strings.HasPrefix(text, "#!") && strings.HasPrefix(err.Error(), "ERR ") && strings.Contains(err.Error(), "shebang"):
		default:
			t.Fatal(err)
		}
	})
}
