package quorum

import (
	"strings"
	"testing"
)

// Keys may be a megabyte long, and there are many.
func TestThePastsOfLongKeysAreNotRemembered(t *testing.T) {
	var h history
	h.init()
	for _, size := range []int{historyNameMax, historyNameMax + 1} {
		h.learn(Key{Name: strings.Repeat("k", size)}, 0, 3, digestOf("v"), 1)
	}
	if h.keys.Len() != 1 {
		t.Errorf("%d keys are remembered, want the short one", h.keys.Len())
	}
}
