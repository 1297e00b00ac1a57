package resp

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/pubsub"
	"lockproxy/quorum/rules"
	"lockproxy/resp/wire"
)

// An infoSection writes one section of INFO.
type infoSection struct {
	name  string
	write func(*Server, *infoWriter)
}

var infoSections = []infoSection{
	{"Server", infoServer}, {"Clients", infoClients}, {"Memory", infoMemory}, {"Persistence", infoPersistence},
	{"Stats", infoStats}, {"Replication", infoReplication}, {"CPU", infoCPU}, {"Modules", infoNothing},
	{"Commandstats", infoCommands}, {"Errorstats", infoErrors}, {"Latencystats", infoLatencies}, {"Cluster", infoCluster}, {"Keyspace", infoNothing}, {"Lockproxy", infoLockproxy},
}

// runInfo answers the sections that the client named. A section of Redis that the proxy lacks is empty, as unknown sections
// are in Redis.
func runInfo(c *call) Reply {
	wanted := map[string]bool{}
	for _, name := range c.args[1:] {
		wanted[wire.Lower(name)] = true
	}
	all := wanted["all"] || wanted["everything"]
	byDefault := all || len(wanted) == 0 || wanted["default"]
	var w infoWriter
	for _, section := range infoSections {
		name := wire.Lower(section.name)
		if all || wanted[name] || byDefault && name != "commandstats" && name != "latencystats" {
			if w.Len() > 0 {
				w.WriteString("\r\n")
			}
			w.WriteString("# " + section.name + "\r\n")
			section.write(c.server, &w)
		}
	}
	return Verbatim("txt" + w.String())
}

type infoWriter struct{ strings.Builder }

func (w *infoWriter) field(name string, value any) { fmt.Fprintf(w, "%s:%v\r\n", name, value) }

func infoServer(s *Server, w *infoWriter) {
	up := time.Since(s.started)
	w.field("redis_version", redisVersion)
	w.field("redis_git_sha1", "00000000")
	w.field("redis_git_dirty", 0)
	w.field("redis_mode", "standalone")
	w.field("os", runtime.GOOS+" "+runtime.GOARCH)
	w.field("arch_bits", strconv.IntSize)
	w.field("process_id", os.Getpid())
	w.field("run_id", s.runID)
	w.field("tcp_port", s.port())
	w.field("server_time_usec", time.Now().UnixMicro())
	w.field("uptime_in_seconds", int64(up.Seconds()))
	w.field("uptime_in_days", int64(up.Hours()/24))
	w.field("lockproxy_version", s.cfg.Version)
	w.field("lockproxy_processors", runtime.GOMAXPROCS(0))
}

func infoClients(s *Server, w *infoWriter) {
	st := s.Stats()
	w.field("connected_clients", st.Clients)
	w.field("cluster_connections", 0)
	w.field("maxclients", s.cfg.Limits.Clients)
	w.field("blocked_clients", st.Waiting)
	w.field("tracking_clients", 0)
}

func infoMemory(s *Server, w *infoWriter) {
	used := memoryInUse()
	w.field("used_memory", used)
	w.field("used_memory_human", fmt.Sprintf("%.2fM", float64(used)/(1<<20)))
	w.field("client_buffers", s.relief.memory.used())
	w.field("maxmemory", 0)
	w.field("maxmemory_human", "0B")
	w.field("maxmemory_policy", "noeviction")
}

// memoryInUse reads the bytes of live and unswept objects, without stopping the world.
func memoryInUse() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func infoPersistence(s *Server, w *infoWriter) {
	w.field("loading", 0)
	w.field("rdb_bgsave_in_progress", 0)
	w.field("rdb_last_save_time", s.started.Unix())
	w.field("aof_enabled", 0)
}

func infoStats(s *Server, w *infoWriter) {
	st, before := s.Stats(), s.statsReset.Load()
	if before == nil {
		before = new(Stats)
	}
	w.field("total_connections_received", st.Accepted-before.Accepted)
	w.field("total_commands_processed", st.Commands-before.Commands)
	w.field("rejected_connections", st.Rejected-before.Rejected)
	w.field("total_error_replies", s.errors.total())
	w.field("expired_keys", 0)
	w.field("evicted_keys", 0)
	w.field("evicted_clients", st.Evicted-before.Evicted)
	w.field("pubsub_channels", len(s.messages.Topics(pubsub.Channel)))
	w.field("pubsub_patterns", len(s.messages.Topics(pubsub.Pattern)))
}

func infoReplication(s *Server, w *infoWriter) {
	w.field("role", "master")
	w.field("connected_slaves", 0)
	w.field("master_failover_state", "no-failover")
	w.field("master_replid", s.runID)
	w.field("master_repl_offset", 0)
}

func infoCluster(_ *Server, w *infoWriter) { w.field("cluster_enabled", 0) }

// infoNothing is for modules and keys, of which the proxy has none.
func infoNothing(*Server, *infoWriter) {}

func infoCPU(s *Server, w *infoWriter) {
	user, system := s.cfg.CPU()
	w.field("used_cpu_sys", fmt.Sprintf("%.6f", system.Seconds()))
	w.field("used_cpu_user", fmt.Sprintf("%.6f", user.Seconds()))
}

func infoErrors(s *Server, w *infoWriter) {
	s.errors.each(func(code string, n int64) { w.field("errorstat_"+code, fmt.Sprintf("count=%d", n)) })
}

// failures tells why votes failed, in fields of their own.
func failures(all *quorum.Failures) string {
	text := ""
	for kind, n := range all {
		text += fmt.Sprintf(",failed_%s=%d", quorum.FailureKind(kind), n)
	}
	return text
}

func infoLockproxy(s *Server, w *infoWriter) {
	masters, st, front := s.engine.Masters(), s.engine.Stats(), s.Stats()
	connected := 0
	for _, m := range masters {
		connected += count(m.State != quorum.Disconnected)
	}
	w.field("masters", len(masters))
	w.field("quorum", rules.Quorum(len(masters)))
	w.field("masters_connected", connected)
	for i, m := range masters {
		w.field(fmt.Sprintf("master%d", i), fmt.Sprintf("addr=%s,state=%s,cause=%s,for_sec=%d,left_sec=%d,server=%s,version=%s,"+
			"role=%s,clock_offset_msec=%d,round_trip_usec=%d,granted=%d,refused=%d,failed=%d,batches_dropped=%d%s", m.Addr,
			m.State, oneField(m.Cause), int(m.Since.Seconds()), int(m.Left.Seconds()), m.Server, m.Version, m.Role,
			m.ClockOffset.Milliseconds(), m.RoundTrip.Microseconds(), m.Votes.Granted, m.Votes.Refused, m.Votes.Failed, m.Dropped,
			failures(&m.Votes.Failures)))
	}
	infoDatabases(s, w)
	w.field("attempts", st.Attempts)
	w.field("acquired", st.Acquired)
	w.field("refused", st.Refused)
	w.field("no_quorum", st.NoQuorum)
	w.field("released", st.Released)
	w.field("extended", st.Extended)
	w.field("undone_keys", st.Undone)
	w.field("acquired_too_late", st.Expired)
	w.field("replies_too_late", front.Late)
	w.field("waiting", front.Waiting)
	w.field("held", front.Held)
	w.field("held_lost", front.HeldLost)
	w.field("scripts", st.Scripts)
	w.field("scripts_disputed", st.ScriptsDisputed)
	w.field("other_names", st.OtherNames)
	w.field("in_line", st.InLine)
	w.field("rounds_now", st.RoundsNow)
	w.field("rounds_limit", st.RoundsLimit)
	w.field("rounds", st.Rounds.Count)
	w.field("round_p50_usec", st.Rounds.Quantile(0.5).Microseconds())
	w.field("round_p99_usec", st.Rounds.Quantile(0.99).Microseconds())
	if s.cfg.Upstream != nil {
		w.field("upstream", s.cfg.Upstream.Addr())
		w.field("upstream_down", count(front.UpstreamDown))
		w.field("upstream_cause", s.cfg.Upstream.Cause())
		w.field("upstream_connections", front.UpstreamLinks)
		w.field("upstream_commands", front.Forwarded)
		w.field("upstream_errors", front.UpstreamErrors)
		w.field("split_requests", front.Split)
	}
	w.field("protocol_errors", front.ProtocolErrors)
	s.hottest.info(w)
}

// infoDatabases lists masters whose grants do not count in a database in use, apart from the configured database: the master's own
// line tells about that database.
func infoDatabases(s *Server, w *infoWriter) {
	for _, db := range s.engine.Databases() {
		for i, m := range db.Masters {
			if db.DB != s.cfg.Database && !m.State.Votes() {
				w.field(fmt.Sprintf("master%d_db%d", i, db.DB), fmt.Sprintf("addr=%s,state=%s,cause=%s,for_sec=%d,left_sec=%d", m.Addr, m.State,
					oneField(m.Cause), int(m.Since.Seconds()), int(m.Left.Seconds())))
			}
		}
	}
}

// oneField keeps a free text from looking like further fields or lines.
func oneField(text string) string {
	return strings.NewReplacer(",", ";", "\r", " ", "\n", " ").Replace(text)
}
