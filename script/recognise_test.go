package script

import "testing"

// The texts in these tests are ours. They are the idioms that libraries and applications use, in ways that people
// write them.

func TestReleasesAreRecognised(t *testing.T) {
	const one = "release KEYS[1] ARGV[1] | 1 - 0 0"
	for _, c := range []struct{ text, want string }{
		{`if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`, one},
		{`if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('unlink', KEYS[1])`, one},
		{`if (ARGV[1] == redis.pcall('GET', KEYS[1])) then redis.pcall('DEL', KEYS[1]); return 1; end; return 0;`, one},
		{`local k, t = KEYS[1], ARGV[1] if server.call('get', k) == t then server.call('del', k) return 1 end return 0`, one},
		{`local call = redis.call return call('get', KEYS[1]) == ARGV[1] and call('del', KEYS[1]) or 0`, one},
		{`local v = redis.call('get', KEYS[1]) if not v or v ~= ARGV[1] then return 0 end redis.call('del', KEYS[1]) return 1`, one},
		{`if redis.call('exists', KEYS[1]) == 1 and redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`, one},
		{`local n = 0 for _, k in ipairs(KEYS) do if redis.call('get', k) == ARGV[1] then n = n + redis.call('del', k) end end return n`, one},
		// The token elsewhere.
		{`if redis.call('get',KEYS[1]) == KEYS[2] then return redis.call('del',KEYS[1]) else return 0 end`, "release KEYS[1] KEYS[2] | 1 - 0 0"},
		{`if redis.call('get',ARGV[1]) == ARGV[2] then return redis.call('del',ARGV[1]) else return 0 end`, "release ARGV[1] ARGV[2] | 1 - 0 0"},
		{`if redis.call('get','job') == 'me' then return redis.call('del','job') else return 0 end`, `release "job" "me" | 1 - 0 0`},
		{`if redis.call('get',KEYS[1]) == tostring(1) then return redis.call('del',KEYS[1]) else return 0 end`, `release KEYS[1] "1" | 1 - 0 0`},
		// Dialects.
		{`local v = redis.call('get', KEYS[1]) if v == ARGV[1] then return redis.call('del', KEYS[1]) elseif v == false then return -1 else return 0 end`,
			"release KEYS[1] ARGV[1] | 1 - 0 -1"},
		{`if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('unlink', KEYS[1]) return true end return false`,
			"release KEYS[1] ARGV[1] | 1 - nil nil"},
		{`if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end`, "release KEYS[1] ARGV[1] | nil - nil nil"},
		{`if redis.call('get', KEYS[1]) == ARGV[1] then return tostring(redis.call('del', KEYS[1]) == 1) else return 'false' end`,
			`release KEYS[1] ARGV[1] | "true" - "false" "false"`},
		{`if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) return redis.status_reply('OK') end return {err = 'NOTMINE no'}`,
			"release KEYS[1] ARGV[1] | +OK - -NOTMINE no -NOTMINE no"},
		{`local v = redis.call('get', KEYS[1]) if not v then return redis.status_reply('OK') elseif v == ARGV[1] then return redis.call('del', KEYS[1]) end return redis.error_reply('ERROR')`,
			"release KEYS[1] ARGV[1] | 1 - -ERR ERROR +OK"},
		{`if redis.call('get', KEYS[1]) == ARGV[1] then return {redis.call('del', KEYS[1]), 'gone'} end return {0, nil, 'held'}`,
			`release KEYS[1] ARGV[1] | [1 "gone"] - [0] [0]`},
		{`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) + 0.9 end return -0.5`,
			"release KEYS[1] ARGV[1] | 1 - 0 0"},
		// A key that is made and deleted again is not there.
		{`redis.call('setnx', KEYS[1], ARGV[1]) if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`,
			"release KEYS[1] ARGV[1] | 1 - 0 1"},
	} {
		recognised(t, c.text, c.want)
	}
}

func TestExtensionsAreRecognised(t *testing.T) {
	const millis = "extend KEYS[1] ARGV[1] ARGV[2]ms | 1 - 0 0"
	for _, c := range []struct{ text, want string }{
		{`if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end`, millis},
		{`if redis.call('get',KEYS[1]) == ARGV[1] then redis.call('set',KEYS[1],ARGV[1],'XX','PX',ARGV[2]) return 1 end return 0`, millis},
		{`if redis.call('get',KEYS[1]) == ARGV[1] then redis.call('psetex',KEYS[1],ARGV[2],ARGV[1]) return 1 end return 0`, millis},
		{`for i, k in ipairs(KEYS) do if redis.call('get', k) ~= ARGV[1] then return 0 end end
		  for i, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'PX', ARGV[2]) end return #KEYS`, millis},
		{`if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('expire',KEYS[1],ARGV[2]) else return 0 end`,
			"extend KEYS[1] ARGV[1] ARGV[2]s | 1 - 0 0"},
		{`if redis.call('get',KEYS[1]) == ARGV[2] then return redis.call('pexpire',KEYS[1],ARGV[1]) else return 0 end`,
			"extend KEYS[1] ARGV[2] ARGV[1]ms | 1 - 0 0"},
		{`if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('expire',KEYS[1],300) else return 0 end`,
			"extend KEYS[1] ARGV[1] 300s | 1 - 0 0"},
		{`if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('expire',KEYS[1],'300') else return 0 end`,
			"extend KEYS[1] ARGV[1] 300s | 1 - 0 0"},
		{`if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],tonumber(ARGV[2])*1000+500) end`,
			"extend KEYS[1] ARGV[1] 1000*ARGV[2]+500ms | 1 - nil nil"},
		{`if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('persist',KEYS[1]) else return 0 end`,
			"extend KEYS[1] ARGV[1] forever | 1 - 0 0"},
		{`if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],redis.call('pttl',KEYS[1])+ARGV[2]) else return 0 end`,
			"extend KEYS[1] ARGV[1] +ARGV[2]ms | 1 - 0 0"},
		// Keys have TTLs, so the last branch is dead; the codes are the other way round.
		{`if redis.call('get',KEYS[1]) ~= ARGV[1] then return 1 elseif redis.call('ttl',KEYS[1]) < 0 then return 2 end redis.call('expire',KEYS[1],ARGV[2]) return 0`,
			"extend KEYS[1] ARGV[1] ARGV[2]s | 0 - 1 1"},
		// An argument chooses.
		{`if redis.call('get',KEYS[1]) ~= ARGV[1] then return 0 end
		  local ttl = ARGV[2] if ARGV[3] == 'add' then ttl = ttl + redis.call('pttl',KEYS[1]) end
		  redis.call('pexpire',KEYS[1],ttl) return 1`,
			`if ARGV[3] == "add": extend KEYS[1] ARGV[1] +ARGV[2]ms; if ARGV[3] not == "add": extend KEYS[1] ARGV[1] ARGV[2]ms | 1 - 0 0`},
		{`if redis.call('get',KEYS[1]) ~= ARGV[1] then return 0 end
		  if tonumber(ARGV[2]) > 0 then return redis.call('expire',KEYS[1],ARGV[2]) end return redis.call('persist',KEYS[1])`,
			`if ARGV[2] <= "0": extend KEYS[1] ARGV[1] forever; if ARGV[2] not <= "0": extend KEYS[1] ARGV[1] ARGV[2]s | 1 - 0 0`},
	} {
		recognised(t, c.text, c.want)
	}
}

func TestAcquiresAreRecognised(t *testing.T) {
	const upsert = "acquire or extend KEYS[1] ARGV[1] ARGV[2]ms | 1 1 0 -"
	for _, c := range []struct{ text, want string }{
		{`return redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2])`, "acquire KEYS[1] ARGV[1] ARGV[2]ms | +OK - nil -"},
		{`return redis.call('SET',KEYS[1],ARGV[1],'ex',30,'nx')`, "acquire KEYS[1] ARGV[1] 30s | +OK - nil -"},
		{`return redis.call('setnx',KEYS[1],ARGV[1])`, "acquire KEYS[1] ARGV[1] forever | 1 - 0 -"},
		{`return redis.call('setnx',KEYS[1],1)`, `acquire KEYS[1] "1" forever | 1 - 0 -`},
		{`if redis.call('setNX',KEYS[1],ARGV[1]) == 1 then redis.call('expire',KEYS[1],ARGV[2]) return 1 else return 0 end`,
			"acquire KEYS[1] ARGV[1] ARGV[2]s | 1 - 0 -"},
		{`if redis.call('exists',KEYS[1]) == 0 then redis.call('setex',KEYS[1],60,ARGV[1]) return true end`,
			"acquire KEYS[1] ARGV[1] 60s | 1 - nil -"},
		{`for _, k in ipairs(KEYS) do if redis.call('exists', k) == 1 then return 0 end end
		  for _, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'PX', ARGV[2]) end return #KEYS`,
			"acquire KEYS[1] ARGV[1] ARGV[2]ms | 1 - 0 -"},
		{`local r = redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) redis.call('get',KEYS[1]) return r`,
			"acquire KEYS[1] ARGV[1] ARGV[2]ms | +OK - nil -"},
		{`local r = redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) if type(r) == 'table' and r.ok == 'OK' then return 1 end return 0`,
			"acquire KEYS[1] ARGV[1] ARGV[2]ms | 1 - 0 -"},
		// Zero is true in Lua, so SETNX's answer decides nothing: who holds the lock already extends it.
		{`if redis.call('setNx',KEYS[1],ARGV[1]) then
		    if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('expire',KEYS[1],ARGV[2]) else return 0 end
		  end`, "acquire or extend KEYS[1] ARGV[1] ARGV[2]s | 1 1 0 -"},
		{`if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2])
		  elseif redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return 1 else return 0 end`, upsert},
		{`local v = redis.call('get',KEYS[1]) if v == false or v == ARGV[1] then redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[2]) return 1 end return 0`, upsert},
		{`if redis.call('get',KEYS[1]) == ARGV[1] then redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[2]) return 'OK' else return redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) end`,
			`acquire or extend KEYS[1] ARGV[1] ARGV[2]ms | +OK "OK" nil -`},
		{`if redis.call('get',KEYS[1]) == ARGV[1] or (redis.call('exists',KEYS[1]) == 0 and ARGV[3] == 'new') then return redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[2]) end`,
			`if ARGV[3] == "new": acquire or extend KEYS[1] ARGV[1] ARGV[2]ms; if ARGV[3] not == "new": extend KEYS[1] ARGV[1] ARGV[2]ms | +OK +OK nil nil`},
		{`if tonumber(ARGV[2]) == 0 then return redis.call('setnx',KEYS[1],ARGV[1]) end
		  if redis.call('set',KEYS[1],ARGV[1],'NX','EX',ARGV[2]) then return 1 end return 0`,
			`if ARGV[2] == "0": acquire KEYS[1] ARGV[1] forever; if ARGV[2] not == "0": acquire KEYS[1] ARGV[1] ARGV[2]s | 1 - 0 -`},
	} {
		recognised(t, c.text, c.want)
	}
}

func TestQueriesAreRecognised(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`return redis.call('get',KEYS[1])`, "query KEYS[1] | VALUE - VALUE nil"},
		{`return redis.call('ttl',KEYS[1])`, "query KEYS[1] | TTL - TTL -2"},
		{`return {redis.call('get',KEYS[1]), redis.call('pttl',KEYS[1])}`, "query KEYS[1] | [VALUE PTTL] - [VALUE PTTL] [nil -2]"},
		{`if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pttl',KEYS[1]) else return -3 end`,
			"query KEYS[1] ARGV[1] | PTTL - -3 -3"},
		{`if redis.call('get',KEYS[1]) == ARGV[1] then local p = redis.call('pttl',KEYS[1]) return p > 0 and p or 0 end return 0`,
			"query KEYS[1] ARGV[1] | PTTL - 0 0"},
		{`return redis.call('get',KEYS[1]) == ARGV[1]`, "query KEYS[1] ARGV[1] | 1 - nil nil"},
		{`return redis.call('exists',KEYS[1])`, "query KEYS[1] | 1 - 1 0"},
		// GET is a string: never equal to a number, whatever it holds.
		{`if redis.call('get',KEYS[1]) == tonumber(ARGV[1]) then return redis.call('del',KEYS[1]) end return 0`,
			"query KEYS[1] | 0 - 0 0"},
	} {
		recognised(t, c.text, c.want)
	}
}
