package console

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// textMax is how much of a name or token a page shows.
const textMax = 200

// printable returns a name or token as a person can read it: any bytes may be in there.
func printable(s string) string {
	cut := ""
	if len(s) > textMax {
		s, cut = s[:textMax], "…"
		for len(s) > 0 && !utf8.ValidString(s) && len(s) > textMax-utf8.UTFMax {
			s = s[:len(s)-1]
		}
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s) + cut
	}
	return s + cut
}

// left tells a duration that is to come.
func left(d time.Duration) string {
	switch {
	case d.Abs() < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// ago tells how long ago a moment was.
func ago(t time.Time) string { return time.Since(t).Round(time.Second).String() + " ago" }
