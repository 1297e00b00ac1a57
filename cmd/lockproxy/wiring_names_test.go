package main

import (
	"strings"
	"testing"

	"lockproxy/cmd/lockproxy/config"
)

func TestWhichNamesAreLocksIsSaidInTheSameWay(t *testing.T) {
	say := func(db int, patterns ...string) string {
		c := &config.Config{LockKeys: patterns}
		c.Upstream.Addr, c.Upstream.Database = "upstream:6379", db
		return namesOfLocks(c)
	}
	if a, b := say(0, "a", "b"), say(0, "b", "a"); a != b {
		t.Errorf("%q and %q", a, b)
	}
	long := strings.Repeat("x", 2*namesMax)
	different := map[string]bool{
		say(0, "a"): true, say(0, "a", "b"): true, say(1, "a"): true, say(0, long+"1"): true, say(0, long+"2"): true,
		namesOfLocks(&config.Config{Masters: []config.Master{{}}}): true,
	}
	if len(different) != 6 {
		t.Error(different)
	}
}
