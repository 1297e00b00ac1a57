package resp

import (
	"slices"
	"testing"
)

func TestEveryCommandWithArgumentsHasItsUsage(t *testing.T) {
	without := []string{"client|list", "client|kill", "client|tracking", "command|getkeys", "debug", "quit"}
	for _, cmd := range allCommands().rows {
		for _, row := range append([]*command{cmd}, cmd.subs...) {
			words := 1
			if row != cmd {
				words = 2
			}
			wants := row.arity != words && len(row.subs) == 0 && !slices.Contains(without, row.full)
			if has := row.usage != ""; has != wants {
				t.Errorf("%s: it has a usage: %v, want %v", row.full, has, wants)
			}
			if has := len(row.arguments()) > 0; has != wants {
				t.Errorf("%s: COMMAND DOCS tells of arguments: %v, want %v", row.full, has, wants)
			}
		}
	}
}
