package integration

import (
	"crypto/sha1"
	"fmt"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// A master has nothing of a lock that is extended: in whatever way that is done, it has the same as the others afterwards.
func TestAMasterThatLacksALockIsGivenItWhenThatIsExtended(t *testing.T) {
	const token, other = "c7d5e1f0-2a64-4b4e-9a53-0d3c1c6f2b1a:42", "c7d5e1f0-2a64-4b4e-9a53-0d3c1c6f2b1a:43"
	take := []string{"SET", "lock", token, "NX", "PX", "30000"}
	split := startSplit(t)
	for _, test := range []struct{ take, extend, read []string }{
		{take, []string{"EXTEND", "lock", token, "30000"}, []string{"GET", "lock"}},
		{take, []string{"PEXPIRE", "lock", "30000"}, []string{"GET", "lock"}},
		{
			[]string{"EVAL", redissonLock, "1", "lock", "30000", token},
			[]string{"EVAL", redissonRenew, "2", "lock", "another", "30000", token, other}, []string{"HGETALL", "lock"},
		},
	} {
		t.Run(test.extend[0], func(t *testing.T) {
			if test.extend[0] == "EVAL" {
				requireOneVersion(t, "what DUMP tells")
			}
			s := *split
			s.T = t
			do := func(args []string) {
				if reply, err := s.client.Do(args...); err != nil || strings.HasPrefix(string(reply), "-") {
					t.Fatalf("%q: %s, %v", args, reply, err)
				}
				s.settle()
			}
			do(test.take)
			s.on(2, "DEL", "lock")
			do(test.extend)
			want := s.on(0, test.read...)
			if !strings.Contains(want, token) {
				t.Fatalf("lost: %q", want)
			}
			s.everywhere([]string{want, want, want}, test.read...)
			do([]string{"DEL", "lock"})
		})
	}
}

// So it is by a script that replies with a list, if a row says that its first item grants.
func TestAMasterThatLacksALockIsGivenItByAScriptThatRepliesWithAList(t *testing.T) {
	const extend = "local left = redis.call('pttl', KEYS[1]) if redis.call('get', KEYS[1]) ~= ARGV[1] then return {0, left} end " +
		"redis.call('pexpire', KEYS[1], ARGV[2]) return {1, left}"
	s := &split{T: t, masters: startMasters(t, 3)}
	s.addr = startProxy(t, harness.Addrs(s.masters), "--scripts", fmt.Sprintf("%x:extend:first", sha1.Sum([]byte(extend)))).Addr
	s.client = dial(t, s.addr)
	allVote(t, s.client, s.masters)
	if reply, err := s.client.Do("SET", "lock", "me", "NX", "PX", "30000"); err != nil || string(reply) != "+OK\r\n" {
		t.Fatalf("got %q, %v", reply, err)
	}
	s.settle()
	for i := range s.masters {
		s.on(i, "DEL", "lock")
		if reply, err := s.client.Do("EVAL", extend, "1", "lock", "me", "30000"); err != nil || !strings.HasPrefix(string(reply), "*2\r\n:1\r\n") {
			t.Fatalf("without master %d: got %q, %v", i+1, reply, err)
		}
		s.everywhere([]string{"$2\r\nme\r\n", "$2\r\nme\r\n", "$2\r\nme\r\n"}, "GET", "lock")
	}
	if reply, err := s.client.Do("EVAL", extend, "1", "lock", "you", "30000"); err != nil || !strings.HasPrefix(string(reply), "*2\r\n:0\r\n") {
		t.Errorf("a stranger extends: got %q, %v", reply, err)
	}
}
