package main

import (
	"cmp"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A chart shows one figure of some rows as bars, in groups.
type chart struct {
	file, title, unit string
	shows             func(figure) bool
	value             func(figure) float64
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func ofPart(part string) func(figure) bool { return func(f figure) bool { return f.part == part } }

var charts = []chart{
	{"set.svg", "SET … NX PX: locks a second", "/s", func(f figure) bool { return f.part == "set" && f.pipeline == 1 }, figure.rate},
	{"pairs.svg", "lock and unlock: pairs a second", "/s", ofPart("pairs"), figure.rate},
	{"far.svg", "masters 5 ms away: p50 of SET … NX PX", " ms", func(f figure) bool { return f.part == "far" && f.what == farName("set", farTrips[1]) },
		func(f figure) float64 { return milliseconds(f.p50) }},
	{"hot.svg", "one key, all clients wait: locks a second", "/s", ofPart("hot"), figure.rate},
	{"hot-wait.svg", "one key, all clients wait: p99 of a lock", " ms", ofPart("hot"), func(f figure) float64 { return milliseconds(f.p99) }},
	{"others.svg", "50 clients lock and unlock: locks a second", "/s", ofPart("others"), figure.rate},
	{"cost.svg", "processor time of one lock in the proxy; for bare Redis, its own", " µs", ofPart("cost"), func(f figure) float64 { return f.spent.server() }},
}

// writeCharts writes the charts whose rows were measured to the directory.
func (r *report) writeCharts(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range charts {
		var rows []figure
		for _, f := range r.figures {
			if c.shows(f) {
				rows = append(rows, f)
			}
		}
		if len(rows) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.svg(rows)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Sizes in a chart, in pixels.
const (
	chartWidth = 720
	barLeft    = 260
	barMax     = chartWidth - barLeft - 90 // a value stands behind the longest
	barHeight  = 16
	lineHeight = 20
)

// colour tells lockproxy, what it is measured against, and peers from each other.
func colour(subject string) string {
	switch {
	case strings.HasPrefix(subject, "lockproxy"):
		return "#2f6fb0"
	case subject == straight:
		return "#7a869a"
	}
	return "#c2813a"
}

// svg draws one bar for each row. Rows of one command and one number of clients stand under one heading.
func (c chart) svg(rows []figure) string {
	var body strings.Builder
	y := 28
	text := func(x int, style, words string) {
		fmt.Fprintf(&body, `<text x="%d" y="%d"%s>%s</text>`+"\n", x, y, style, html.EscapeString(words))
	}
	text(12, ` font-weight="bold"`, c.title)
	longest := c.value(slices.MaxFunc(rows, func(a, b figure) int { return cmp.Compare(c.value(a), c.value(b)) }))
	heading := ""
	for _, f := range rows {
		if next := f.heading(); next != heading {
			heading = next
			y += lineHeight + 6
			text(12, ` fill="#555"`, heading)
		}
		y += lineHeight
		width := int(barMax * c.value(f) / max(longest, 1e-9))
		text(28, "", f.subject)
		fmt.Fprintf(&body, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n",
			barLeft, y-barHeight+4, max(width, 1), barHeight, colour(f.subject))
		text(barLeft+max(width, 1)+6, "", short(c.value(f))+c.unit)
	}
	height := y + 16
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n"+
		`<rect width="%d" height="%d" fill="#fff"/>`+"\n%s</svg>\n", chartWidth, height, chartWidth, height, chartWidth, height, body.String())
}

func (f figure) heading() string {
	words := fmt.Sprintf("%s, %d clients", f.what, f.clients)
	if f.clients == 1 {
		words = f.what + ", 1 client"
	}
	if f.pipeline > 1 {
		words += fmt.Sprintf(", -P %d", f.pipeline)
	}
	return words
}

// short has three digits, and more only before the point.
func short(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
