package integration

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"lockproxy/integration/harness"
	"lockproxy/quorum"
	"lockproxy/script"
)

// lockproxy scripts explain says of a text what comes of it when it runs: tried with a call of every command that the masters
// have, with as many arguments as it needs at least.
func TestWhatIsExplainedOfACommandIsWhatComesOfIt(t *testing.T) {
	s := startSplit(t)
	refused := 0
	for name, arguments := range commandsOf(t, s.masters[0]) {
		text := "return redis.call('" + name + "'" + strings.Repeat(", KEYS[1]", arguments) + ")"
		lines, err := script.Explain(text, quorum.MayVote)
		if err != nil {
			t.Fatal(err)
		}
		warned := strings.Contains(strings.Join(lines, "\n"), "refused where it calls "+strings.ToUpper(name))
		reply, err := s.client.Do("EVAL", text, "1", "k")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		stopped := bytes.Contains(reply, []byte("cannot be run by quorum: it calls '"+name))
		switch {
		case stopped && !warned:
			t.Errorf("%s is refused, which the explanation does not say: %q", text, reply)
		case warned && reply[0] != '-':
			t.Errorf("%s is said to be refused: %q", text, reply)
		case stopped:
			refused++
		}
	}
	if refused < 10 {
		t.Errorf("only %d commands were refused", refused)
	}
}

// commandsOf returns the commands of a server, and how many arguments each has at least.
func commandsOf(t *testing.T, r *harness.Redis) map[string]int {
	t.Helper()
	names, err := r.Do(0, "EVAL", "local all = {} for _, c in ipairs(redis.call('COMMAND')) do all[#all + 1] = c[1] .. ' ' .. c[2] end return all", "0")
	if err != nil {
		t.Fatal(err)
	}
	list, err := harness.Strings(names)
	if err != nil || len(list) < 200 {
		t.Fatalf("%d commands, %v", len(list), err)
	}
	commands := make(map[string]int, len(list))
	for _, row := range list {
		name, arity, _ := strings.Cut(row, " ")
		n, err := strconv.Atoi(arity)
		if err != nil {
			t.Fatal(fmt.Errorf("%q: %w", row, err))
		}
		commands[name] = max(n, -n) - 1
	}
	return commands
}
