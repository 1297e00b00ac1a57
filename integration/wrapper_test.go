package integration

import (
	"strings"
	"testing"
)

// A script reaches the masters through its wrapper only, whatever it names.
func TestNoScriptReachesAroundItsWrapper(t *testing.T) {
	s := startSplit(t)
	for _, reach := range []string{
		`__lockproxy[1]`, `_G.redis`, `_G._G.redis`, `_G.server`, `rawget(_G, 'redis')`, `getmetatable(_G).__index.redis`,
		`loadstring('return redis')()`, `getfenv(0).redis`, `getfenv(redis.call).redis`, `setfenv(1, {}).redis`,
		`_G['getf' .. 'env'](0).redis`, `getmetatable(redis).__index`, `_G['getmeta' .. 'table'](redis).__index`,
		`(function() redis.call = nil return redis end)()`, `(function() rawset(redis, 'pcall', nil) return {call = redis.pcall} end)()`,
	} {
		reply, err := s.client.Do("EVAL", "return "+reach+".call('SET', 'elsewhere', 'x')", "1", "mine")
		if err != nil || reply[0] != '-' {
			t.Errorf("%s: %q, %v", reach, reply, err)
		}
	}
	s.everywhere([]string{":0\r\n", ":0\r\n", ":0\r\n"}, "EXISTS", "elsewhere")
}

// What a script does stays with it: it leaves nothing behind for the scripts of others, nor in the masters' memory alone.
func TestNoScriptChangesWhatOthersShare(t *testing.T) {
	s := startSplit(t)
	for _, text := range []string{
		`getmetatable('').__index = function() end`, `_G['getmeta' .. 'table']('').__add = function() end`,
		`redis.set_repl(redis.REPL_NONE) redis.call('SET', KEYS[1], 'x')`, `redis['set_' .. 'repl'](0) redis.call('SET', KEYS[1], 'x')`,
	} {
		reply, err := s.client.Do("EVAL", text, "1", "mine")
		if err != nil || !strings.Contains(string(reply), "cannot be run by quorum") {
			t.Errorf("%s: %q, %v", text, reply, err)
		}
	}
	s.everywhere([]string{":0\r\n", ":0\r\n", ":0\r\n"}, "EXISTS", "mine")
}

// An error whose text would be made by a function of the client's, once all is done, does not take what the script has
// done out of the wrapper's sight: keys without a TTL would stay for ever.
func TestAnErrorThatRunsCodeIsNoWayOutOfTheWrapper(t *testing.T) {
	s := startSplit(t)
	expect(t, s.client, "-ERR unknown error script: a76bc68233ad44c0df9ada2265608efcfc5c6cf9, on @user_script:1.\r\n", "EVAL",
		`redis.call('SET',KEYS[1],'x') error(setmetatable({err=setmetatable({},{__tostring=function() error('boom') end})},{}))`, "1", "mine")
	reply, err := s.client.Do("PTTL", "mine")
	if n := strings.Trim(string(reply), ":\r\n"); err != nil || strings.HasPrefix(n, "-") {
		t.Errorf("PTTL %q, %v", reply, err)
	}
}

// Scripts of Redisson's that make names of further keys from their KEYS make none of lockproxy's own: a fence would be
// forgotten while its lock is held.
func TestNoKeyOfLockproxysIsMadeFromKEYS(t *testing.T) {
	s := startSplit(t)
	const resource = "x:rwlock_timeout:1"
	expect(t, s.client, ":2\r\n", "EVAL", `return redis.call('HSET', KEYS[1], 'me', 1, 'fence:x', 1)`, "1", "mine")
	lock, err := s.client.Do("LOCK", resource, "60000")
	if err != nil || lock[0] != '*' {
		t.Fatalf("%q, %v", lock, err)
	}
	const watchdog = `local counter = redis.call('hget', KEYS[1], ARGV[2]); if (counter ~= false) then redis.call('pexpire', KEYS[1], ARGV[1]); if (redis.call('hlen', KEYS[1]) > 1) then local keys = redis.call('hkeys', KEYS[1]);` +
		` for n, key in ipairs(keys) do counter = tonumber(redis.call('hget', KEYS[1], key)); if type(counter) == 'number' then for i=counter, 1, -1 do redis.call('pexpire', KEYS[2] .. ':' .. key .. ':rwlock_timeout:' .. i, ARGV[1]); end; end; end; end; return 1; end; return 0;`
	reply, err := s.client.Do("EVAL", watchdog, "2", "mine", "lockproxy", "1", "me")
	if err != nil || !strings.Contains(string(reply), "it uses the key 'lockproxy:") {
		t.Errorf("%q, %v", reply, err)
	}
	s.everywhere([]string{":1\r\n", ":1\r\n", ":1\r\n"}, "EXISTS", "lockproxy:fence:"+resource)
}

// A script may name the database that it is in, as @sesamecare-oss/redlock does before anything else. It is never taken to
// another: neither by an error that the script catches, nor without one.
func TestAScriptSelectsNoOtherDatabase(t *testing.T) {
	s := startSplit(t)
	const text = `local reply = redis.pcall('SELECT', tonumber(ARGV[1])) redis.call('SET', KEYS[1], 'x', 'PX', 60000) return reply`
	for _, db := range []string{"0", "3"} {
		expect(t, s.client, "+OK\r\n", "SELECT", db)
		expect(t, s.client, "+OK\r\n", "EVAL", text, "1", "mine", db)
		expect(t, s.client, "$1\r\nx\r\n", "GET", "mine")
		expect(t, s.client, ":1\r\n", "DEL", "mine")
		reply, err := s.client.Do("EVAL", text, "1", "mine", "5")
		if err != nil || !strings.Contains(string(reply), "it selects database '5', and its client is in "+db+"; let the client select it") {
			t.Errorf("in database %s: %q, %v", db, reply, err)
		}
		expect(t, s.client, "$-1\r\n", "GET", "mine")
	}
	for _, call := range []string{`'SELECT'`, `'SELECT', {}`, `'SELECT', 0, 0`} {
		bare, err := s.masters[0].Do(0, "EVAL", "return redis.call("+call+")", "1", "mine")
		if err != nil {
			t.Fatal(err)
		}
		want := string(bare)
		if !strings.Contains(want, "Redis command from script") { // in the words of Redis before 7, or of Valkey
			want = strings.SplitAfter(want, " ")[0]
		}
		s.eval(want, "return redis.call("+call+")", "mine")
	}
}
