package console

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// A chart is drawn by the page as SVG.
type chart struct {
	Title string
	Unit  string
	Top   string        // the value at the upper edge
	Span  time.Duration // from the left edge to now
	Lines []line
}

// A line is one polyline of a chart.
type line struct {
	Name   string // and the class of its colour
	Now    string // the latest value
	Points string // as SVG has them, in a box of chartWidth by chartHeight
}

const (
	chartWidth  = 600
	chartHeight = 100
)

// charts are those of the last hour, or of the time since the start, if that is less.
func (h *history) charts(now time.Time) []chart {
	all, span := h.points(), chartLeast
	if len(all) > 0 {
		span = min(max(span, now.Sub(all[0].at).Truncate(time.Minute)+time.Minute), chartSpan)
	}
	return []chart{
		draw(now, span, all, "Attempts", "a second", map[string]func(point) float64{
			"acquired": func(p point) float64 { return p.acquired },
			"refused":  func(p point) float64 { return p.refused },
			"noquorum": func(p point) float64 { return p.noQuorum },
		}, "acquired", "refused", "noquorum"),
		draw(now, span, all, "Rounds of votes took", "ms", map[string]func(point) float64{
			"p50": func(p point) float64 { return p.p50 },
			"p99": func(p point) float64 { return p.p99 },
		}, "p50", "p99"),
	}
}

func draw(now time.Time, span time.Duration, all []point, title, unit string, of map[string]func(point) float64, names ...string) chart {
	top := 0.0
	for _, name := range names {
		for _, p := range all {
			top = max(top, of[name](p))
		}
	}
	top = roundUp(top)
	c := chart{Title: title, Unit: unit, Top: number(top), Span: span}
	for _, name := range names {
		var b strings.Builder
		latest := 0.0
		for _, p := range all {
			latest = of[name](p)
			x := chartWidth * (1 - now.Sub(p.at).Seconds()/span.Seconds())
			fmt.Fprintf(&b, "%.1f,%.1f ", max(x, 0), chartHeight*(1-latest/top))
		}
		c.Lines = append(c.Lines, line{Name: name, Now: number(latest), Points: strings.TrimSpace(b.String())})
	}
	return c
}

// roundUp returns 1, 2 or 5 times a power of ten, no less than v.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*power {
			return m * power
		}
	}
	return 10 * power
}

func number(v float64) string {
	if v >= 100 || v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}
