package masters

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// An Info is what a master tells of itself, as far as it permits to be asked.
type Info struct {
	Server  string // "redis" or "valkey"
	Version string
	RunID   string
	Role    string // "master" or "slave"
	Uptime  time.Duration

	AppendOnly      bool
	AppendFsync     string // "always", "everysec" or "no"
	MaxMemory       int64  // bytes; 0 is no limit
	MaxMemoryPolicy string

	ClockOffset time.Duration // the master's wall clock less ours; known to within RoundTrip/2
	RoundTrip   time.Duration

	Missing []string // the commands that the user may not run
}

// Probe connects, asks a master about itself, and disconnects.
func (m *Redis) Probe(ctx context.Context) (Info, error) {
	conn, err := m.Dial(ctx, 0)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()

	ask := func(args ...any) *Call { return &Call{Args: args} }
	clock := ask("TIME")
	began := time.Now()
	if err := conn.Exec([]*Call{clock}); err != nil {
		return Info{}, err
	}
	info := Info{RoundTrip: time.Since(began)}

	server, role := ask("INFO", "server"), ask("ROLE")
	config := ask("CONFIG", "GET", "*append*")
	memory := ask("CONFIG", "GET", "maxmemory*")
	if err := conn.Exec([]*Call{server, role, config, memory}); err != nil {
		return Info{}, err
	}
	for _, c := range []*Call{clock, server, role, config} {
		if c.Err != nil {
			info.Missing = append(info.Missing, name(c.Args))
		}
	}
	if t, ok := ParseTime(clock.Reply); ok {
		info.ClockOffset = t.Sub(began.Add(info.RoundTrip / 2))
	}
	info.readServer(server.Reply)
	if list, ok := role.Reply.([]any); ok && len(list) > 0 {
		info.Role, _ = list[0].(string)
	}
	info.readConfig(config.Reply)
	info.readConfig(memory.Reply)
	return info, nil
}

// name returns a command as ACL rules name it.
func name(args []any) string {
	text, _ := args[0].(string)
	if text == "CONFIG" {
		return "CONFIG GET"
	}
	return text
}

// ParseTime reads the reply of TIME.
func ParseTime(reply any) (time.Time, bool) {
	list, ok := reply.([]any)
	if !ok || len(list) != 2 {
		return time.Time{}, false
	}
	sec, err1 := strconv.ParseInt(text(list[0]), 10, 64)
	usec, err2 := strconv.ParseInt(text(list[1]), 10, 64)
	return time.Unix(sec, usec*1000), err1 == nil && err2 == nil
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func (i *Info) readServer(reply any) {
	i.Server = "redis"
	for line := range strings.Lines(text(reply)) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch k {
		case "redis_version":
			if i.Version == "" {
				i.Version = v
			}
		case "valkey_version":
			i.Server, i.Version = "valkey", v
		case "run_id":
			i.RunID = v
		case "uptime_in_seconds":
			n, _ := strconv.ParseInt(v, 10, 64)
			i.Uptime = time.Duration(n) * time.Second
		}
	}
}

func (i *Info) readConfig(reply any) {
	list, _ := reply.([]any)
	for ; len(list) >= 2; list = list[2:] {
		v := text(list[1])
		switch text(list[0]) {
		case "appendonly":
			i.AppendOnly = v == "yes"
		case "appendfsync":
			i.AppendFsync = v
		case "maxmemory":
			i.MaxMemory, _ = strconv.ParseInt(v, 10, 64)
		case "maxmemory-policy":
			i.MaxMemoryPolicy = v
		}
	}
}
