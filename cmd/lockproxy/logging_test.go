package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lockproxy/cmd/lockproxy/config"
)

// A gate is a writer that takes one thing each time that somebody lets it.
type gate struct {
	let   chan struct{}
	taken strings.Builder
}

func (g *gate) Write(b []byte) (int, error) {
	<-g.let
	return g.taken.Write(b)
}

func TestTheLogTellsHowManyOfItsLinesAreMissing(t *testing.T) {
	g := &gate{let: make(chan struct{})}
	l := newLogbook(config.Default(), g)
	log := newLogger(config.Default(), l)
	log.Info("the first")
	g.let <- struct{}{}
	const more = 10
	for i := range logAhead + 1 + more { // one may be on its way
		log.Info("line", "n", i)
	}
	close(g.let)
	l.Close()
	out := g.taken.String()
	kept := strings.Count(out, "msg=line")
	if want := fmt.Sprintf("lines=%d\n", logAhead+1+more-kept); kept < logAhead || kept > logAhead+1 || !strings.HasSuffix(out, want) {
		t.Errorf("%d lines are there, and at the end %q", kept, out[max(0, len(out)-200):])
	}
	for i, line := range strings.Split(out, "\n")[1 : 1+logAhead] {
		if !strings.HasSuffix(line, fmt.Sprint("n=", i)) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}

// A number would be nanoseconds, which nobody expects.
func TestDurationsAreTheSameTextInBothFormats(t *testing.T) {
	for format, want := range map[string]string{"text": ` at_most=1m0.5s`, "json": `,"at_most":"1m0.5s"`} {
		cfg := config.Default()
		cfg.LogFormat = format
		var out strings.Builder
		newLogger(cfg, &out).Info("wait", "at_most", time.Minute+500*time.Millisecond)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: no %q in %q", format, want, out.String())
		}
	}
}
