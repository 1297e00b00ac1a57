package integration

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// The slow log shows a command as Redis shows the same command. At the proxy, commands are slow because the masters pause.
func TestTheSlowLogShowsCommandsAsRedisDoes(t *testing.T) {
	servers := startMasters(t, 4)
	masters, redis := servers[:3], servers[3:]
	proxy := startProxy(t, harness.Addrs(masters), patient()...)
	commands := [][]string{
		{"SET", "k", "v", "NX", "PX", "60000"},
		{"set", strings.Repeat("k", 128), strings.Repeat("v", 129)},
		{"GET", strings.Repeat("k", 1000)},
		{"EXISTS", "\x00\xff \r\n", ""},
		append([]string{"EXISTS"}, strings.Fields(strings.Repeat("x ", 31))...),
		append([]string{"EXISTS"}, strings.Fields(strings.Repeat("x ", 32))...),
		append([]string{"EXISTS"}, strings.Fields(strings.Repeat("x ", 50))...),
		{"EVAL", "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end", "1", "k", "me"},
		{"HGET", "k", "f"},
	}
	direct(t, redis, "CONFIG", "SET", "slowlog-log-slower-than", "0")
	id := regexp.MustCompile(`^:\d+\r\n:\d{10}\r\n:\d+\r\n`)
	client := regexp.MustCompile(`\$\d+\r\n127\.0\.0\.1:\d+\r\n`)
	tell := func(addr string, slowDown func()) (told []string) {
		c := dial(t, addr)
		expect(t, c, "+OK\r\n", "CLIENT", "SETNAME", "me")
		for _, command := range commands {
			expect(t, c, "+OK\r\n", "SLOWLOG", "RESET")
			eventually(t, gone, "an entry", func() error {
				slowDown()
				if _, err := c.Do(command...); err != nil {
					t.Fatal(err)
				}
				reply, err := c.Do("SLOWLOG", "GET", "100")
				if err != nil {
					t.Fatal(err)
				}
				for _, entry := range strings.Split(string(reply), "*6\r\n")[1:] {
					args := client.ReplaceAllString(id.ReplaceAllString(entry, ""), "the client, ")
					if !strings.Contains(entry, "$7\r\nSLOWLOG\r\n") {
						told = append(told, args)
						return nil
					}
				}
				return fmt.Errorf("%.20q is not slow", command)
			})
		}
		return told
	}
	ours := tell(proxy.Addr, func() { direct(t, masters, "CLIENT", "PAUSE", "30") })
	theirs := tell(redis[0].Addr, func() {})
	if len(ours) != len(commands) || !slices.Equal(ours, theirs) {
		for i := range min(len(ours), len(theirs)) {
			if ours[i] != theirs[i] {
				t.Errorf("the proxy tells\n%q\nRedis tells\n%q", ours[i], theirs[i])
			}
		}
		t.Errorf("%d commands are told of %d", len(ours), len(commands))
	}
}

// LATENCY HISTOGRAM counts the calls that a real Redis counts, in the same shape, by both protocols.
func TestHistogramsOfLatencyAreToldAsByRedis(t *testing.T) {
	servers := startMasters(t, 4)
	proxy := startProxy(t, harness.Addrs(servers[:3]))
	entry := regexp.MustCompile(`\$\d+\r\n([a-z|]+)\r\n([*%]\d)\r\n\$5\r\ncalls\r\n:(\d+)\r\n\$14\r\nhistogram_usec\r\n([*%])\d+\r\n((?::\d+\r\n)+)`)
	tell := func(addr string) (told []string) {
		for _, protocol := range []string{"2", "3"} {
			c := dial(t, addr)
			for _, line := range []string{"HELLO " + protocol, "SET k v NX PX 60000", "SET k v NX PX 60000", "STRLEN k", "CONFIG GET save", "COMMAND COUNT", "STRLEN"} {
				if _, err := c.Do(strings.Fields(line)...); err != nil {
					t.Fatal(err)
				}
			}
			reply, err := c.Do("LATENCY", "HISTOGRAM", "set", "STRLEN", "set", "config", "Command|Count", "no-such-command", "exists")
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(string(reply), "\r\n")
			told = append(told, head)
			for _, m := range entry.FindAllStringSubmatch(string(reply), -1) {
				told = append(told, fmt.Sprint(m[1:5]))
				counts := strings.Split(strings.TrimSuffix(strings.ReplaceAll(m[5], ":", ""), "\r\n"), "\r\n")
				if grows(counts, 0) && grows(counts, 1) && counts[len(counts)-1] == m[3] {
					continue
				}
				t.Errorf("%s: the counts of %s do not add up: %v", addr, m[1], counts)
			}
		}
		return told
	}
	if ours, theirs := tell(proxy.Addr), tell(servers[3].Addr); len(ours) != 12 || !slices.Equal(ours, theirs) {
		t.Errorf("the proxy tells\n%s\nRedis tells\n%s", strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
	}
}

// grows says whether every other number, from the first on, is greater than the one before.
func grows(numbers []string, first int) bool {
	before := -1
	for i := first; i < len(numbers); i += 2 {
		n, err := strconv.Atoi(numbers[i])
		if err != nil || n <= before {
			return false
		}
		before = n
	}
	return true
}

// CONFIG RESETSTAT resets what a real Redis resets.
func TestStatisticsAreResetAsByRedis(t *testing.T) {
	servers := startMasters(t, 4)
	proxy := startProxy(t, harness.Addrs(servers[:3]))
	tell := func(addr string) []string {
		c := dial(t, addr)
		for _, line := range []string{"SET k v NX PX 60000", "SET", "NOSUCH", "EVALSHA ffff 0", "CONFIG RESETSTAT"} {
			if _, err := c.Do(strings.Fields(line)...); err != nil {
				t.Fatal(err)
			}
		}
		info, err := c.Do("INFO", "stats", "commandstats", "errorstats", "latencystats")
		if err != nil {
			t.Fatal(err)
		}
		told := lines(string(info), "errorstat_")
		for _, field := range []string{"total_connections_received:", "total_commands_processed:", "rejected_connections:", "total_error_replies:"} {
			told = append(told, lines(string(info), field)...)
		}
		for _, line := range append(lines(string(info), "cmdstat_"), lines(string(info), "latency_percentiles_usec_")...) {
			name, _, _ := strings.Cut(line, ":")
			told = append(told, name)
		}
		return told
	}
	if ours, theirs := tell(proxy.Addr), tell(servers[3].Addr); len(ours) != 6 || !slices.Equal(ours, theirs) {
		t.Errorf("the proxy tells\n%s\nRedis tells\n%s", strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
	}
}
