package integration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// inEveryOrder gives a key to each master, with its parts in another order: command is HSET or SADD, and of so many words each.
func (s *split) inEveryOrder(command, key string, words int, parts ...string) {
	s.Helper()
	for i := range s.masters {
		at := i * (len(parts) / words / 3) * words
		for j := range len(parts) / words {
			from := (at + j*words) % len(parts)
			s.on(i, append([]string{command, key}, parts[from:from+words]...)...)
		}
		s.on(i, "PEXPIRE", key, "60000")
	}
}

// Each server has an order of its own for what has none. A script sees one order on all masters.
func TestScriptsSeeOneOrderOfWhatHasNone(t *testing.T) {
	s := startSplit(t)
	for _, n := range []int{2, 8, 700} {
		var members, fields, numbers []string
		for i := range n {
			members = append(members, fmt.Sprintf("m%d", i*7919%1000))
			fields = append(fields, fmt.Sprint("f", i), strconv.Itoa(i%5))
			numbers = append(numbers, strconv.Itoa(i-n/2))
		}
		set, hash, ints := fmt.Sprint("set", n), fmt.Sprint("hash", n), fmt.Sprint("ints", n)
		s.inEveryOrder("SADD", set, 1, members...)
		s.inEveryOrder("HSET", hash, 2, fields...)
		s.inEveryOrder("SADD", ints, 1, numbers...)
		s.on(2, "SADD", ints, "x") // no longer as an intset, never again
		s.on(2, "SREM", ints, "x")
		for call, want := range map[string]int{
			`redis.call('SMEMBERS', KEYS[1])`: n, `redis.call('sunion', KEYS[1], KEYS[3])`: 2 * n, `redis.pcall('SINTER', KEYS[1])`: n,
			`redis.call('sdiff', KEYS[1], KEYS[3])`: n, `redis.call('hkeys', KEYS[2])`: n, `redis.call('hvals', KEYS[2])`: n,
			`redis.call('hgetall', KEYS[2])`: 2 * n, `redis.call('smembers', KEYS[3])`: n,
		} {
			for _, text := range []string{"return " + call, "return table.concat(" + call + ", ' ')", "return " + call + "[1]",
				"redis.setresp(3) return " + call, "redis.setresp(3) local all = {} for k, v in pairs(" + call + ") do" +
					" for k2, v2 in pairs(type(v) == 'table' and v or {}) do all[#all + 1] = k2 end end return all"} {
				reply, err := s.client.Do("EVAL", text, "3", set, hash, ints)
				if err != nil || reply[0] == '-' {
					t.Errorf("of %d, %s: %.200q, %v", n, text, reply, err)
				} else if text == "return "+call && !strings.HasPrefix(string(reply), fmt.Sprintf("*%d\r\n", want)) {
					t.Errorf("of %d, %s: %.50q, want %d items", n, text, reply, want)
				}
			}
		}
		s.eval(bulks(numbers), "return redis.call('smembers', KEYS[1])", ints) // as an intset has them
		const pairing = `local names, values = redis.call('hkeys', KEYS[1]), redis.call('hvals', KEYS[1])
for i, name in ipairs(names) do if redis.call('hget', KEYS[1], name) ~= values[i] then return 0 end end return #names`
		s.eval(fmt.Sprintf(":%d\r\n", n), pairing, hash)
	}
	s.eval("*0\r\n", "return redis.call('smembers', KEYS[1])", "none")
	s.eval("*0\r\n", "return redis.call('hvals', KEYS[1])", "none")
	s.eval("-WRONGTYPE ", "return redis.call('hvals', KEYS[1])", "set8")
	s.eval("-ERR Wrong number of args", "return redis.call('hgetall')", "set8")
}

func bulks(words []string) string {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	return text
}

// A lock for readers that is a set, whose LEAVE tells who is left.
const (
	joinReaders  = `redis.call('sadd', KEYS[1], ARGV[1]) redis.call('pexpire', KEYS[1], 60000) return redis.call('smembers', KEYS[1])`
	leaveReaders = `redis.call('srem', KEYS[1], ARGV[1]) return redis.call('smembers', KEYS[1])`
	takeToWrite  = `if redis.call('exists', KEYS[1], KEYS[2]) == 0 then redis.call('set', KEYS[2], ARGV[1], 'PX', 60000) return 1 end return 0`
)

func TestReadersThatLeaveAreGone(t *testing.T) {
	s := startSplit(t)
	other := dial(t, s.addr)
	for round := range 20 {
		key, writer := fmt.Sprint("readers", round), fmt.Sprint("writer", round)
		for i := range 40 {
			s.evalAny("*", joinReaders, key, fmt.Sprint("reader-", i*31%40))
		}
		for i := range 40 {
			s.evalAny("*", leaveReaders, key, fmt.Sprint("reader-", i))
		}
		s.everywhere([]string{":0\r\n", ":0\r\n", ":0\r\n"}, "EXISTS", key)
		expect(t, other, ":1\r\n", "EVAL", takeToWrite, "2", key, writer, "me")
	}
}

func (s *split) evalAny(prefix, text, key string, args ...string) {
	s.Helper()
	reply, err := s.client.Do(append([]string{"EVAL", text, "1", key}, args...)...)
	if err != nil || !strings.HasPrefix(string(reply), prefix) {
		s.Fatalf("got %q, %v", reply, err)
	}
}

// What a master has missed before does not make it lose what it did as the others did: a reader that leaves stays gone.
func TestWhoAnswersOtherwiseAndDidTheSameKeepsThat(t *testing.T) {
	s := startSplit(t)
	for i := range s.masters {
		s.on(i, "SADD", "k", "me", "x")
		s.on(i, "PEXPIRE", "k", "60000")
	}
	s.on(2, "SADD", "k", "y")
	s.evalAny("*1\r\n$1\r\nx\r\n", leaveReaders, "k", "me")
	s.everywhere([]string{":0\r\n", ":0\r\n", ":0\r\n"}, "SISMEMBER", "k", "me")
	s.everywhere([]string{":0\r\n", ":0\r\n", ":1\r\n"}, "SISMEMBER", "k", "y")
}

// What is another in every process is one for all masters, or refused by name.
func TestScriptsSeeOneProcess(t *testing.T) {
	s := startSplit(t)
	for i := range s.masters { // pasts that differ
		for range i {
			s.on(i, "EVAL", "return math.random()", "0")
		}
	}
	for _, text := range []string{
		`return math.random(1000000000)`, `return tostring(math.random())`, `return {math.random(), math.random(5), math.random(3, 9)}`,
		`local r = math['ran' .. 'dom'] return r(1000000)`, `local m = math return m.random(99999999)`, `return _G.math.random(99999999)`,
		`return tostring({})`, `return tostring(redis.call) .. tostring(redis)`, `return tostring(function() end)`, `return _G['to' .. 'string']({})`,
		`local t = {} return {tostring(t), tostring(t)}`, `return tostring(coroutine.create(function() end))`,
		`local t = {} for k in pairs({a = 1, b = 2, c = 3, d = 4}) do t[#t + 1] = k end return t`, `collectgarbage() return 1`,
		`local t = redis.call('time') return t[1] * 1000 + math.floor(t[2] / 1000)`, `local t = redis.call('time') return t[1] + t[2] / 1000000`,
		`local t = redis.call('time') return t[1] * 1000000 + t[2]`, `return 1.5`, `return {0.1, {-2.5, {ok = 'x'}}}`,
	} {
		for range 5 {
			if reply, err := s.client.Do("EVAL", text, "1", "k"); err != nil || reply[0] == '-' {
				t.Errorf("%s: %q, %v", text, reply, err)
			}
		}
	}
	for text, why := range map[string]string{
		`return collectgarbage('count')`: "it calls 'collectgarbage'", `return gcinfo()`: "it calls 'gcinfo'",
		`local t = {} for k in pairs({[{}] = 1, [{}] = 2}) do t[#t + 1] = 1 end return t`: "it goes through a table whose keys are tables",
		`return redis.call('object', 'freq', KEYS[1])`:                                    "it calls 'object freq'",
		`return redis.call('OBJECT', 'IdleTime', KEYS[1])`:                                "it calls 'object idletime'",
	} {
		reply, err := s.client.Do("EVAL", text, "1", "k")
		if err != nil || !strings.Contains(string(reply), "cannot be run by quorum: "+why) {
			t.Errorf("%s: %q, %v", text, reply, err)
		}
	}
	const locking = `local token = tostring(math.random(1000000000)) if redis.call('set', KEYS[1], token, 'NX', 'PX', 60000) then return token end return false`
	tokens := map[string]bool{}
	for i := range 80 {
		key := fmt.Sprint("random", i)
		reply, err := s.client.Do("EVAL", locking, "1", key)
		token, ok := harness.Bulk(reply)
		if err != nil || !ok || tokens[token] {
			t.Fatalf("%q, %v", reply, err)
		}
		tokens[token] = true
		expect(t, s.client, string(reply), "GET", key)
	}
}

// Numbers at random are those of Redis, from the same seed.
func TestRandomNumbersAreRedissOwn(t *testing.T) {
	s := startSplit(t)
	for _, seed := range []string{"0", "1", "42", "-7", "1795886465", "2147483647", "4294967295.5"} {
		text := "math.randomseed(" + seed + ") local t = {} for i = 1, 200 do t[#t + 1] = tostring(math.random()) t[#t + 1] = math.random(i) t[#t + 1] = math.random(-i, 2 * i) end return t"
		s.eval(s.on(0, "EVAL", text, "1", "k"), text, "k")
	}
}
