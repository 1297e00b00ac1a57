package quorum

import (
	"errors"
	"strings"
	"testing"

	"lockproxy/quorum/masters"
)

// Without a name, a deployment is the addresses of its masters, in whatever order; with one, it is their number.
func TestMembersTellDeploymentsApart(t *testing.T) {
	_, all := newFakes(4)
	for _, c := range []struct {
		name      string
		one, that []int
		same      bool
	}{
		{"", []int{0, 1, 2}, []int{2, 0, 1}, true},
		{"", []int{0, 1, 2}, []int{0, 1, 3}, false},
		{"", []int{0, 1, 2}, []int{0, 1, 2, 3}, false},
		{"a", []int{0, 1, 2}, []int{0, 1, 3}, true},
		{"a", []int{0, 1, 2}, []int{0, 1, 2, 3}, false},
	} {
		one, that := pick(all, c.one), pick(all, c.that)
		if same := Members(one, c.name) == Members(that, c.name); same != c.same {
			t.Errorf("%q, %v and %v: the same is %v", c.name, c.one, c.that, same)
		}
	}
	if Members(all, "a") == Members(all, "b") || Members(all, "a") == Members(all, "") {
		t.Error("another name, and the same deployment")
	}
}

func pick[T any](all []T, which []int) (picked []T) {
	for _, i := range which {
		picked = append(picked, all[i])
	}
	return picked
}

// As of something that is given as a master, and is none.
func TestMarksThatCannotBeReadHaveACause(t *testing.T) {
	for want, c := range map[string]*masters.Call{
		"NOPERM":                   {Answered: true, Err: errors.New("NOPERM")},
		"answers as no Redis does": {Answered: true, Reply: "OK"},
	} {
		if _, err := parseMarks(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
