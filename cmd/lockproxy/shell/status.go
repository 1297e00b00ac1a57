package shell

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"lockproxy/cmd/lockproxy/cli"
	"lockproxy/cmd/lockproxy/shell/client"
)

// A Status is the state of one proxy, and of its masters as the proxy sees them.
type Status struct {
	Proxy    string            `json:"proxy"`
	Error    string            `json:"error,omitempty"`
	Version  string            `json:"version,omitempty"`
	Uptime   int64             `json:"uptime_sec"`
	Clients  int64             `json:"clients"`
	Quorum   int64             `json:"quorum"`
	Voting   int64             `json:"masters_clean"`
	Masters  []Master          `json:"masters"`
	Counters map[string]int64  `json:"counters"`
	Upstream map[string]string `json:"upstream,omitempty"`
	Hottest
	asked time.Time
}

// A Master is one master, as a proxy sees it.
type Master struct {
	Addr      string `json:"addr"`
	State     string `json:"state"`
	Cause     string `json:"cause,omitempty"`
	For       int64  `json:"for_sec"`
	Left      int64  `json:"left_sec"`
	Server    string `json:"server"`
	Version   string `json:"version"`
	RoundTrip int64  `json:"round_trip_usec"`
	Clock     int64  `json:"clock_offset_msec"`
	Granted   int64  `json:"granted"`
	Refused   int64  `json:"refused"`
	Failed    int64  `json:"failed"`
}

// counters are the lines of INFO lockproxy with counts and times.
var counters = []string{"attempts", "acquired", "refused", "no_quorum", "released", "extended", "undone_keys", "acquired_too_late", "replies_too_late",
	"waiting", "held", "held_lost", "in_line", "rounds", "round_p50_usec", "round_p99_usec"}

// A stater is one status.
type stater struct {
	reach
	json bool
}

func (s *stater) flags() []cli.Flag {
	return append([]cli.Flag{{Name: "json", Help: "print one JSON object for each proxy", Set: cli.Yes(&s.json)}}, s.reach.flags()...)
}

// ShowStatus prints the state of each proxy, and of its masters.
func ShowStatus(args, env []string, stdout, stderr io.Writer) int {
	s := &stater{}
	_, err := wordsOf(s.flags(), args, "status", 0)
	var proxies *client.Proxies
	if err == nil {
		proxies, err = s.open(env)
	}
	if err != nil {
		return complain(stderr, "status", err)
	}
	code := exitOK
	for i, addr := range proxies.Addrs {
		is := statusOf(proxies, addr)
		if is.Error != "" || is.Voting < is.Quorum {
			code = exitUnavailable
		}
		if s.json {
			printJSON(stdout, is)
			continue
		}
		if i > 0 {
			fmt.Fprintln(stdout)
		}
		is.write(stdout)
	}
	return code
}

// statusOf asks one proxy. After a failure, the status has an Error.
func statusOf(proxies *client.Proxies, addr string) *Status {
	is := &Status{Proxy: addr, asked: time.Now(), Hottest: Hottest{Refused: []HotKey{}, Waited: []HotKey{}}} // no null in JSON
	one := *proxies
	one.Addrs = []string{addr}
	conn, err := one.Connect(time.Now().Add(askMax))
	if err != nil {
		is.Error = strings.TrimPrefix(err.Error(), addr+" ")
		return is
	}
	defer conn.Close()
	for _, section := range []string{"server", "clients", "lockproxy"} {
		reply, err := conn.Do(time.Now().Add(askMax), "INFO", section)
		if err != nil {
			is.Error = client.Reason(err)
			return is
		}
		info, _ := reply.(string)
		is.read(info)
	}
	return is
}

// read takes the lines of INFO.
func (s *Status) read(info string) {
	lines := map[string]string{}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		lines[name] = value
	}
	if version, ok := lines["lockproxy_version"]; ok {
		s.Version = version
	}
	for name, to := range map[string]*int64{"uptime_in_seconds": &s.Uptime, "connected_clients": &s.Clients, "quorum": &s.Quorum} {
		if value, ok := lines[name]; ok {
			*to = integer(value)
		}
	}
	for i := 0; ; i++ {
		line, ok := lines["master"+strconv.Itoa(i)]
		if !ok {
			break
		}
		m := masterOf(line)
		if m.State == "clean" || m.State == "suspect" {
			s.Voting++
		}
		s.Masters = append(s.Masters, m)
	}
	if s.Counters == nil {
		s.Counters = map[string]int64{}
	}
	for _, name := range counters {
		if value, ok := lines[name]; ok {
			s.Counters[name] = integer(value)
		}
	}
	s.Hottest.read(lines)
	if addr := lines["upstream"]; addr != "" {
		s.Upstream = map[string]string{"addr": addr, "down": lines["upstream_down"], "cause": lines["upstream_cause"]}
	}
}

func integer(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// masterOf reads the line of a master. The cause is a text and may have commas: a part after a comma without a name belongs to the
// value before.
func masterOf(line string) Master {
	fields, last := map[string]string{}, ""
	for part := range strings.SplitSeq(line, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok || strings.Contains(name, " ") {
			fields[last] += "," + part
			continue
		}
		last = name
		fields[name] = value
	}
	m := Master{Addr: fields["addr"], State: fields["state"], Cause: fields["cause"], Server: fields["server"], Version: fields["version"]}
	for name, to := range map[string]*int64{"for_sec": &m.For, "left_sec": &m.Left, "round_trip_usec": &m.RoundTrip, "clock_offset_msec": &m.Clock,
		"granted": &m.Granted, "refused": &m.Refused, "failed": &m.Failed} {
		*to = integer(fields[name])
	}
	return m
}

// write prints the status for a person.
func (s *Status) write(w io.Writer) {
	if s.Error != "" {
		fmt.Fprintf(w, "%s  %s\n", s.Proxy, s.Error)
		return
	}
	verdict := "locks can be had"
	if s.Voting < s.Quorum {
		verdict = "NO QUORUM"
	}
	fmt.Fprintf(w, "%s  %s: %d of %d masters vote, %d needed. lockproxy %s, up %s, %d clients, %d keep locks by HOLD, %d wait\n",
		s.Proxy, verdict, s.Voting, len(s.Masters), s.Quorum, s.Version, span(s.Uptime*1000), s.Clients, s.Counters["held"], s.Counters["waiting"])
	fmt.Fprintf(w, "attempts %d: %d granted, %d refused, %d without a quorum, %d too late. Rounds: half within %s, 99 %% within %s\n",
		s.Counters["attempts"], s.Counters["acquired"], s.Counters["refused"], s.Counters["no_quorum"], s.Counters["acquired_too_late"],
		micros(s.Counters["round_p50_usec"]), micros(s.Counters["round_p99_usec"]))
	writeMasters(w, s.Masters)
	if addr := s.Upstream["addr"]; addr != "" {
		state := "reached"
		if s.Upstream["down"] == "1" {
			state = s.Upstream["cause"]
		}
		fmt.Fprintf(w, "upstream %s: %s\n", addr, state)
	}
}

func writeMasters(w io.Writer, all []Master) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "MASTER\tSTATE\tSINCE\tLEFT\tROUND TRIP\tCLOCK\tGRANTED\tREFUSED\tFAILED\tSERVER\tWHY")
	for _, m := range all {
		since, left := "-", "-"
		if m.For > 0 {
			since = span(m.For * 1000)
		}
		if m.Left > 0 {
			left = span(m.Left * 1000)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%+dms\t%d\t%d\t%d\t%s\t%s\n", m.Addr, m.State, since, left, micros(m.RoundTrip), m.Clock, m.Granted,
			m.Refused, m.Failed, strings.TrimSpace(m.Server+" "+m.Version), printable(m.Cause))
	}
	_ = table.Flush()
}

func micros(n int64) string { return (time.Duration(n) * time.Microsecond).String() }
