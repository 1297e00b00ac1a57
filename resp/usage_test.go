package resp

import (
	"slices"
	"testing"
)

func TestEveryCommandWithArgumentsHasItsUsage(t *testing.T) {
	for _, cmd := range allCommands().rows {
		for _, row := range append([]*command{cmd}, cmd.subs...) {
			words := 1
			if row != cmd {
				words = 2
			}
			without := []string{"client|list", "client|kill", "client|tracking", "client|maint_notifications", "client|capa"}
			switch has := row.usage != ""; {
			case len(row.subs) > 0 || slices.Contains(without, row.full):
			case !has && row.arity > words:
				t.Errorf("%s has arguments, and no usage", row.full)
			case has && row.arity == words:
				t.Errorf("%s has no arguments, but a usage", row.full)
			case has != (len(row.arguments()) > 0):
				t.Errorf("%s: %q", row.full, row.arguments())
			}
		}
	}
}
