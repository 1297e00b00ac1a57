package integration

import (
	"strings"
	"testing"
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
