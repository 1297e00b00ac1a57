package quorum

import (
	"testing"

	"lockproxy/quorum/vote"
)

// answers returns what masters told in the wrapper's encoding, judged by a rule; nil for "".
func answers(t *testing.T, rule *vote.Rule, told ...string) (all []*vote.Answer) {
	t.Helper()
	for _, text := range told {
		if text == "" {
			all = append(all, nil)
			continue
		}
		a, err := vote.Parse([]any{text, ""}, &vote.Source{})
		if err != nil {
			t.Fatal(err)
		}
		rule.Judge(a)
		all = append(all, a)
	}
	return all
}

// A master that lacks a place tells for how long those before it may wait, or for how long the lock was held there.
func TestWhoWaitsForALockThatIsFreeAsksAgainAsAnyMasterSays(t *testing.T) {
	for _, test := range []struct {
		free, want int64
		told       []string
	}{
		{0, 0, []string{":0;", ":330000;", ":0;"}},
		{0, 0, []string{":0;", ":330000;", ""}},
		{0, 330_000, []string{":630000;", "_", ":330000;"}},
		{0, 630_000, []string{"", "_", ""}},
		{vote.Untold, 630_000, []string{":0;", "", ""}},
		{29_000, 29_000, []string{":0;", ":330000;", ":28000;"}},
	} {
		rule := vote.Rule{Merge: vote.Taking, Granted: func(v vote.Value) bool { return v.Kind == vote.NilValue }}
		q := &fairQueue{of: &scriptRound{req: RunRequest{Rule: rule}, all: answers(t, &rule, test.told...)}, free: test.free}
		if got := q.sooner(vote.Value{Kind: vote.IntValue, Int: 630_000}); got.Int != test.want {
			t.Errorf("free in %d, %q: got %d, want %d", test.free, test.told, got.Int, test.want)
		}
	}
}
