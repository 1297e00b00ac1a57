package main

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"testing"
	"time"
)

func TestTheLogTellsWhenAQuorumIsLostAndBack(t *testing.T) {
	lacks := errors.New("NOQUORUM 1 of 3 masters answered, 2 needed: a gone")
	type look struct {
		at   time.Duration
		lack error
	}
	for name, c := range map[string]struct {
		looks []look
		want  string
	}{
		"at once":                {[]look{{0, nil}, {time.Second, nil}}, "INFO ready for clients: a quorum can vote\n"},
		"soon":                   {[]look{{0, lacks}, {4 * time.Second, lacks}, {5 * time.Second, nil}}, "INFO ready for clients: a quorum can vote\n"},
		"late":                   {[]look{{0, lacks}, {5 * time.Second, lacks}, {6 * time.Second, lacks}, {7 * time.Second, nil}}, "WARN listening, but no quorum can vote yet 1 of 3\nINFO ready for clients: a quorum can vote\n"},
		"lost for a moment":      {[]look{{0, nil}, {1 * time.Second, lacks}, {1500 * time.Millisecond, lacks}, {1900 * time.Millisecond, nil}}, "INFO ready for clients: a quorum can vote\n"},
		"lost moments, not once": {[]look{{0, nil}, {1 * time.Second, lacks}, {1900 * time.Millisecond, nil}, {2 * time.Second, lacks}, {2100 * time.Millisecond, lacks}}, "INFO ready for clients: a quorum can vote\n"},
		"lost, and back for moments": {
			[]look{{0, nil}, {1 * time.Second, lacks}, {2 * time.Second, lacks}, {3 * time.Second, nil}, {3900 * time.Millisecond, lacks}, {4 * time.Second, nil}, {4900 * time.Millisecond, lacks}},
			"INFO ready for clients: a quorum can vote\nWARN no quorum can vote: clients get NOQUORUM 1 of 3\n",
		},
		"lost": {
			[]look{{0, nil}, {1 * time.Second, lacks}, {2 * time.Second, lacks}, {9 * time.Second, lacks}, {10 * time.Second, nil}, {11 * time.Second, nil}, {12 * time.Second, lacks}, {13 * time.Second, lacks}},
			"INFO ready for clients: a quorum can vote\nWARN no quorum can vote: clients get NOQUORUM 1 of 3\nINFO a quorum can vote again\nWARN no quorum can vote: clients get NOQUORUM 1 of 3\n",
		},
	} {
		var log bytes.Buffer
		v := &vigil{log: slog.New(slog.NewTextHandler(&log, nil)), patience: 5 * time.Second}
		start := time.Unix(0, 0)
		for _, l := range c.looks {
			v.look(start.Add(l.at), l.lack)
		}
		got := regexp.MustCompile(`(?m)^time=\S+ level=(\S+) msg="([^"]*)"(?: cause="(1 of 3)[^"]*")?(?: after=\S+)?(.*)$`).ReplaceAllString(log.String(), "$1 $2 $3$4")
		got = regexp.MustCompile(` +\n`).ReplaceAllString(got, "\n")
		if got != c.want {
			t.Errorf("%s:\n%swant\n%s", name, got, c.want)
		}
	}
}
