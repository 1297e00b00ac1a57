package quorum

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func (w *world) publish(channel, message string) Published {
	c := make(chan Published, 1)
	w.Publish(channel, message, func(p Published) { c <- p })
	return <-c
}

func TestAMessageGoesToAllMastersInOneEnvelope(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		first, second := w.publish("news", "0"), w.publish("news", "0")
		for _, p := range []Published{first, second} {
			if known := slices.DeleteFunc(p.Receivers, func(n int64) bool { return n == -1 }); p.Err != nil || len(known) < 2 || known[0] != 4 {
				t.Errorf("got %v, %v", p.Receivers, p.Err)
			}
		}
		w.settle()
		var sent []string
		for _, f := range w.fakes {
			f.mu.Lock()
			sent = append(sent, strings.Join(f.log, "\n"))
			f.mu.Unlock()
		}
		if sent[0] != sent[1] || sent[1] != sent[2] || strings.Count(sent[0], "PUBLISH news lockproxy:") != 2 {
			t.Errorf("the masters were sent\n%s", strings.Join(sent, "\n\n"))
		}
		if a, b, _ := strings.Cut(sent[0], "\n"); a == b {
			t.Error("two messages that are alike have one label")
		}
	})
}

func TestAMessageThatNoQuorumHasIsAnError(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[0].die()
		w.settle()
		if p := w.publish("news", "0"); p.Err != nil {
			t.Errorf("one master down: %v", p.Err)
		}
		w.fakes[1].mu.Lock()
		w.fakes[1].fail["PUBLISH"] = "NOPERM no permission"
		w.fakes[1].mu.Unlock()
		var none *NoQuorum
		if p := w.publish("news", "0"); !errors.As(p.Err, &none) || !strings.Contains(p.Err.Error(), "NOPERM") {
			t.Errorf("got %v", p.Err)
		}
	})
}

func TestAPollHasTheAnswersOfAQuorum(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.fakes[2].stall()
		c := make(chan Polled, 1)
		w.fakes[0].set("k", "x", 1e9)
		w.Poll([]any{"GET", "k"}, func(s Polled) { c <- s })
		if s := <-c; s.Err != nil || !slices.Equal(s.Replies, []any{"x", nil, nil}) {
			t.Errorf("got %v, %v", s.Replies, s.Err)
		}
	})
}

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
