package vote

import (
	"strings"
	"testing"
)

// Each master is written as who waits there, in order; "!x" says that x holds the lock there, "+" that nobody waits there, and it has
// granted the lock to z, who asks, "-" that the master did not answer.
func TestWhoIsFirst(t *testing.T) {
	for _, test := range []struct {
		masters    string
		who        string
		everywhere bool
	}{
		{"a b|a b|a b", "a", true},
		{"a b|b a|b a", "b", false},
		{"a b|b a|-", "a", false},             // as far from the front: by name
		{"b a c|c a b|a b c", "a", false},     // the fewest are before a
		{"a|c b|b c", "b", false},             // a has one place, and may have given up
		{"a b||", "a", true},                  // who is alone is granted where nobody waits
		{"a b|b a|", "a", false},              // where nobody waits may be quarantine
		{"||", "", true},                      // nobody waits
		{"!x|!x|a b", "", true},               // x has the lock
		{"!x|a b|x a b", "x", false},          // x is about to have it
		{"!x|a b|b a", "a", false},            // x has a vote, and no place
		{"-|-|-", "", true},                   // nobody answered
		{"!x|-|-", "x", true},                 // x may have the lock
		{"a b|b a|c a b|a c b|b", "b", false}, // five masters
		{"a z|+|-", "z", false},               // a has one place, and may have left
		{"a z|a z|+", "a", true},              // a waits
		{"a z|b z|+", "z", false},
		{"a|+|-", "a", true}, // z does not wait
		{"a z|||", "a", true},
		{"a z|a z|+|-|-", "z", false},
	} {
		var replies []any
		grants := 0
		for master := range strings.SplitSeq(test.masters, "|") {
			if master == "-" {
				replies = append(replies, nil)
				continue
			}
			holder, queue := "", []any{}
			switch {
			case strings.HasPrefix(master, "!"):
				holder = master[1:]
			case master == "+":
				grants++
			default:
				for _, who := range strings.Fields(master) {
					queue = append(queue, who)
				}
			}
			replies = append(replies, []any{holder, queue, int64(0)})
		}
		if who, everywhere := FirstOf(replies, "z", grants); who != test.who || everywhere != test.everywhere {
			t.Errorf("%q: got %q, %v, want %q, %v", test.masters, who, everywhere, test.who, test.everywhere)
		}
	}
}

func TestWhenAQuorumMayBeFree(t *testing.T) {
	told := func(ms int64) any { return []any{"", []any{}, ms} }
	for _, test := range []struct {
		replies []any
		want    int64
	}{
		{[]any{told(30), told(10), told(20)}, 20},
		{[]any{told(0), told(10), told(20)}, 10},
		{[]any{told(0), told(20), told(0)}, 0},
		{[]any{told(30), nil, told(20)}, 30},
		{[]any{told(30), nil, nil}, Untold},
		{[]any{told(9), told(7), told(8), told(6), told(5)}, 7},
	} {
		if got := FreeIn(test.replies); got != test.want {
			t.Errorf("%v: got %d, want %d", test.replies, got, test.want)
		}
	}
}
