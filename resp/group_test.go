package resp

import (
	"fmt"
	"strings"
	"testing"

	"lockproxy/resp/group"
)

// groupCounts returns the counts of the group "g": refusals, waits by outcome, holds.
func groupCounts(s *Server) string {
	for _, c := range s.LockGroups() {
		if c.Label == "g" {
			return fmt.Sprintf("%d %d%d%d %d", c.Refused, c.Waited[group.Granted].Count, c.Waited[group.Refused].Count, c.Waited[group.Failed].Count, c.Held.Count)
		}
	}
	return "none"
}

func TestLocksAreCountedByGroups(t *testing.T) {
	r := newRig(t, Config{LockGroups: []group.Rule{{Pattern: "k*", Label: "g"}}})
	c, holder := r.dial(), r.dial()
	for _, step := range []struct {
		by            *client
		command, want string
	}{
		{c, "SET k me NX PX 60000", "0 000 0"},
		{c, "SET k me NX PX 60000", "1 000 0"},
		{c, "SETNX k me", "2 000 0"},
		{c, "SET o me NX PX 60000", "2 000 0"},
		{c, "SET o me NX PX 60000", "2 000 0"}, // of no group
		{c, "LOCK k 60000 TOKEN you", "3 000 0"},
		{c, "LOCK k 60000 TOKEN you WAIT 1", "4 010 0"},
		{c, "EXTEND k me 60000", "4 010 0"},
		{c, "UNLOCK k you", "4 010 0"},
		{c, "UNLOCK k me", "4 010 1"},
		{c, "UNLOCK k me", "4 010 1"},
		{c, "LOCK k 60000 TOKEN me WAIT 1000", "4 110 1"},
		{c, "FORCEUNLOCK k", "4 110 2"},
		{c, "SETNX k me", "4 110 2"},
		{c, "DEL k", "4 110 3"},
		{c, "SET k me PX 60000", "4 110 3"}, // taken without NX: no grant is told
		{c, "DEL k", "4 110 3"},
		{holder, "LOCK k 60000 TOKEN me HOLD", "4 110 3"},
	} {
		step.by.ask(strings.Fields(step.command)...)
		step.by.ask("PING") // answered when the reply before is written, and counted
		if got := groupCounts(r.server); got != step.want {
			t.Errorf("%s: %s, want %s", step.command, got, step.want)
		}
	}
	_ = holder.Close()
	waitFor(t, "the end of the holder's connection ends no hold", func() bool { return groupCounts(r.server) == "4 110 4" })
}

func TestWithoutGroupsNobodyListens(t *testing.T) {
	if s := newRig(t, Config{}).server; listens(s) || s.LockGroups() != nil {
		t.Error("events are made for nobody")
	}
}
