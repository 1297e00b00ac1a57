package resp

import (
	"strconv"

	"lockproxy/resp/wire"
)

// settings are the settings for CONFIG GET, sorted by name: the settings that clients read, with the values of a Redis with the
// same set-up as the proxy.
func settings(s *Server) [][2]string {
	return [][2]string{
		{"appendfsync", "everysec"},
		{"appendonly", "no"},
		{"databases", strconv.Itoa(s.cfg.Databases)},
		{"maxclients", strconv.Itoa(s.cfg.Limits.Clients)},
		{"maxmemory", "0"},
		{"maxmemory-policy", "noeviction"},
		{"notify-keyspace-events", ""},
		{"proto-max-bulk-len", strconv.Itoa(s.cfg.Limits.Bulk)},
		{"protected-mode", yesNo(s.cfg.ProtectedMode)},
		{"replica-read-only", "yes"},
		{"save", ""},
		{"slave-read-only", "yes"},
		{"timeout", strconv.Itoa(int(s.cfg.Limits.Idle.Seconds()))},
	}
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
