package main

import (
	"bytes"
	"log/slog"
	"regexp"
	"testing"
	"time"

	"lockproxy/quorum"
)

func TestTheLogTellsThatNoAttemptFindsAQuorum(t *testing.T) {
	// looks are a second apart, and each says what was counted since the one before.
	type counted struct {
		found, noQuorum uint64
		known           bool
	}
	for name, c := range map[string]struct {
		looks []counted
		want  string
	}{
		"all well":            {[]counted{{0, 0, false}, {9, 0, false}, {9, 0, false}, {9, 0, false}, {9, 0, false}, {9, 0, false}, {9, 0, false}}, ""},
		"some fail":           {[]counted{{0, 0, false}, {1, 9, false}, {1, 9, false}, {1, 9, false}, {1, 9, false}, {1, 9, false}, {1, 9, false}}, ""},
		"none for a moment":   {[]counted{{0, 0, false}, {0, 9, false}, {0, 9, false}, {5, 0, false}, {0, 9, false}, {0, 9, false}, {5, 0, false}}, ""},
		"nobody asks":         {[]counted{{0, 0, false}, {0, 0, false}, {0, 0, false}, {0, 0, false}, {0, 0, false}, {0, 0, false}, {0, 0, false}}, ""},
		"one asks, and again": {[]counted{{0, 0, false}, {0, 1, false}, {0, 0, false}, {0, 0, false}, {0, 0, false}, {0, 0, false}, {0, 0, false}}, ""},
		"none": {
			[]counted{{0, 0, false}, {0, 9, false}, {0, 9, false}, {0, 9, false}, {0, 9, false}, {0, 9, false}, {0, 9, false}, {0, 9, false}, {0, 0, false}, {3, 0, false}, {3, 9, false}},
			"WARN no attempt finds a quorum: clients get NOQUORUM a late; b error\nINFO attempts find a quorum again\n",
		},
		"none, and it is known why": {
			[]counted{{0, 0, false}, {0, 9, false}, {0, 9, true}, {0, 9, true}, {0, 9, true}, {0, 9, true}, {0, 9, false}, {0, 9, false}, {3, 9, false}},
			"",
		},
		"none, twice": {
			[]counted{{0, 0, false}, {0, 9, false}, {0, 9, false}, {0, 9, false}, {0, 9, false}, {0, 9, false}, {1, 0, false}, {0, 9, false}, {0, 9, false}, {0, 9, false}, {0, 9, false}, {0, 9, false}},
			"WARN no attempt finds a quorum: clients get NOQUORUM a late; b error\nINFO attempts find a quorum again\nWARN no attempt finds a quorum: clients get NOQUORUM a late; b error\n",
		},
	} {
		var log bytes.Buffer
		a := &attempting{log: slog.New(slog.NewTextHandler(&log, nil))}
		now, stats := time.Unix(0, 0), quorum.Stats{}
		masters := []quorum.MasterStatus{{Addr: "a"}, {Addr: "b"}, {Addr: "c"}}
		for _, l := range c.looks {
			stats.Acquired += l.found / 2
			stats.Refused += l.found - l.found/2
			stats.NoQuorum += l.noQuorum
			masters[0].Votes.Failures[quorum.FailedLate] += l.noQuorum
			masters[1].Votes.Failures[quorum.FailedError] += l.noQuorum
			masters[1].Votes.Failures[quorum.FailedLate] += l.noQuorum / 2
			a.look(now, l.known, stats, masters)
			now = now.Add(time.Second)
		}
		got := regexp.MustCompile(`(?m)^time=\S+ level=(\S+) msg="([^"]*)"(?: cause="([^"]*)")?(?: after=\S+)?$`).ReplaceAllString(log.String(), "$1 $2 $3")
		got = regexp.MustCompile(` +\n`).ReplaceAllString(got, "\n")
		if got != c.want {
			t.Errorf("%s:\n%swant\n%s", name, got, c.want)
		}
	}
}
