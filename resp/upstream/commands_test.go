package upstream

import (
	"strings"
	"testing"
)

func TestWhichCommandsLeaveNoState(t *testing.T) {
	row := func(name string, first int64, flags ...any) []any {
		return []any{name, int64(2), flags, first, first, int64(1), []any{}, []any{}, []any{}, []any{}}
	}
	config := row("config", 0)
	config[9] = []any{row("config|get", 0, "admin", "noscript")}
	object := row("object", 0)
	object[9] = []any{row("object|encoding", 2, "readonly")}
	commands := parseCommands([]any{row("get", 1, "readonly"), row("blpop", 1, "write", "noscript"), row("xread", 0, "readonly", "movablekeys"),
		row("sort", 1, "movablekeys"), row("bzmpop", 1, "blocking"), row("ft.search", 1, "module"), row("dbsize", 0, "readonly"),
		row("select", 0), row("spublish", 1, "pubsub"), row("ssubscribe", 1, "pubsub", "noscript"), row("time", 0), config, object})
	for command, want := range map[string]bool{"get k": true, "GET k": true, "GET": true, "blpop q 0": false, "XREAD STREAMS a 0": false, "SORT a": false,
		"BZMPOP 0 1 a MIN": false, "FT.SEARCH a": false, "DBSIZE": true, "SELECT 1": false, "SPUBLISH a b": true, "SSUBSCRIBE a": false, "TIME": false,
		"CONFIG GET x": false, "config": false, "OBJECT ENCODING k": true, "OBJECT HELP": false, "NOSUCH": false, strings.Repeat("x", 100): false} {
		if got := commands.Stateless(strings.Fields(command)); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}

func TestHowManyArgumentsACommandMayHave(t *testing.T) {
	row := func(name string, arity int64, subs ...any) []any {
		return []any{name, arity, []any{}, int64(0), int64(0), int64(0), []any{}, []any{}, []any{}, subs}
	}
	commands := parseCommands([]any{row("get", 2), row("del", -2), row("object", -2, row("object|encoding", 3))})
	for command, want := range map[string]bool{"GET": false, "get k": true, "get k k": false, "DEL": false, "del k": true, "del k k": true,
		"object": false, "object encoding k": true, "OBJECT ENCODING": false, "object nosuch k": false, "nosuch": false} {
		if got := commands.Accepts(strings.Fields(command)); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}

func TestWhichCommandsMayWait(t *testing.T) {
	commands := parseCommands([]any{ // six fields, as servers older than Redis 7 have them, and newer ones
		[]any{"get", int64(2), []any{"readonly", "fast"}, int64(1), int64(1), int64(1)},
		[]any{"blpop", int64(-3), []any{"write", "noscript"}, int64(1), int64(-2), int64(1)},
		[]any{"xread", int64(-4), []any{"readonly", "movablekeys"}, int64(0), int64(0), int64(0)},
		[]any{"bzmpop", int64(-5), []any{"write", "blocking", "movablekeys"}, int64(0), int64(0), int64(0), []any{}, []any{}, []any{}, []any{}},
		[]any{"ft.search", int64(-2), []any{"readonly", "module"}, int64(1), int64(1), int64(1)},
	})
	for command, want := range map[string]bool{"GET k": false, "BLPOP q 0": true, "xread BLOCK 0 STREAMS s $": true, "BZMPOP 0 1 a MIN": true,
		"FT.SEARCH a": true, "NOSUCH": true} {
		if got := commands.MayWait(strings.Fields(command)); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}

func TestKeysOfCommands(t *testing.T) {
	row := func(name string, first, last, step int64, flags []any, subs ...any) any {
		return []any{name, int64(-2), flags, first, last, step, nil, nil, nil, subs}
	}
	c := parseCommands([]any{
		row("incr", 1, 1, 1, nil), row("mset", 1, -1, 2, nil), row("sort", 1, 1, 1, []any{"write", "movablekeys"}), row("keys", 0, 0, 0, nil),
		row("object", 0, 0, 0, nil, row("object|freq", 2, 2, 1, nil)), "no row", []any{"short"},
	})
	for _, k := range []struct {
		command, keys string
		exact         bool
	}{
		{"INCR a", "a", true}, {"mset a 1 b 2", "a b", true}, {"MSET", "", true}, {"SORT a STORE b", "a STORE b", false},
		{"KEYS *", "", true}, {"OBJECT FREQ a", "a", true}, {"OBJECT HELP", "", true}, {"OBJECT", "", true}, {"NOSUCH a", "", true},
	} {
		got, exact := c.Keys(strings.Fields(k.command))
		if strings.Join(got, " ") != k.keys || exact != k.exact {
			t.Errorf("%s: %q, %v", k.command, got, exact)
		}
	}
}
