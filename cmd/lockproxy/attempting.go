package main

import (
	"log/slog"
	"strings"
	"time"

	"lockproxy/quorum"
)

// An attempting tells the log when no attempt finds a quorum any more, and when one does again. The vigil does not notice this
// if a quorum is connected, but its masters are slow, or answer with errors.
type attempting struct {
	log     *slog.Logger
	was     quorum.Stats
	failed  []quorum.Failures // of each master, when an attempt last found a quorum
	lacking time.Time         // since when attempts have found none, or zero
	told    bool              // the log has been told so
}

// lackingAfter is for how long no attempt must have found a quorum before the log says so.
const lackingAfter = 3 * time.Second

// look takes the counts so far. known is true if the log has been told that no quorum can vote.
func (a *attempting) look(now time.Time, known bool, is quorum.Stats, masters []quorum.MasterStatus) {
	found := is.Acquired+is.Refused > a.was.Acquired+a.was.Refused
	lacked := is.NoQuorum > a.was.NoQuorum
	a.was = is
	switch {
	case found:
		if a.told {
			a.log.Info("attempts find a quorum again", "after", now.Sub(a.lacking).Round(time.Millisecond))
		}
		a.lacking, a.told, a.failed = time.Time{}, false, nil
	case known && !a.told:
		a.lacking = time.Time{}
	case lacked && a.lacking.IsZero():
		a.lacking = now
	case lacked && !a.told && now.Sub(a.lacking) >= lackingAfter:
		a.told = true
		a.log.Warn("no attempt finds a quorum: clients get NOQUORUM", "cause", a.cause(masters))
	}
	if a.failed == nil {
		for _, m := range masters {
			a.failed = append(a.failed, m.Votes.Failures)
		}
	}
}

// cause names each master whose votes have failed since failed was noted, with the commonest kind of failure.
func (a *attempting) cause(masters []quorum.MasterStatus) string {
	var causes []string
	for i, m := range masters {
		most, n := quorum.FailureKind(0), uint64(0)
		for kind, count := range m.Votes.Failures {
			if since := count - a.failed[i][kind]; since > n {
				most, n = quorum.FailureKind(kind), since
			}
		}
		if n > 0 {
			causes = append(causes, m.Addr+" "+most.String())
		}
	}
	return strings.Join(causes, "; ")
}
