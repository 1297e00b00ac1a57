package masters

import (
	"slices"
	"testing"
	"time"
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
		if got := i.Durable(time.Second); got != test.want {
			t.Errorf("%v: durable is %v", test.config, got)
		}
		if i.RunID = ""; i.MayBeDurable() != test.want {
			t.Errorf("%v: may be durable is %v", test.config, i.MayBeDurable())
		}
	}
}

// Redis before version 7 answers others before it writes, while a script runs for longer than lua-time-limit.
func TestWhatAnswersBeforeItWritesMayForget(t *testing.T) {
	for _, test := range []struct {
		version, limit, threads string
		patience                time.Duration
		want                    bool
	}{
		{"6.2.14", "5000", "1", 5 * time.Second, true},
		{"6.2.14", "5000", "1", 5001 * time.Millisecond, false},
		{"6.2.14", "50", "1", 100 * time.Millisecond, false},
		{"6.2.14", "0", "1", time.Hour, true}, // no limit
		{"6.2.14", "5000", "4", time.Second, false},
		{"6.2.14", "", "1", time.Second, false},
		{"6.2.14", "5000", "", time.Second, false},
		{"7.0.15", "50", "4", time.Second, true},
		{"10.0.1", "", "", time.Second, true},
	} {
		i := Info{Server: "redis", Version: test.version, RunID: "1"}
		i.ReadConfig([]any{"appendonly", "yes", "appendfsync", "always"})
		if test.limit != "" {
			i.ReadConfig([]any{ScriptLimit, test.limit})
		}
		if test.threads != "" {
			i.ReadConfig([]any{"io-threads", test.threads})
		}
		if got := i.Durable(test.patience); got != test.want {
			t.Errorf("%+v: durable is %v", test, got)
		}
	}
}

// What is written behind data that was not loaded cannot be loaded with it.
func TestWhatWasLoadedInPartMayForgetUntilItIsRewritten(t *testing.T) {
	for told, want := range map[string]bool{
		"":                               true,
		"unexpected_error_replies:0\r\n": true,
		"aof_last_rewrite_time_sec:-1\r\naof_last_bgrewrite_status:ok\r\nunexpected_error_replies:1\r\n": false,
		"aof_last_rewrite_time_sec:0\r\naof_last_bgrewrite_status:err\r\nunexpected_error_replies:1\r\n": false,
		"aof_last_rewrite_time_sec:0\r\naof_last_bgrewrite_status:ok\r\nunexpected_error_replies:1\r\n":  true,
	} {
		i := Info{RunID: "1"}
		i.ReadConfig([]any{"appendonly", "yes", "appendfsync", "always"})
		i.ReadInfo(told)
		if got := i.Durable(time.Second); got != want {
			t.Errorf("%q: durable is %v", told, got)
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
