package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A figure that is not listed has no median, and is in no file.
func TestEveryFigureOfAResultIsListed(t *testing.T) {
	var count func(reflect.Type) int
	count = func(of reflect.Type) int {
		if of.Kind() != reflect.Struct {
			return 1
		}
		n := 0
		for i := range of.NumField() {
			n += count(of.Field(i).Type)
		}
		return n
	}
	if fields := count(reflect.TypeFor[result]()) - 1; fields != len(figuresOf) { // one is the count of requests
		t.Errorf("%d figures are listed, a result has %d", len(figuresOf), fields)
	}
	for _, m := range figuresOf {
		var r result
		m.set(&r, 3)
		if got := m.get(&r); got != 3 || len(r.values()) != 1 || r.values()[m.name] != 3 {
			t.Errorf("%s: %v, %v", m.name, got, r.values())
		}
	}
}

func TestFiguresAreWritten(t *testing.T) {
	r := &report{figures: []figure{figureOf("a", 8, 24, 6), figureOf("lock <&> proxy", 2)}}
	for i := range r.figures {
		r.figures[i].part = "set"
	}
	dir := t.TempDir()
	if err := errors.Join(r.writeJSON(filepath.Join(dir, "figures.json"), settings{}), r.writeCharts(dir)); err != nil {
		t.Fatal(err)
	}
	var got struct{ Figures []row }
	text, err := os.ReadFile(filepath.Join(dir, "figures.json"))
	if err := errors.Join(err, json.Unmarshal(text, &got)); err != nil {
		t.Fatal(err)
	}
	if len(got.Figures) != 2 || got.Figures[0].Median["per_second"] != 8 || len(got.Figures[0].Rounds) != 3 {
		t.Errorf("%s", text)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "set.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
	}
	if bars := strings.Count(string(svg), "<rect"); bars != 3 { // and the background
		t.Errorf("%d rectangles:\n%s", bars, svg)
	}
	if _, err := os.Stat(filepath.Join(dir, "hot.svg")); err == nil {
		t.Error("there is a chart of what was not measured")
	}
}

func TestProcessorTimeIsThatOfTheRequests(t *testing.T) {
	busy := account{}.charged(func(load) (result, error) {
		for start := time.Now(); time.Since(start) < 100*time.Millisecond; {
		}
		return result{count: 10}, nil
	})
	got, err := busy(load{})
	if err != nil {
		t.Skip("NOT RUN: the kernel does not account as Linux does: ", err)
	}
	if each := got.spent.client.all(); each <= 0 || each > 100_000 {
		t.Errorf("one of ten requests took %.0f µs of 100,000, or less, for all", each)
	}
}

// Scripts of one length that differ in their last bytes only.
func TestAScriptHasItsSize(t *testing.T) {
	for _, size := range []int{300, 3000} {
		if got := len(scriptOf(size)); got != size {
			t.Errorf("%d bytes, want %d", got, size)
		}
	}
}

// Ratios are of rounds, which do not know whose they are.
func TestAProxysTimeIsComparedWithThatOfOneRedis(t *testing.T) {
	r := &report{}
	for subject, spent := range map[string]costs{straight: {master: cpu{2, 8}}, "lockproxy, 3 masters": {proxy: cpu{6, 9}, master: cpu{1, 1}}} {
		round := result{spent: spent}
		r.figures = append(r.figures, figure{what: "SET NX", subject: subject, clients: 50, pipeline: 1, result: round, rounds: []result{round}})
	}
	if got, measured := r.costTargets(3)[0].got(); !measured || got.value != 1.5 {
		t.Errorf("%v, %v", got, measured)
	}
}
