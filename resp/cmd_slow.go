package resp

import (
	"fmt"
	"strings"
	"time"

	"lockproxy/quorum"
	"lockproxy/resp/slowlog"
	"lockproxy/resp/wire"
)

// SLOWLOG and LATENCY: which commands were slow, and how long commands take.

// A timing is the time of a command's own operation. As on Redis, the time leaves out waits: for the command's turn, and for a lock.
type timing struct {
	args  []string // the first arguments, slowlog.ArgsMax at most; empty: the slow log does not take the command. The space is reused
	argc  int      // number of all arguments
	began time.Time
	took  time.Duration // until the last outcome
}

// begin notes the arguments. The caller corrects began if the command has to wait for its turn.
func (t *timing) begin(c *call) {
	if c.server.cfg.SlowLog == NoSlowLog {
		return
	}
	t.args = append(t.args, c.args[:min(len(c.args), slowlog.ArgsMax)]...)
	t.argc, t.began = len(c.args), c.began
}

// end notes that the last outcome has come.
func (t *timing) end() {
	if len(t.args) > 0 {
		t.took = time.Since(t.began)
	}
}

// forget keeps the command out of the slow log, and drops the text of the arguments.
func (t *timing) forget() {
	clear(t.args)
	*t = timing{args: t.args[:0]}
}

// noteSlow enters the command of a written slot into the slow log, if the command was slow.
func (s *session) noteSlow(sl *slot) {
	t := &sl.timing
	if len(t.args) == 0 || t.took < s.server.cfg.SlowLog {
		return
	}
	log, now := &s.server.slow, time.Now()
	if !log.Takes(now) {
		return
	}
	s.identity.mu.Lock()
	name := s.identity.name
	s.identity.mu.Unlock()
	log.Add(slowlog.Entry{At: now, Took: t.took, Args: t.args, Client: s.addr(), Name: name}, t.argc)
}

// slowlogDefault is how many entries SLOWLOG GET shows by default.
const slowlogDefault = 10

func runSlowlogGet(c *call) Reply {
	n := int64(slowlogDefault)
	switch len(c.args) {
	case 2:
	case 3:
		var ok bool
		if n, ok = wire.ParseInt(c.args[2]); !ok || n < -1 {
			return Error("ERR count should be greater than or equal to -1")
		}
	default:
		return errSubcommandArity(wire.Upper(c.named.name), c.args[1])
	}
	entries := Array{}
	for _, e := range c.server.slow.Latest(n) {
		args := Array{}
		for _, arg := range e.Args {
			args = append(args, Bulk(arg))
		}
		entries = append(entries, Array{Int(e.ID), Int(e.At.Unix()), Int(e.Took.Microseconds()), args, Bulk(e.Client), Bulk(e.Name)})
	}
	return entries
}

func runSlowlogLen(c *call) Reply { return Int(c.server.slow.Len()) }

func runSlowlogReset(c *call) Reply {
	c.server.slow.Reset()
	return Status("OK")
}

// Redis's latency monitor is off by default. The proxy has none: no event was ever slow.

func runLatencyNone(*call) Reply { return Array{} }

func runLatencyReset(*call) Reply { return Int(0) }

func runLatencyGraph(c *call) Reply {
	return Error("ERR No samples available for event '" + clip(c.args[2], echoMax) + "'")
}

func runLatencyDoctor(*call) Reply {
	return Verbatim("txt" + "lockproxy has no latency monitor. LATENCY HISTOGRAM tells how long commands take, SLOWLOG GET which were slow, " +
		"and INFO lockproxy how far away each master is.\n")
}

// histogramNamesMax is how many names LATENCY HISTOGRAM takes. As on Redis, a command named twice is told twice, so names bound the reply.
const histogramNamesMax = 256

// runLatencyHistogram tells of the named commands, or of all, how many calls took how long. Unknown names, and commands without calls, are
// left out, as on Redis.
func runLatencyHistogram(c *call) Reply {
	all, commands, found := *c.server.calls.Load(), c.server.commands, Map{}
	tell := func(row *command, counted *calls) {
		if took := counted.took.Load(); took.Count > 0 {
			found = append(found, Bulk(row.full), Map{Bulk("calls"), Int(took.Count), Bulk("histogram_usec"), cumulative(&took)})
		}
	}
	switch n := len(c.args) - 2; {
	case n > histogramNamesMax:
		return Error(fmt.Sprintf("ERR LATENCY HISTOGRAM of more than %d commands; name fewer, or none for all", histogramNamesMax))
	case n == 0:
		all.each(commands, tell)
		return found
	}
	for _, name := range c.args[2:] {
		container, sub, isSub := strings.Cut(name, "|")
		row := commands.find(container)
		if row != nil && isSub {
			row = row.sub(sub)
		}
		if row != nil {
			all.eachOf(row, tell)
		}
	}
	return found
}

// cumulative tells for each bound, in microseconds, how many durations were below; bounds that add nothing are left out. The last bucket of
// Durations has no bound; one twice as long as the bound before is told.
func cumulative(took *quorum.Durations) Map {
	told, n := Map{}, uint64(0)
	for i, below := range took.Below {
		if n += below; below > 0 {
			told = append(told, Int(quorum.DurationBound(i).Microseconds()), Int(n))
		}
	}
	return told
}
