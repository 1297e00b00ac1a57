package main

import (
	"os"
	"strings"
	"testing"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/quorum"
)

func TestWhichNamesAreLocksIsSaidInTheSameWay(t *testing.T) {
	at := func(addr string, db int, patterns ...string) quorum.Names {
		c := &config.Config{LockKeys: patterns}
		c.Upstream.Addr, c.Upstream.Database = addr, db
		return namesOfLocks(c)
	}
	say := func(db int, patterns ...string) quorum.Names { return at("upstream:6379", db, patterns...) }
	if a, b := say(0, "a", "b"), say(0, "b", "a", "b"); a != b {
		t.Errorf("%v and %v", a, b)
	}
	long := strings.Repeat("x", 2*namesMax)
	different := map[quorum.Names]bool{say(0, "a"): true, say(0, "a", "b"): true, say(1, "a"): true,
		say(0, "a b"): true, say(0, `"a b"`): true, say(0, long+"1"): true, say(0, long+"2"): true}
	if len(different) != 7 {
		t.Error(different)
	}
	if all := namesOfLocks(&config.Config{LockKeys: []string{"a"}}); all != (quorum.Names{}) {
		t.Errorf("without an upstream: %v", all)
	}
	here, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"127.0.0.1:6379", "localhost:6379", "[::1]:6379"} {
		if names := at(addr, 0, "a"); names.For != addr+" on "+here+"/0" {
			t.Errorf("another machine's server may be taken for this one: %s", names.For)
		}
	}
	if names := say(0, "a"); names.For != "upstream:6379/0" {
		t.Error(names.For)
	}
}
