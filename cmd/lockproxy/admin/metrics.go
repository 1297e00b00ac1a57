package admin

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"lockproxy/quorum"
	"lockproxy/resp/group"
)

// registry returns a registry of its own, so that metrics which a library registers globally do not show.
func registry(engine Engine, front Front, opt Options) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&collector{engine, front, opt},
	)
	return r
}

// The metrics. Counters count since the start of the process.
var (
	descInfo = desc("build_info", "Always 1; the label says which lockproxy this is.", "version")

	descUntil = desc("certificate_expiry_timestamp_seconds",
		"When the certificate that is shown now expires, in seconds since 1970.", "setting")

	descReady     = desc("ready", "1 if a quorum of masters can vote now in the database.", "db")
	descConnected = desc("master_connected", "1 if the master is connected and answers in time, in the database.", "master", "db")
	descClean     = desc("master_clean", "1 if the master's grants count in the database: it is connected and in no quarantine.", "master", "db")
	descLeft      = desc("master_quarantine_seconds", "How long the master's quarantine in the database will last; 0 if there is none.", "master", "db")
	descOffset    = desc("master_clock_offset_seconds", "The master's clock less the one of lockproxy's machine.", "master")
	descDropped   = desc("master_batches_dropped_total", "Batches whose votes did not count, because nothing vouched for them.", "master")
	descRoundTrip = desc("master_round_trip_seconds", "How long the latest batch to the master took.", "master")
	descVotes     = desc("master_votes_total", "Votes of the master: granted, refused or failed.", "master", "vote")
	descFailed    = desc("master_votes_failed_total", "Votes of the master that failed, by cause: late (no answer in time), "+
		"connection, error (it answered one), forgot (it may have forgotten locks), quarantined, clock, horizon.", "master", "cause")

	descAttempts = desc("attempts_total", "Attempts to acquire a lock.")
	descOutcomes = desc("attempt_outcomes_total",
		"How attempts ended: acquired, refused, noquorum, or expired (granted too late to leave any validity).", "outcome")
	descReleased = desc("released_total", "Locks released by their holder.")
	descExtended = desc("extended_total", "Locks extended by their holder.")
	descUndone   = desc("undone_total", "Keys that the undo of a failed attempt removed from a master.")

	descScripts  = desc("scripts_total", "Scripts that were run by vote.")
	descDisputed = desc("scripts_disputed_total", "Scripts that were run by vote, and about which no quorum of masters agreed.")
	descNames    = desc("other_names_total", "Times that a master told of another proxy of this upstream that takes other names for locks.")
	descRounds   = desc("round_seconds", "How long a round of votes took, from before its first byte was sent until its votes decided it.")

	descInLine      = desc("in_line", "Clients that wait in line now, because all together ask for more than can be answered in time.")
	descRoundsNow   = desc("rounds_now", "Rounds of votes under way; one on several keys counts for each.")
	descRoundsLimit = desc("rounds_limit", "How many rounds of votes are to be under way at most, counted so.")

	descClients  = desc("clients", "Client connections now.")
	descAccepted = desc("clients_accepted_total", "Client connections since the start.")
	descRejected = desc("clients_rejected_total", "Client connections turned away: there were max_clients, or protected mode lets in this machine only.")
	descCommands = desc("commands_total", "Commands from clients.")
	descProtocol = desc("protocol_errors_total", "Connections closed because what they sent is not RESP.")
	descLogins   = desc("logins_refused_total", "Logins of clients that were refused.")
	descMemory   = desc("memory_refused_total", "What clients asked for in vain, because max_memory is spent.")
	descEvicted  = desc("clients_evicted_total", "Clients disconnected in favour of others: max_memory, or what strangers may have of it, was spent, or there were max_clients.")
	descBuffers  = desc("client_buffers_bytes", "What is counted of waiting input, commands and replies, against max_memory.")
	descLate     = desc("late_replies_total",
		"Locks and extensions whose validity had passed when the reply was to be written.")

	descWaiting  = desc("waiting", "LOCKs that wait now.")
	descHeld     = desc("held", "Locks that connections hold now, by LOCK … HOLD.")
	descHeldLost = desc("held_lost_total", "Locks held by connections that could not be extended any more.")

	descLockWait = desc("lock_wait_seconds", "How long LOCK … WAIT took, by the groups of lock_groups and by its end: granted, refused or failed.", "group", "outcome")
	descLockHold = desc("lock_hold_seconds", "From the grant of a lock until it was given back, taken away or lost, where this proxy saw both, by the groups of lock_groups.",
		"group")
	descLockRefusals = desc("lock_refusals_total", "Attempts that got no lock, because another client held it, by the groups of lock_groups.", "group")

	descAuditDropped = desc("audit_lines_dropped_total", "Lines of audit_log that were dropped, because they could not be written in time.")

	descLinks          = desc("upstream_connections", "Connections to the upstream that clients have of their own now.")
	descUpstreamDown   = desc("upstream_down", "1 if there is an upstream and it cannot be used.")
	descForwarded      = desc("upstream_commands_total", "Commands that went to the upstream.")
	descUpstreamErrors = desc("upstream_errors_total",
		"Commands that could not be sent to the upstream, and connections to it that broke while in use.")
	descSplit = desc("split_requests_total", "Requests that were refused because of what lock_keys matches.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("lockproxy_"+name, help, labels, nil)
}

// A collector reads the engine and the front end when Prometheus asks; nothing is counted twice.
type collector struct {
	engine  Engine
	front   Front
	options Options
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge(descInfo, 1, c.options.Version)
	for setting, certificate := range c.options.Certificates {
		if until := certificate.Until(); !until.IsZero() {
			gauge(descUntil, float64(until.Unix()), setting)
		}
	}
	for _, s := range c.engine.Databases() {
		db := strconv.Itoa(s.DB)
		gauge(descReady, one(s.Ready() == nil), db)
		for _, m := range s.Masters {
			gauge(descConnected, one(m.State != quorum.Disconnected), m.Addr, db)
			gauge(descClean, one(m.State.Votes()), m.Addr, db)
			gauge(descLeft, m.Left.Seconds(), m.Addr, db)
		}
	}
	for _, m := range c.engine.Database(c.options.First).Masters {
		gauge(descOffset, m.ClockOffset.Seconds(), m.Addr)
		counter(descDropped, m.Dropped, m.Addr)
		gauge(descRoundTrip, m.RoundTrip.Seconds(), m.Addr)
		counter(descVotes, m.Votes.Granted, m.Addr, "granted")
		counter(descVotes, m.Votes.Refused, m.Addr, "refused")
		counter(descVotes, m.Votes.Failed, m.Addr, "failed")
		for kind, n := range m.Votes.Failures {
			counter(descFailed, n, m.Addr, quorum.FailureKind(kind).String())
		}
	}
	stats, front := c.engine.Stats(), c.front.Stats()
	locks(counter, &stats)
	out <- histogram(descRounds, &stats.Rounds, 6, 21)
	gauge(descInLine, float64(stats.InLine))
	gauge(descRoundsNow, float64(stats.RoundsNow))
	gauge(descRoundsLimit, float64(stats.RoundsLimit))
	gauge(descClients, float64(front.Clients))
	counter(descAccepted, front.Accepted)
	counter(descRejected, front.Rejected)
	counter(descCommands, front.Commands)
	counter(descProtocol, front.ProtocolErrors)
	counter(descLogins, front.LoginsRefused)
	counter(descMemory, front.MemoryRefused)
	counter(descEvicted, front.Evicted)
	gauge(descBuffers, float64(front.Buffers))
	counter(descLate, front.Late)
	gauge(descWaiting, float64(front.Waiting))
	gauge(descHeld, float64(front.Held))
	counter(descHeldLost, front.HeldLost)
	for _, g := range c.front.LockGroups() {
		for is := range g.Waited {
			out <- histogram(descLockWait, &g.Waited[is], 10, 26, g.Label, group.Outcome(is).String())
		}
		out <- histogram(descLockHold, &g.Held, 10, 32, g.Label)
		counter(descLockRefusals, g.Refused, g.Label)
	}
	dropped := uint64(0)
	if of := c.options.AuditDropped; of != nil {
		dropped = of()
	}
	counter(descAuditDropped, dropped)
	gauge(descLinks, float64(front.UpstreamLinks))
	gauge(descUpstreamDown, one(front.UpstreamDown))
	counter(descForwarded, front.Forwarded)
	counter(descUpstreamErrors, front.UpstreamErrors)
	counter(descSplit, front.Split)
}

func locks(counter func(*prometheus.Desc, uint64, ...string), s *quorum.Stats) {
	counter(descAttempts, s.Attempts)
	counter(descOutcomes, s.Acquired, "acquired")
	counter(descOutcomes, s.Refused, "refused")
	counter(descOutcomes, s.NoQuorum, "noquorum")
	counter(descOutcomes, s.Expired, "expired")
	counter(descReleased, s.Released)
	counter(descExtended, s.Extended)
	counter(descUndone, s.Undone)
	counter(descScripts, s.Scripts)
	counter(descDisputed, s.ScriptsDisputed)
	counter(descNames, s.OtherNames)
}

// histogram returns durations in Prometheus's form: each bucket includes all buckets before, and durations beyond the last bound are only
// in the count. The buckets from low to high are shown.
func histogram(desc *prometheus.Desc, d *quorum.Durations, low, high int, labels ...string) prometheus.Metric {
	buckets, n := map[float64]uint64{}, uint64(0)
	for i, below := range d.Below[:high+1] {
		if n += below; i >= low {
			buckets[quorum.DurationBound(i).Seconds()] = n
		}
	}
	return prometheus.MustNewConstHistogram(desc, d.Count, d.Sum.Seconds(), buckets, labels...)
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
