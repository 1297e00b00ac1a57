package wire

import "testing"

func TestGlobs(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"a*c", "abbc", true}, {"a*c", "abb", false},
		{"?", "", false}, {"a?c", "abc", true}, {"[ab]c", "bc", true}, {"[^ab]c", "bc", false}, {"[^ab]c", "cc", true},
		{"[a-c]", "b", true}, {"[c-a]", "b", true}, {"[a-c]", "d", false}, {`\*`, "*", true}, {`\*`, "a", false}, {`a\`, `a\`, true},
		{"[", "[", false}, {"[a", "a", true}, {`[\]]`, "]", true}, {"*a*b*c", "xaybzc", true}, {"*a*b*c", "xaybz", false},
	} {
		if got := Match(c.pattern, c.s); got != c.want {
			t.Errorf("%q on %q: %v", c.pattern, c.s, got)
		}
	}
}
