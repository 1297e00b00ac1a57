package quorum

import (
	"errors"
	"fmt"
	"testing"

	"lockproxy/quorum/vote"
)

func TestAQuorumSaysWhetherATextIsLua(t *testing.T) {
	const refusal = "ERR Error compiling script (new function): user_script:1: no  such"
	none, lua := errors.New(""), any(nil)
	for _, c := range []struct {
		replies []any // none: the master is down
		want    string
	}{
		{[]any{lua, lua, lua}, "compiles"},
		{[]any{lua, lua, "user_script:1: other"}, "compiles"},
		{[]any{lua, none, lua}, "compiles"},
		{[]any{lua, errors.New("OOM x"), lua}, "compiles"},
		{[]any{"user_script:1: no\r\nsuch\n", "user_script:1: no\r\nsuch\n", lua}, refusal},
		{[]any{none, "user_script:1: no\r\nsuch\n", "user_script:1: no\r\nsuch\n"}, refusal},
		{[]any{none, none, lua}, "no quorum"},
		{[]any{none, none, "x"}, "no quorum"},
		{[]any{lua, "x", none}, "x or no quorum"},
		{[]any{int64(1), int64(1), int64(1)}, "no quorum"},
		{[]any{errors.New("ERR x"), errors.New("BUSY x"), lua}, "no quorum"},
	} {
		inWorld(t, 3, func(w *world) {
			for i, reply := range c.replies {
				switch err, isErr := reply.(error); {
				case reply == none:
					w.fakes[i].die()
				case isErr:
					w.fakes[i].answer("EVAL", nil, err.Error())
				default:
					w.fakes[i].compiles(reply)
				}
			}
			done := make(chan Compiled, 1)
			w.Compile(0, "text", func(c Compiled) { done <- c })
			answer, got := <-done, "compiles"
			var no *NoQuorum
			switch {
			case errors.As(answer.Err, &no):
				got = "no quorum"
			case answer.Err != nil:
				got = fmt.Sprint(answer.Err)
			case answer.Refusal != "":
				got = answer.Refusal
			}
			if c.want == "x or no quorum" && (got == "no quorum" || got == "ERR Error compiling script (new function): x") {
				return
			}
			if got != c.want {
				t.Errorf("%q: got %q, want %q", c.replies, got, c.want)
			}
		})
	}
}

func TestLinesAreCountedAsLuaDoes(t *testing.T) {
	for text, want := range map[string]int{"": 1, "a": 1, "\n": 2, "\r": 2, "\r\n": 2, "\n\r": 2, "\r\r": 3, "\n\n": 3, "\r\n\r\n": 3, "\n\r\r\n": 3, "\r\n\n": 3} {
		if got := vote.Lines(text); got != want {
			t.Errorf("%q: %d lines, want %d", text, got, want)
		}
	}
}

func TestTheFirstLineThatSaysWhatRunsATextIsNotCompiled(t *testing.T) {
	for text, want := range map[string]string{"return 1": "return 1", "#!lua\nreturn 1": "\nreturn 1", "#!lua": "", " #!": " #!"} {
		if got := withoutShebang(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
	for text, want := range map[string]bool{"#!lua flags=no-writes\nreturn 1": true, "#!lua\nreturn 'no-writes'": false, "return 'no-writes'": false} {
		if s := NewScript(text); s.noWrite != want {
			t.Errorf("%q: %v", text, s.noWrite)
		}
	}
}

func (f *fake) compiles(reply any) {
	f.vote(map[string]any{luaCompile.text: reply})
}
