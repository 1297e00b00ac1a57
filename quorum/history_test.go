package quorum

import (
	"strings"
	"testing"
)

// Keys may be a megabyte long, and there are many.
func TestThePastsOfLongKeysAreNotRemembered(t *testing.T) {
	var p history
	p.init()
	for _, size := range []int{pastNameMax, pastNameMax + 1} {
		p.learn(Key{Name: strings.Repeat("k", size)}, 0, 3, digestOf("v"), 1)
	}
	if p.keys.Len() != 1 {
		t.Errorf("%d keys are remembered, want the short one", p.keys.Len())
	}
}
