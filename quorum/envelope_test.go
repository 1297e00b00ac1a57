package quorum

import (
	"strings"
	"testing"
)

func TestAnEnvelopeIsOpenedAsItWasSealed(t *testing.T) {
	var a, b labels
	a.init()
	b.init()
	if a.publisher == b.publisher {
		t.Fatal("two publishers have one name")
	}
	var last uint64
	for _, message := range []string{"", "0", "\x00\r\n:", labelPrefix, strings.Repeat("x", 1000)} {
		label := a.next()
		for part := range uint16(3) {
			p, got, ok := OpenEnvelope(seal(label, part, message))
			if !ok || got != message || p.Publisher != a.publisher || p.Order <= last {
				t.Errorf("%q, part %d: got %q, %v, %v after %x", message, part, got, p, ok, last)
			}
			last = p.Order
		}
	}
}

func TestWhatNobodySealedIsNotOpened(t *testing.T) {
	var l labels
	l.init()
	good := seal(l.next(), 0, "m")
	for _, payload := range []string{
		"", "m", labelPrefix, good[:envelopeLen-1], "x" + good, strings.Replace(good, ":m", "xm", 1),
		labelPrefix + l.publisher + "000000000000000g:m", labelPrefix + l.publisher + "-000000000000001:m",
	} {
		if p, message, ok := OpenEnvelope(payload); ok {
			t.Errorf("%q was opened: %v, %q", payload, p, message)
		}
	}
}
