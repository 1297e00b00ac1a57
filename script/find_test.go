package script

import (
	"slices"
	"testing"
)

func TestTheStringsOfAText(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{`return redis.call('get', 'a') .. "b" .. [[c]] .. [==[
d]==] -- 'e'
--[[ 'f' ]] .. 'g\'\104'`, []string{"a", "b", "c", "d", "g'h"}},
		{`local rcall = redis.call return {rcall("get", KEYS[1]), redis.pcall ( "get", "k" )}`, []string{"get", "k"}},
		{`return 0x1FFFFFFFFF .. 1e999 .. 'a'`, []string{"a"}},
		{"#!lua name='x'\nreturn 'a'", []string{"a"}},
		{"#!lua", nil},
		{`return 'a' ! 'b'`, []string{"a"}},
		{`return 'a`, nil},
		{"", nil},
	} {
		var got []string
		FindString(c.text, func(s string) bool {
			got = append(got, s)
			return false
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s\ngot %q, want %q", c.text, got, c.want)
		}
	}
	if got := FindString(`return 'a' .. 'b'`, func(s string) bool { return s == "b" }); got != "b" {
		t.Errorf("got %q", got)
	}
}
