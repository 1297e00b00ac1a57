package resp

import (
	"strconv"
	"time"

	"lockproxy/resp/slowlog"
	"lockproxy/resp/wire"
)

// redisVersion is the version of Redis that clients see.
const redisVersion = "7.0.15"

func runRole(*call) Reply { return Array{Bulk("master"), Int(0), Array{}} }

func runTime(*call) Reply {
	now := time.Now()
	micros := now.Nanosecond() / int(time.Microsecond)
	return Array{Bulk(strconv.FormatInt(now.Unix(), 10)), Bulk(strconv.Itoa(micros))}
}

// runLastSave tells the time of the server's start, as a Redis that never saves does.
func runLastSave(c *call) Reply { return Int(c.server.started.Unix()) }

// runWait checks the arguments as Redis does, and finds no replicas.
func runWait(c *call) Reply {
	if _, ok := wire.ParseInt(c.args[1]); !ok {
		return errNotInt
	}
	if _, refused := parseTimeout(c.args[2]); refused != nil {
		return refused
	}
	return Int(0)
}

func runCluster(*call) Reply { return errNoCluster }

// runDebug is refused as by a Redis with default settings.
func runDebug(*call) Reply {
	return Error("ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it " +
		"from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.")
}

func runModuleList(*call) Reply { return Array{} }

func runWhoAmI(c *call) Reply { return Bulk(c.session.identity.user) }

// settings are the settings for CONFIG GET, sorted by name: the settings that clients read, with the values of a Redis with the
// same set-up as the proxy.
func settings(s *Server) [][2]string {
	return [][2]string{
		{"appendfsync", "everysec"},
		{"appendonly", "no"},
		{"databases", strconv.Itoa(s.cfg.Databases)},
		{"latency-monitor-threshold", "0"},
		{"latency-tracking", "yes"},
		{"latency-tracking-info-percentiles", "50 99 99.9"},
		{"maxclients", strconv.Itoa(s.cfg.Limits.Clients)},
		{"maxmemory", "0"},
		{"maxmemory-policy", "noeviction"},
		{"notify-keyspace-events", ""},
		{"proto-max-bulk-len", strconv.Itoa(s.cfg.Limits.Bulk)},
		{"protected-mode", yesNo(s.cfg.ProtectedMode)},
		{"replica-read-only", "yes"},
		{"save", ""},
		{"slave-read-only", "yes"},
		{"slowlog-log-slower-than", strconv.FormatInt(slowerThan(s), 10)},
		{"slowlog-max-len", strconv.Itoa(slowlog.EntriesMax)},
		{"timeout", strconv.Itoa(int(s.cfg.Limits.Idle.Seconds()))},
	}
}

// slowerThan is Redis's setting slowlog-log-slower-than, in microseconds; -1: no slow log.
func slowerThan(s *Server) int64 {
	if s.cfg.SlowLog == NoSlowLog {
		return -1
	}
	return s.cfg.SlowLog.Microseconds()
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func runConfigGet(c *call) Reply {
	found := Map{}
	for _, setting := range settings(c.server) {
		if name, ok := matchSetting(c.args[2:], setting[0]); ok {
			found = append(found, Bulk(name), Bulk(setting[1]))
		}
	}
	return found
}

// matchSetting says whether one of the patterns matches the setting, and returns the name for the reply. As in Redis, a
// client that gave the plain name gets the same spelling back.
func matchSetting(patterns []string, name string) (string, bool) {
	for _, p := range patterns {
		if wire.EqualFold(p, name) {
			return p, true
		}
		if wire.Match(wire.Lower(p), name) {
			return name, true
		}
	}
	return "", false
}

func runConfigChange(c *call) Reply {
	return Error("ERR lockproxy does not support CONFIG " + wire.Upper(c.cmd.name) + "; its settings are in its configuration file")
}

// runConfigResetStat resets what Redis resets, for INFO and LATENCY HISTOGRAM: not the slow log, and not the metrics, which INFO lockproxy shows,
// too.
func runConfigResetStat(c *call) Reply {
	s := c.server
	now := s.Stats()
	s.statsReset.Store(&now)
	s.errors.reset()
	s.calls.Store(newCalls(s.commands)) // a call noted at this moment may be lost
	return Status("OK")
}
