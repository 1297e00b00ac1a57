package masters

import (
	"slices"
	"testing"
)

func TestWhatForgetsNothing(t *testing.T) {
	for _, test := range []struct {
		config []any
		want   bool
	}{
		{[]any{"appendonly", "yes", "appendfsync", "always"}, true},
		{[]any{"no-appendfsync-on-rewrite", "no", "appendonly", "yes", "appendfsync", "always"}, true},
		{[]any{"no-appendfsync-on-rewrite", "yes", "appendonly", "yes", "appendfsync", "always"}, false},
		{[]any{"appendonly", "yes", "appendfsync", "everysec"}, false},
		{[]any{"appendonly", "no", "appendfsync", "always"}, false},
	} {
		i := Info{RunID: "1"}
		i.ReadConfig(test.config)
		if i.Durable() != test.want {
			t.Errorf("%v: durable is %v", test.config, i.Durable())
		}
		if i.RunID = ""; i.MayBeDurable() != test.want {
			t.Errorf("%v: may be durable is %v", test.config, i.MayBeDurable())
		}
	}
}

func TestWhatRunsInClusterMode(t *testing.T) {
	for reply, want := range map[string]bool{"# Cluster\r\ncluster_enabled:1\r\n": true, "# Cluster\r\ncluster_enabled:0\r\n": false, "": false} {
		var i Info
		if i.ReadInfo(reply); i.Cluster != want {
			t.Errorf("%q: %v", reply, i.Cluster)
		}
	}
}

func TestWhatKeepsAMasterFromEvicting(t *testing.T) {
	for _, test := range []struct {
		told      []any
		restraint []string
		evicts    bool
	}{
		{[]any{"maxmemory", "0", "maxmemory-policy", "noeviction"}, []string{"maxmemory-policy", "noeviction"}, false},
		{[]any{"maxmemory-policy", "noeviction", "maxmemory", "0"}, []string{"maxmemory-policy", "noeviction"}, false},
		{[]any{"maxmemory", "2000", "maxmemory-policy", "noeviction"}, []string{"maxmemory-policy", "noeviction"}, false},
		{[]any{"maxmemory", "0", "maxmemory-policy", "allkeys-lru"}, []string{"maxmemory", "0"}, false},
		{[]any{"maxmemory", "2000", "maxmemory-policy", "allkeys-lru"}, nil, true},
		{[]any{"maxmemory", "1kb", "maxmemory-policy", "allkeys-lru"}, nil, true},
		{[]any{"maxmemory-policy", "noeviction"}, []string{"maxmemory-policy", "noeviction"}, false},
		{[]any{"maxmemory-policy", "allkeys-lru"}, nil, true},
		{[]any{}, nil, false},
	} {
		i := Info{MaxMemory: 1000, MaxMemoryPolicy: "noeviction"} // as INFO has it
		i.ReadConfig(test.told)
		if !slices.Equal(i.Restraint, test.restraint) || i.Evicts() != test.evicts {
			t.Errorf("%v: %v keeps it from evicting, and it does: %v", test.told, i.Restraint, i.Evicts())
		}
	}
	is := Info{Restraint: []string{"maxmemory", "0"}}
	for _, reply := range []any{nil, "OK", []any{}, []any{"maxmemory", "1"}, []any{"maxmemory"}} {
		if is.IsRestrained(reply) {
			t.Errorf("%v is what it was", reply)
		}
	}
	if !is.IsRestrained([]any{"maxmemory", "0"}) {
		t.Error("it has changed")
	}
}
