package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// What COMMAND DOCS says of arguments, which redis-cli shows as hints, is what Redis says.
func TestCommandDocsHasTheArgumentsThatRedisHas(t *testing.T) {
	tw := startTwin(t, 1)
	oracle, proxy := hints(t, tw.oracle.Addr), hints(t, tw.proxy.Addr)
	more := map[string]string{
		"lock": "key ttl-ms [TOKEN token] [WAIT ms] [HOLD]", "fence": "key fence", "locks": "[MATCH pattern] [COUNT count]",
		"delex": "key [IFEQ value | IFNE value]", "client|setinfo": "<LIB-NAME libname | LIB-VER libver>",
		"unlock": "key token", "extend": "key token ttl-ms", "lockinfo": "key", "forceunlock": "key", "delifeq": "key value", "client|no-touch": "<ON | OFF>",
	}
	compared := 0
	for name, hint := range proxy {
		want, has := oracle[name]
		switch name {
		case "set": // which has more
			want = strings.Replace(want, "NX | XX", "NX | XX | IFEQ value | IFNE value", 1)
		case "client|list", "client|kill", "client|tracking": // which have none
			continue
		}
		if !has {
			want = more[name] // a command that Redis does not have needs its arguments there
		}
		if hint != want {
			t.Errorf("%s: %q, want %q, by Redis; of a command that Redis does not have, by the table more of this test", name, hint, want)
		}
		if has && want != "" {
			compared++
		}
	}
	if compared < 60 {
		t.Errorf("only %d commands were compared", compared)
	}
}

// hints returns the arguments of each command and subcommand as a server tells of them, in the notation of Redis's pages.
func hints(t *testing.T, addr string) map[string]string {
	t.Helper()
	found := map[string]string{}
	var read func(docs any)
	read = func(docs any) {
		for name, doc := range docs.(map[any]any) {
			fields := doc.(map[any]any)
			found[name.(string)] = joined(fields["arguments"], " ")
			if subs, ok := fields["subcommands"]; ok {
				read(subs)
			}
		}
	}
	read(replyOf(t, addr, "COMMAND", "DOCS"))
	return found
}

func replyOf(t *testing.T, addr string, command ...any) any {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	reply, err := client.Do(context.Background(), command...).Result()
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func joined(arguments any, by string) string {
	list, _ := arguments.([]any)
	texts := make([]string, len(list))
	for i, argument := range list {
		texts[i] = written(argument.(map[any]any))
	}
	return strings.Join(texts, by)
}

// written is one argument. A block of one is that one.
func written(argument map[any]any) string {
	text, _ := argument["name"].(string)
	of, _ := argument["arguments"].([]any)
	flags := fmt.Sprint(argument["flags"])
	optional, many := strings.Contains(flags, "optional"), strings.Contains(flags, "multiple")
	token, _ := argument["token"].(string)
	kind := argument["type"]
	switch kind {
	case "pure-token":
		text, token = token, ""
	case "oneof":
		text = joined(argument["arguments"], " | ")
	case "block":
		text = joined(argument["arguments"], " ")
	}
	if kind == "oneof" && (token != "" || !optional) || kind == "block" && many && len(of) > 1 {
		text = "<" + text + ">"
	}
	if token != "" {
		text = token + " " + text
	}
	if many {
		text += " ..."
	}
	if optional {
		text = "[" + text + "]"
	}
	return text
}
