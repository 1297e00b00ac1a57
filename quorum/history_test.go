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

// A master whose connection broke may have run what it had not told yet, or not: both are known, however often it has told either.
func TestWhatAMasterHasToldLastIsKnownBesideWhatItMayHaveRunSince(t *testing.T) {
	var h history
	h.init()
	k := Key{Name: "k"}
	for _, value := range []string{"forgotten", "told", "told", "run", "told", "run"} {
		h.learn(k, 1, 3, digestOf(value), 1)
	}
	if all := h.of(k, 1, h.now()); len(all) != 2 || all[0].digest != digestOf("run") || all[1].digest != digestOf("told") {
		t.Errorf("known: %v", all)
	}
	if was := h.of(k, 1, h.now()-1); len(was) != 1 || was[0].digest != digestOf("told") {
		t.Errorf("known before: %v", was)
	}
	if others := h.of(k, 0, h.now()); others != nil {
		t.Errorf("another master has %v", others)
	}
}
