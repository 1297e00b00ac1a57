package quorum

import "testing"

// A master that lacks a place tells for how long those before it may wait, or for how long the lock was held there.
func TestWhoWaitsForALockThatIsFreeAsksAgainAsAnyMasterSays(t *testing.T) {
	for _, test := range []struct {
		free, want int64
		told       []*answer
	}{
		{0, 0, []*answer{integer(0, ""), integer(330_000, ""), integer(0, "")}},
		{0, 0, []*answer{integer(0, ""), integer(330_000, ""), nil}},
		{0, 330_000, []*answer{integer(630_000, ""), none("1"), integer(330_000, "")}},
		{0, 630_000, []*answer{nil, none("1"), nil}},
		{untold, 630_000, []*answer{integer(0, ""), nil, nil}},
		{29_000, 29_000, []*answer{integer(0, ""), integer(330_000, ""), integer(28_000, "")}},
	} {
		rule := Rule{Merge: Taking, Granted: isNil}
		r := &fairQueue{of: &scriptRound{req: RunRequest{Rule: rule}, all: counted(rule, test.told...).Answers}, free: test.free}
		if got := r.sooner(integer(630_000, "").Value); got.Int != test.want {
			t.Errorf("free in %d, %v: got %d, want %d", test.free, test.told, got.Int, test.want)
		}
	}
}
