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
