package resp

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/quorum"
	"lockproxy/resp/slowlog"
)

// A command is slow by the time of its own operation. In a bubble, the times are exact.
func TestACommandIsSlowByItsOwnTime(t *testing.T) {
	type step struct {
		send string
		then time.Duration
		ends []int // which of the operations under way end then
	}
	const ms, us = time.Millisecond, time.Microsecond
	for name, c := range map[string]struct {
		steps []step
		want  []string
	}{
		"slow":                           {[]step{{"SET k v NX PX 1000", 10 * ms, []int{0}}}, []string{"10ms SET k v NX PX 1000"}},
		"fast":                           {[]step{{"SET k v NX PX 1000", 10*ms - us, []int{0}}}, nil},
		"refused":                        {[]step{{"SET k v NX PX 1000", 0, []int{0}}, {"SET k w NX PX 1000", 20 * ms, []int{0}}}, []string{"20ms SET k w NX PX 1000"}},
		"answered late, behind another":  {[]step{{"GET a", 0, nil}, {"GET b", 5 * ms, []int{1}}, {"", 15 * ms, []int{0}}}, []string{"20ms GET a"}},
		"behind another on its key":      {[]step{{"DEL k", 0, nil}, {"DEL k", 60 * ms, []int{0}}, {"", 15 * ms, []int{0}}}, []string{"60ms DEL k", "15ms DEL k"}},
		"fast, behind a lock that waits": {[]step{{"LOCK k 1000 WAIT 500", 0, nil}, {"UNLOCK k t", 400 * ms, []int{0}}, {"", 5 * ms, []int{0}}}, nil},
		"no round":                       {[]step{{"GET a", 0, nil}, {"PING", 15 * ms, []int{0}}}, []string{"15ms GET a"}},
		"a transaction":                  {[]step{{"MULTI", 0, nil}, {"GET k", 20 * ms, nil}, {"EXEC", 12 * ms, []int{0}}}, []string{"12ms EXEC"}},
		"a lock":                         {[]step{{"LOCK k 1000 HOLD", 12 * ms, []int{0}}}, []string{"12ms LOCK k 1000 HOLD"}},
		"a lock that waits":              {[]step{{"LOCK k 1000 WAIT 500", 400 * ms, []int{0}}}, nil},
		"a lock that waits and stays":    {[]step{{"LOCK k 1000 HOLD WAIT 500", 400 * ms, []int{0}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, e *fakeEngine, srv *Server, dial func() net.Conn) {
				conn := dial()
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				e.hold()
				for _, s := range c.steps {
					if s.send != "" {
						_, _ = io.WriteString(conn, words(s.send))
					}
					synctest.Wait()
					time.Sleep(s.then)
					for _, i := range s.ends {
						e.release(i)
					}
					synctest.Wait()
				}
				var got []string
				for _, e := range slices.Backward(srv.slow.Latest(-1)) {
					got = append(got, fmt.Sprint(e.Took, " ", strings.Join(e.Args, " ")))
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("the log has %q, want %q", got, c.want)
				}
				e.releaseAll()
				_ = conn.Close()
			})
		})
	}
}

// A pooled slot, or a lock that waits, keeps no client's text.
func TestATimingForgetsItsText(t *testing.T) {
	server := newRig(t, Config{}).server
	var tm timing
	for _, args := range [][]string{strings.Fields(strings.Repeat("x ", 40)), {"GET", "k"}} {
		tm.begin(&call{args: args, server: server})
		if want := args[:min(len(args), slowlog.ArgsMax)]; !slices.Equal(tm.args, want) || tm.argc != len(args) {
			t.Errorf("%d arguments: %q of %d", len(args), tm.args, tm.argc)
		}
		tm.forget()
		if kept := strings.Join(tm.args[:cap(tm.args)], ""); kept != "" || len(tm.args) != 0 {
			t.Errorf("keeps %q", kept)
		}
	}
}

// The replies have Redis's shape, and no secret of a login is told.
func TestTheSlowLogIsTold(t *testing.T) {
	r := newRig(t, Config{Users: []User{{Name: "default", Password: password("secret")}}})
	c := r.dial()
	c.ask("AUTH", "secret")
	c.ask("HELLO", "2", "AUTH", "default", "secret", "SETNAME", "me")
	arrived := r.engine.hold()
	many := append([]string{"EXISTS", strings.Repeat("k", 130)}, strings.Fields(strings.Repeat("x ", 38))...)
	for _, args := range [][]string{many, {"GET", "k"}} {
		c.send(cmdline(args...))
		<-arrived
		time.Sleep(slowlog.Threshold + time.Millisecond)
		r.engine.release(0)
		c.reply()
	}
	r.engine.releaseAll()
	got := c.ask("SLOWLOG", "GET")
	entry := func(id int, args ...string) string {
		return fmt.Sprintf(`\*6\r\n:%d\r\n:\d{10}\r\n:\d{5,}\r\n%s\$\d+\r\n127\.0\.0\.1:\d+\r\n\$2\r\nme\r\n`, id, regexp.QuoteMeta(cmdline(args...)))
	}
	first := append(slices.Clone(many[:31]), "... (9 more arguments)")
	first[1] = strings.Repeat("k", 128) + "... (2 more bytes)"
	want := `^\*2\r\n` + entry(1, "GET", "k") + entry(0, first...) + `$`
	if !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("SLOWLOG GET: %q, want %s", got, want)
	}
	for _, c2 := range [][2]string{
		{"SLOWLOG GET 0", "*0\r\n"}, {"SLOWLOG LEN", ":2\r\n"}, {"SLOWLOG RESET", "+OK\r\n"}, {"SLOWLOG GET -1", "*0\r\n"}, {"SLOWLOG LEN", ":0\r\n"},
	} {
		if got := c.ask(strings.Fields(c2[0])...); got != c2[1] {
			t.Errorf("%s: %q, want %q", c2[0], got, c2[1])
		}
	}
}

// A reset within a transaction would happen even if the transaction did not.
func TestNothingIsResetWithinATransaction(t *testing.T) {
	c := newRig(t, Config{}).dial()
	for _, command := range []string{"SLOWLOG RESET", "CONFIG RESETSTAT"} {
		c.ask("MULTI")
		if got := c.ask(strings.Fields(command)...); !strings.HasPrefix(got, "-ERR ") {
			t.Errorf("%s: %q", command, got)
		}
		c.ask("DISCARD")
	}
}

func TestLatencyHistogramTellsOfTheNamedCommands(t *testing.T) {
	c := newRig(t, Config{}).dial()
	for _, line := range []string{"GET k", "GET k", "CLIENT ID", "CLIENT GETNAME", "COMMAND COUNT", "COMMAND", "GET"} {
		c.ask(strings.Fields(line)...)
	}
	for _, tc := range []struct{ ask, want string }{ // the names, and how many calls each had
		{"get", "get 2"},
		{"GET get", "get 2 get 2"},
		{"set", ""},
		{"nosuch", ""},
		{"get|x", ""},
		{"client", "client|id 1 client|getname 1"},
		{"Client|ID", "client|id 1"},
		{"client|nosuch", ""},
		{"command", "command 1 command|count 1"},
		{"", "get 2 client|id 1 client|getname 1 command 1 command|count 1 latency|histogram 9"},
	} {
		got := c.ask(append([]string{"LATENCY", "HISTOGRAM"}, strings.Fields(tc.ask)...)...)
		var told []string
		for _, m := range regexp.MustCompile(`\$\d+\r\n([a-z|]+)\r\n\*4\r\n\$5\r\ncalls\r\n:(\d+)\r\n\$14\r\nhistogram_usec\r\n\*\d+\r\n((?::\d+\r\n:\d+\r\n)+)`).FindAllStringSubmatch(got, -1) {
			told = append(told, m[1], m[2])
			if !strings.HasSuffix(m[3], ":"+m[2]+"\r\n") {
				t.Errorf("%s: %s has %s calls, and a histogram of others: %q", tc.ask, m[1], m[2], m[3])
			}
		}
		if strings.Join(told, " ") != tc.want || !strings.HasPrefix(got, fmt.Sprintf("*%d\r\n", len(told))) {
			t.Errorf("LATENCY HISTOGRAM %s: %q, want %q", tc.ask, got, tc.want)
		}
	}
}

func TestLatencyHistogramTakesSoManyNames(t *testing.T) {
	c := newRig(t, Config{}).dial()
	names := slices.Repeat([]string{"client"}, histogramNamesMax)
	if got := c.ask(append([]string{"LATENCY", "HISTOGRAM"}, names...)...); got != "*0\r\n" {
		t.Errorf("at the limit: %.80q", got)
	}
	if got := c.ask(append([]string{"LATENCY", "HISTOGRAM", "get"}, names...)...); !strings.HasPrefix(got, "-ERR LATENCY HISTOGRAM of more than 256 commands") {
		t.Errorf("beyond: %.80q", got)
	}
}

func TestCumulativeCountsGrow(t *testing.T) {
	var h quorum.Histogram
	for _, took := range []time.Duration{0, time.Microsecond, 3 * time.Microsecond, 3 * time.Microsecond, 5 * time.Hour} {
		h.Add(took)
	}
	took := h.Load()
	want := Map{Int(1), Int(1), Int(2), Int(2), Int(4), Int(4), Int(1 << 33), Int(5)}
	if got := cumulative(&took); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("told %v, want %v", got, want)
	}
}

func TestWhatIsSlowIsASetting(t *testing.T) {
	for _, c := range []struct {
		set   time.Duration
		told  string
		takes time.Duration
		shown int64
	}{
		{0, "10000", 9 * time.Millisecond, 0},
		{0, "10000", 10 * time.Millisecond, 1},
		{30 * time.Millisecond, "30000", 29 * time.Millisecond, 0},
		{30 * time.Millisecond, "30000", 30 * time.Millisecond, 1},
		{NoSlowLog, "-1", time.Second, 0},
	} {
		inBubble(t, Config{SlowLog: c.set}, func(t *testing.T, e *fakeEngine, srv *Server, dial func() net.Conn) {
			conn := dial()
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			e.hold()
			_, _ = io.WriteString(conn, words("GET k"))
			synctest.Wait()
			time.Sleep(c.takes)
			e.releaseAll()
			synctest.Wait()
			if n := srv.slow.Len(); n != c.shown {
				t.Errorf("slow_log %v: %d commands of %v are shown", c.set, n, c.takes)
			}
			_ = conn.Close()
		})
		want := cmdline("slowlog-log-slower-than", c.told)
		if got := newRig(t, Config{SlowLog: c.set}).dial().ask("CONFIG", "GET", "slowlog-log-slower-than"); got != want {
			t.Errorf("slow_log %v: CONFIG GET tells %q", c.set, got)
		}
	}
}

// CONFIG RESETSTAT resets the statistics of INFO. The counts of the metrics, and the slow log, stay.
func TestConfigResetStatResetsWhatRedisResets(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	for range 3 {
		c.ask("GET")
		c.ask("GET", "k")
	}
	r.server.slow.Add(slowlog.Entry{}, 0)
	all := r.server.Stats().Commands
	if got := c.ask("CONFIG", "RESETSTAT"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	told := c.ask("INFO", "stats", "commandstats", "errorstats", "latencystats")
	for _, want := range []string{"total_connections_received:0", "total_commands_processed:1", "total_error_replies:0", "cmdstat_config|resetstat:calls=1,"} {
		if !strings.Contains(told, "\n"+want) {
			t.Errorf("INFO lacks %s: %s", want, told)
		}
	}
	if strings.Contains(told, "cmdstat_get") || strings.Contains(told, "errorstat_") || strings.Contains(told, "usec_get") {
		t.Errorf("INFO tells of before the reset: %s", told)
	}
	c.ask("GET", "k")
	if told := c.ask("INFO", "commandstats"); !strings.Contains(told, "cmdstat_get:calls=1,") {
		t.Errorf("after the reset nothing is counted: %s", told)
	}
	if now := r.server.Stats().Commands; now < all || r.server.slow.Len() != 1 {
		t.Errorf("%d commands, then %d; %d slow", all, now, r.server.slow.Len())
	}
}
