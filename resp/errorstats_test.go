package resp

import (
	"fmt"
	"strings"
	"testing"
)

// Scripts may reply with errors of any code.
func TestErrorCodesAreBounded(t *testing.T) {
	var c errorCounts
	const many = 2 * errorCodesMost
	for i := range many {
		c.add(Error(fmt.Sprintf("CODE%d it is new", i)))
		c.add(Error(strings.Repeat("X", 1<<20)))
	}
	codes := 0
	c.each(func(code string, n int64) {
		if codes++; len(code) > errorCodeSize || n != 1 && code != strings.Repeat("X", errorCodeSize) {
			t.Errorf("%q: %d", code, n)
		}
	})
	if codes != errorCodesMost || c.total() != 2*many {
		t.Errorf("%d codes of %d errors", codes, c.total())
	}
}
