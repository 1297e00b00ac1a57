package script

import (
	"slices"
	"testing"
)

// The ids were computed by another program, from the texts of libraries.
func TestShapesReproduce(t *testing.T) {
	for _, c := range []struct{ id, text string }{
		{"83ccb24b82c2", `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`},
		{"83ccb24b82c2", "-- gibt die Sperre frei\nif (redis.pcall( 'GET' , KEYS[1] )==ARGV[1]) then\n\treturn server.call('Del',KEYS[1]);\nelse --[==[ 不是 ]==] return 0; end;"},
		{"83ccb24b82c2", `local rcall = redis.call if rcall("get",KEYS[1]) == ARGV[1] then return rcall("del",KEYS[1]) else return 0 end`},
		{"feee6ef03773", `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) end return 0`},
		{"4ad1cf67fe81", `if ARGV[1] == redis.call("get",KEYS[1]) then return redis.call("del",KEYS[1]) end return 0`},
		{"319d4c364c9a", `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`},
		{"cfc2384512a2", `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) end return 0`},
		{"b3284fffe531", `return redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2])`},
		{"e0cbf897ac5f", `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pttl",KEYS[1]) else return -3 end`},
		{"bca2fae6eb82", `return {redis.call("get",KEYS[1]), redis.call("pttl",KEYS[1])}`},
		{"be50221a4182", `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2])
			elseif redis.call("set",KEYS[1],ARGV[1],"NX","PX",ARGV[2]) then return 1 else return 0 end`},
	} {
		if got, ok := shapeOf(c.text); !ok || got != c.id {
			t.Errorf("got %s, want %s for\n%s", got, c.id, c.text)
		}
		row := slices.IndexFunc(KnownTexts(), func(u KnownText) bool { return u.Shape == c.id })
		s, err := understand(c.text, shaOf(c.text), newFamilies(nil))
		if row < 0 || err != nil || s.Meaning == nil || libraries[c.id] == "" {
			t.Errorf("%s: no library is named, or it is not understood: %v", c.id, err)
			continue
		}
		op := s.Meaning.cases[0].op
		kinds := map[Op]string{Release: "release", Extend: "extend", Acquire: "take", AcquireOrExtend: "take", Query: "ask"}
		if does := KnownTexts()[row].Does; does != kinds[op] {
			t.Errorf("%s is said to %s, and is to %v", c.id, does, op)
		}
	}
}

func TestShapesDifferWhereTheMeaningMay(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		`return redis.call('get',KEYS[1])`, `return redis.call('get',KEYS[2])`, `return redis.call('del',KEYS[1])`,
		`return redis.call('get',ARGV[1])`, `return redis.call('get','KEYS[1]')`, `return redis.call('get',1)`,
		`local a, b = KEYS[1], ARGV[1] return a`, `local a, b = KEYS[1], ARGV[1] return b`,
		`return 'nx'`, `return 'get'`, `return 'GET'`, `return 1`, `return '1'`, `return -1`,
	} {
		id, ok := shapeOf(text)
		if before, found := seen[id]; found || !ok {
			t.Errorf("%s and %s have the shape %s", before, text, id)
		}
		seen[id] = text
	}
}

func TestWhatIsNoLuaHasNoShape(t *testing.T) {
	for _, text := range []string{"'", "--[[", "[==[ ]=]", "3x", "\x00", "@", `"\999"`, "'\\"} {
		if id, ok := shapeOf(text); ok {
			t.Errorf("%q has the shape %s", text, id)
		}
	}
}
