package quorum

import (
	"slices"
	"testing"
)

func TestTurnsOnAKeyAreTakenOneAfterTheOther(t *testing.T) {
	var turns turns
	var began []string
	take := func(who string, names ...string) { turns.take(0, names, func() { began = append(began, who) }) }
	expect := func(want ...string) {
		t.Helper()
		if !slices.Equal(began, want) {
			t.Errorf("%v began, want %v", began, want)
		}
		began = nil
	}
	take("a", "j", "k")
	take("b", "k", "l")
	take("c", "k")
	take("d", "i")
	expect("a", "d")
	turns.give(0, []string{"j", "k"})
	expect("b")
	take("e", "l")
	turns.give(0, []string{"k", "l"})
	expect("c", "e")
	turns.give(0, []string{"k"})
	turns.give(0, []string{"l"})
	turns.give(0, []string{"i"})
	if len(turns.taken) > 0 {
		t.Errorf("%v are still taken", turns.taken)
	}
}
