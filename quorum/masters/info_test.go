package masters

import "testing"

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

func TestWhatKeepsAMasterFromEvicting(t *testing.T) {
	for _, test := range []struct {
		memory         []any
		setting, value string
	}{
		{[]any{"maxmemory", "0", "maxmemory-policy", "noeviction"}, "maxmemory-policy", "noeviction"},
		{[]any{"maxmemory", "1000", "maxmemory-policy", "noeviction"}, "maxmemory-policy", "noeviction"},
		{[]any{"maxmemory", "0", "maxmemory-policy", "allkeys-lru"}, "maxmemory", "0"},
		{[]any{"maxmemory", "1000", "maxmemory-policy", "allkeys-lru"}, "", ""},
		{[]any{}, "", ""},
	} {
		i := Info{MaxMemoryPolicy: "noeviction"} // as INFO has it
		i.ReadConfig(test.memory)
		if setting, value := i.Restraint(); setting != test.setting || value != test.value {
			t.Errorf("%v: %s %s keeps it from evicting", test.memory, setting, value)
		}
	}
	for _, reply := range []any{nil, []any{}, []any{"maxmemory", "1"}, []any{"maxmemory"}} {
		if IsValue(reply, "0") {
			t.Errorf("%v is what it was", reply)
		}
	}
}
