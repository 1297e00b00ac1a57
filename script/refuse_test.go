package script

import (
	"strings"
	"testing"
)

// Each of these would be carried out wrongly by an operation of the engine, or is beyond what is understood.
func TestOtherScriptsAreNotRecognised(t *testing.T) {
	const mine = `if redis.call('get',KEYS[1]) == ARGV[1] then `
	for _, c := range []struct{ why, text string }{
		{"touches what others hold", `redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[2]) return 1`},
		{"touches what others hold", `return redis.call('del',KEYS[1])`},
		{"touches what others hold", `return redis.call('pexpire',KEYS[1],ARGV[1])`},
		{"deletes what others hold", `if redis.call('get',KEYS[1]) ~= ARGV[1] then return redis.call('del',KEYS[1]) end return 0`},
		{"holds on to what is its own without a new TTL, and says so",
			mine + `return 1 end return redis.call('setnx',KEYS[1],ARGV[1])`},
		{"deletes its own, takes what is free", mine + `return redis.call('del',KEYS[1]) end return redis.call('setnx',KEYS[1],ARGV[1])`},
		{"gives two TTLs", mine + `return redis.call('expire',KEYS[1],ARGV[2]) elseif redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return 1 end`},
		{"says no to an extension, yes to an acquire",
			mine + `redis.call('pexpire',KEYS[1],ARGV[2]) return 0 elseif redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return 1 end return 0`},
		{"tells who holds the key", `if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return 1 end return redis.call('get',KEYS[1])`},
		{"tells how long", mine + `return redis.call('del',KEYS[1]) end return redis.call('pttl',KEYS[1])`},
		{"answers two questions in two ways", `if ARGV[2] == 'a' then ` + mine + `return redis.call('del',KEYS[1]) end return 0 end ` + mine + `redis.call('del',KEYS[1]) return 'gone' end return 0`},
		{"answers two questions with two texts", `if ARGV[2] == 'a' then ` + mine + `redis.call('del',KEYS[1]) return 'one' end return 'no' end ` + mine + `redis.call('del',KEYS[1]) return 'two' end return 'no'`},
		{"takes what is free with a text for its own holder, and another for others", `if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return 'yes' end ` + mine + `return 'mine' end return 'no'`},
		{"compares with two tokens", `local v = redis.call('get',KEYS[1]) if v == ARGV[1] or v == ARGV[2] then return redis.call('del',KEYS[1]) end return 0`},
		{"writes another token than it compares with", mine + `redis.call('set',KEYS[1],ARGV[2],'PX',ARGV[3]) return 1 end return 0`},
		{"compares a part of the value", `if string.sub(redis.call('get',KEYS[1]),1,4) == ARGV[1] then return redis.call('del',KEYS[1]) end return 0`},
		{"compares a part of the value", `if redis.call('getrange',KEYS[1],0,4) == ARGV[1] then return redis.call('del',KEYS[1]) end return 0`},
		{"has two keys", mine + `return redis.call('del',KEYS[2]) end return 0`},
		{"builds its key", `return redis.call('get','lock:'..KEYS[1])`},
		{"publishes", mine + `redis.call('publish',ARGV[2],'x') return redis.call('del',KEYS[1]) end return 0`},
		{"counts", `return redis.call('incr',KEYS[1])`},
		{"depends on how long is left", mine + `if redis.call('pttl',KEYS[1]) < 1000 then redis.call('pexpire',KEYS[1],ARGV[2]) return 1 end end return 0`},
		{"depends on rounded seconds", mine + `if redis.call('ttl',KEYS[1]) > 0 then redis.call('pexpire',KEYS[1],ARGV[2]) return 1 end end return 0`},
		{"adds rounded seconds", mine + `return redis.call('expire',KEYS[1],redis.call('ttl',KEYS[1])+ARGV[2]) end return 0`},
		{"deletes by a TTL", mine + `return redis.call('expire',KEYS[1],0) end return 0`},
		{"has an option unknown here", `return redis.call('set',KEYS[1],ARGV[1],'NX','PXAT',ARGV[2])`},
		{"has an option unknown here", mine + `return redis.call('pexpire',KEYS[1],ARGV[2],'GT') end return 0`},
		{"calls what is another word to Redis, the Kelvin sign for a k", mine + `return redis.call('unlin` + "\u212a" + `',KEYS[1]) end return 0`},
		{"calls what is another word to Redis, a dotted I for an i", mine + `return redis.call('exp` + "\u0130" + `re',KEYS[1],ARGV[2]) end return 0`},
		{"is a syntax error of SET", `redis.call('set',KEYS[1],ARGV[1],'XX','NX') return 1`},
		{"is a syntax error of SET", `return redis.call('set',KEYS[1],ARGV[1],'NX','PX')`},
		{"has its command in an argument", `return redis.call(ARGV[1],KEYS[1])`},
		{"has its option in an argument", `return redis.call('set',KEYS[1],ARGV[1],ARGV[2])`},
		{"fails in Lua", `return redis.call('set',KEYS[1],ARGV[1],'NX').ok`},
		{"makes a global", `v = redis.call('get',KEYS[1]) return v`},
		{"reads a global", `if redis.call('get',KEYS[1]) == token then return redis.call('del',KEYS[1]) end return 0`},
		{"has no key", `return 1`},
		{"compares tables", `return redis.call('set',KEYS[1],ARGV[1],'NX') == {ok = 'OK'} and redis.status_reply('OK') == redis.status_reply('OK')`},
		{"asks too many questions", strings.Repeat(`if ARGV[9] == 'a' then return 0 end if ARGV[8] == 'b' then return 0 end if ARGV[7] == 'c' then return 0 end if ARGV[6] == 'd' then return 0 end if ARGV[5] == 'e' then return 0 end `, 2) + `return redis.call('get',KEYS[1])`},
		{"loops", `for i = 1, 2 do redis.call('get',KEYS[1]) end return 1`},
		{"loops over arguments", `for i, v in ipairs(ARGV) do redis.call('get',KEYS[1]) end return 1`},
		{"defines a function", `local function f() return 1 end return f()`},
		{"is ambiguous to Lua 5.1", "return redis.call\n('get',KEYS[1])"},
		{"is ambiguous to Lua 5.1", "for _, k in ipairs\n(KEYS) do if redis.call('get',k) == ARGV[1] then return redis.call('del',k) end end return 0"},
		{"returns in the middle", `return 1 redis.call('get',KEYS[1])`},
		{"is no Lua", `if redis.call('get',KEYS[1]) == ARGV[1] then`},
		{"is no Lua", `return redis.call('get',KEYS[1]);;`},
		{"is no Lua", `return redis.call('get,KEYS[1])`},
		{"is no Lua", `return 3x`},
		{"is no Lua", "#!lua\nreturn redis.call('get',KEYS[1])"},
		{"is too long", `return redis.call('get',KEYS[1]) --` + strings.Repeat("x", maxRecognised)},
		{"is nested too deep", `return ` + strings.Repeat("(", 100) + `redis.call('get',KEYS[1])` + strings.Repeat(")", 100)},
	} {
		if m := recognise(c.text, "SHA"); m != nil {
			t.Errorf("%s, but was recognised as %s:\n%s", c.why, describe(m), c.text)
		}
	}
}
