package resp

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"lockproxy/quorum"
)

// calls counts the calls of one command.
type calls struct {
	took     quorum.Histogram // of commands that ran, from finding the command until just before the write of the reply
	failed   atomic.Uint64    // how many commands ran and were answered with an error
	rejected atomic.Uint64    // requests refused before the command ran
}

// allCalls has the calls of every row of the command table. The map is complete from the start, so that sessions read the map without
// a mutex.
type allCalls map[*command]*calls

func newCalls(t *table) *allCalls {
	all := allCalls{}
	for _, row := range t.rows {
		all[row] = new(calls)
		for _, sub := range row.subs {
			all[sub] = new(calls)
		}
	}
	return &all
}

// note counts the command of a slot whose reply is about to be written. Commands queued by MULTI are not counted.
func (all allCalls) note(sl *slot, now time.Time, reply Reply) {
	counted, failed := all[sl.row], isError(reply)
	switch {
	case counted == nil:
	case sl.runs:
		counted.took.Add(now.Sub(sl.began))
		if failed {
			counted.failed.Add(1)
		}
	case failed:
		counted.rejected.Add(1)
	}
}

// each calls f for each row, in the table's order.
func (all allCalls) each(t *table, f func(*command, *calls)) {
	for _, row := range t.rows {
		all.eachOf(row, f)
	}
}

// eachOf calls f for the row, and for its subcommands.
func (all allCalls) eachOf(row *command, f func(*command, *calls)) {
	f(row, all[row])
	for _, sub := range row.subs {
		f(sub, all[sub])
	}
}

func infoCommands(s *Server, w *infoWriter) {
	s.calls.Load().each(s.commands, func(row *command, c *calls) {
		took, failed, rejected := c.took.Load(), c.failed.Load(), c.rejected.Load()
		if took.Count+rejected == 0 {
			return
		}
		usec := took.Sum.Microseconds()
		w.field("cmdstat_"+row.full, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			took.Count, usec, float64(usec)/float64(max(took.Count, 1)), rejected, failed))
	})
}

func infoLatencies(s *Server, w *infoWriter) {
	s.calls.Load().each(s.commands, func(row *command, c *calls) {
		took := c.took.Load()
		if took.Count == 0 {
			return
		}
		var shown []string
		for _, percent := range [...]float64{50, 99, 99.9} {
			usec := took.Quantile(percent / 100).Microseconds()
			shown = append(shown, fmt.Sprintf("p%v=%d.000", percent, usec))
		}
		w.field("latency_percentiles_usec_"+row.full, strings.Join(shown, ","))
	})
}
