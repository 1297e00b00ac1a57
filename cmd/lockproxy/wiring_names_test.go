package main

import (
	"strings"
	"testing"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/quorum"
)

func TestWhichNamesAreLocksIsSaidInTheSameWay(t *testing.T) {
	say := func(db int, patterns ...string) quorum.Names {
		c := &config.Config{LockKeys: patterns}
		c.Upstream.Addr, c.Upstream.Database = "upstream:6379", db
		return namesOfLocks(c)
	}
	if a, b := say(0, "a", "b"), say(0, "b", "a"); a != b {
		t.Errorf("%v and %v", a, b)
	}
	long := strings.Repeat("x", 2*namesMax)
	different := map[quorum.Names]bool{say(0, "a"): true, say(0, "a", "b"): true, say(1, "a"): true, say(0, long+"1"): true, say(0, long+"2"): true}
	if len(different) != 5 {
		t.Error(different)
	}
	if all := namesOfLocks(&config.Config{LockKeys: []string{"a"}}); all != (quorum.Names{}) {
		t.Errorf("without an upstream: %v", all)
	}
}
