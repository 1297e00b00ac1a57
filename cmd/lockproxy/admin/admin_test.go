package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockproxy/quorum"
	"lockproxy/resp"
	"lockproxy/resp/group"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fake is an engine and a front end of which everything is known.
type fake struct{}

func (f *fake) Databases() []quorum.DatabaseStatus {
	return []quorum.DatabaseStatus{f.Database(0), f.Database(7), f.Database(8)}
}

// Database has a quorum in database 7 alone.
func (f *fake) Database(db int) quorum.DatabaseStatus {
	s := quorum.DatabaseStatus{DB: db, Masters: f.masters()}
	switch db {
	case 7:
		s.Masters[2] = quorum.MasterStatus{Addr: "c:1"}
	case 8:
		s.Masters[0] = quorum.MasterStatus{Addr: "a:1", State: quorum.Quarantined, Cause: "new", Left: 13 * time.Second}
	}
	return s
}

func (f *fake) masters() []quorum.MasterStatus {
	return []quorum.MasterStatus{
		{Addr: "a:1", State: quorum.Clean, RoundTrip: 1500 * time.Microsecond, ClockOffset: -time.Second / 4, Dropped: 38, Votes: quorum.Votes{
			Granted: 7, Refused: 8, Failed: 9, Failures: quorum.Failures{quorum.FailedLate: 4, quorum.FailedClock: 5},
		}},
		{Addr: "b:1", State: quorum.Disconnected, Cause: "connection refused"},
		{Addr: "c:1", State: quorum.Quarantined, Left: 12 * time.Second},
	}
}

func (f *fake) Stats() quorum.Stats {
	return quorum.Stats{Attempts: 10, Acquired: 1, Refused: 2, NoQuorum: 3, Released: 4, Extended: 5, Undone: 6, Expired: 11,
		Scripts: 12, ScriptsDisputed: 13, InLine: 39, RoundsNow: 40, RoundsLimit: 41, OtherNames: 42, Rounds: quorum.Durations{Count: 9, Sum: 3 * time.Second, Below: [34]uint64{6: 2, 3, 33: 4}}}
}

type fakeFront struct{}

func (fakeFront) Stats() resp.Stats {
	return resp.Stats{Clients: 21, Accepted: 22, Rejected: 23, Commands: 24, ProtocolErrors: 25, Late: 26, Forwarded: 27, UpstreamErrors: 28, UpstreamLinks: 29, UpstreamDown: true,
		Waiting: 31, Held: 32, HeldLost: 33, Split: 34, LoginsRefused: 35, MemoryRefused: 36, Buffers: 37, Evicted: 43}
}

func (fakeFront) LockGroups() []group.Count {
	g := group.Count{Label: "stock", Refused: 44, Held: quorum.Durations{Count: 45, Sum: 46 * time.Second, Below: [34]uint64{9: 1, 2, 32: 42}}}
	g.Waited[group.Refused] = quorum.Durations{Count: 47, Sum: 48 * time.Second, Below: [34]uint64{26: 3, 44}}
	return []group.Count{g, {Label: "other"}}
}

// A certificate expires so many seconds after 1970; one of 0 is not there.
type certificate int64

func (c certificate) Until() time.Time {
	if c == 0 {
		return time.Time{}
	}
	return time.Unix(int64(c), 0)
}

var certificates = map[string]Certificate{"tls_cert": certificate(2000000001), "master_tls_cert": certificate(0)}

// serve runs a server and returns how to get a page of it.
func serve(t *testing.T, engine Engine, pprof bool) (s *Server, get func(path string) (int, string)) {
	t.Helper()
	return serveOn(t, listen(t), engine, pprof)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serveOn is serve where the test knows the listener.
func serveOn(t *testing.T, l net.Listener, engine Engine, pprof bool) (s *Server, get func(path string) (int, string)) {
	t.Helper()
	s = New(engine, fakeFront{}, Options{Version: "v9", Databases: 16, Pprof: pprof, Certificates: certificates, Logger: slog.New(slog.DiscardHandler)})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	return s, func(path string) (int, string) {
		t.Helper()
		resp, err := client.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
}

// A counted listener knows how many of its connections are open.
type counted struct {
	net.Listener
	open atomic.Int64
}

type countedConn struct {
	net.Conn
	closed func()
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.open.Add(1)
		c = &countedConn{c, sync.OnceFunc(func() { l.open.Add(-1) })}
	}
	return c, err
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

// Those who come and say nothing, or never end what they say, take no more files than the pages may have, and keep nobody from
// being answered.
func TestAtMostSoManyConnections(t *testing.T) {
	for _, said := range []string{"", "G", "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"} {
		l := listen(t)
		door := &counted{Listener: l}
		_, get := serveOn(t, door, &fake{}, true)
		for range 3 * ConnectionsMax {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, said); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 * ConnectionsMax {
			if status, _ := get("/lockz?db=7"); status != 200 {
				t.Errorf("%q: /lockz says %d", said, status)
			}
		}
		if open := door.open.Load(); open > ConnectionsMax {
			t.Errorf("%q: %d connections are open", said, open)
		}
	}
}

// A balancer that takes a proxy out for want of masters takes out all of them, and clients are not told why.
func TestABalancerIsToldOfStartsAndStopsAlone(t *testing.T) {
	s, get := serve(t, &fake{}, false)
	tells := func(path string, status int, body string) {
		t.Helper()
		if is, said := get(path); is != status || !strings.HasPrefix(said, body) {
			t.Errorf("%s: %d %q", path, is, said)
		}
	}
	tells("/readyz", 503, "lockproxy is starting\n")
	s.Open()
	tells("/readyz", 200, "ok\n")
	tells("/lockz", 503, "NOQUORUM 1 of 3")
	s.Drain()
	s.Open() // from the vigil, late
	tells("/readyz", 503, "lockproxy is shutting down\n")
	tells("/healthz", 200, "ok\n")
}

func TestAlertsAreToldOfEachDatabaseByItself(t *testing.T) {
	_, get := serve(t, &fake{}, false)
	for path, want := range map[string]string{
		"/lockz":       "503 NOQUORUM 1 of 3 masters answered, 2 needed: b:1 connection refused; c:1 ",
		"/lockz?db=0":  "503 NOQUORUM 1 of 3 masters answered, 2 needed: b:1 connection refused; c:1 ",
		"/lockz?db=7":  "200 ok",
		"/lockz?db=8":  "503 NOQUORUM 0 of 3 masters answered, 2 needed: a:1 new; b:1 connection refused; c:1 ",
		"/lockz?db=16": "400 db is a number from 0 to 15",
		"/lockz?db=":   "400 db is a number from 0 to 15",
		"/lockz?db=-1": "400 db is a number from 0 to 15",
	} {
		if status, body := get(path); fmt.Sprintf("%d %s", status, body) != want+"\n" {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
}

func TestMetricsNameEverythingThatIsCounted(t *testing.T) {
	_, get := serve(t, &fake{}, false)
	status, page := get("/metrics")
	if status != 200 {
		t.Fatalf("%d %s", status, page)
	}
	for _, want := range []string{
		`lockproxy_build_info{version="v9"} 1`,
		`lockproxy_certificate_expiry_timestamp_seconds{setting="tls_cert"} 2.000000001e+09`,
		`lockproxy_ready{db="0"} 0`,
		`lockproxy_ready{db="7"} 1`,
		`lockproxy_ready{db="8"} 0`,
		`lockproxy_master_connected{db="0",master="a:1"} 1`,
		`lockproxy_master_connected{db="0",master="b:1"} 0`,
		`lockproxy_master_clean{db="0",master="a:1"} 1`,
		`lockproxy_master_clean{db="8",master="a:1"} 0`,
		`lockproxy_master_clean{db="0",master="b:1"} 0`,
		`lockproxy_master_clean{db="0",master="c:1"} 0`,
		`lockproxy_master_connected{db="0",master="c:1"} 1`,
		`lockproxy_master_quarantine_seconds{db="0",master="c:1"} 12`,
		`lockproxy_master_quarantine_seconds{db="8",master="a:1"} 13`,
		`lockproxy_master_clock_offset_seconds{master="a:1"} -0.25`,
		`lockproxy_master_batches_dropped_total{master="a:1"} 38`,
		`lockproxy_master_round_trip_seconds{master="a:1"} 0.0015`,
		`lockproxy_master_votes_total{master="a:1",vote="granted"} 7`,
		`lockproxy_master_votes_total{master="a:1",vote="refused"} 8`,
		`lockproxy_master_votes_total{master="a:1",vote="failed"} 9`,
		`lockproxy_master_votes_failed_total{cause="late",master="a:1"} 4`,
		`lockproxy_master_votes_failed_total{cause="clock",master="a:1"} 5`,
		`lockproxy_master_votes_failed_total{cause="horizon",master="b:1"} 0`,
		`lockproxy_attempts_total 10`,
		`lockproxy_attempt_outcomes_total{outcome="acquired"} 1`,
		`lockproxy_attempt_outcomes_total{outcome="refused"} 2`,
		`lockproxy_attempt_outcomes_total{outcome="noquorum"} 3`,
		`lockproxy_attempt_outcomes_total{outcome="expired"} 11`,
		`lockproxy_released_total 4`,
		`lockproxy_extended_total 5`,
		`lockproxy_undone_total 6`,
		`lockproxy_scripts_total 12`,
		`lockproxy_scripts_disputed_total 13`,
		`lockproxy_other_names_total 42`,
		`lockproxy_in_line 39`,
		`lockproxy_rounds_now 40`,
		`lockproxy_rounds_limit 41`,
		`lockproxy_round_seconds_bucket{le="6.4e-05"} 2`,
		`lockproxy_round_seconds_bucket{le="0.000128"} 5`,
		`lockproxy_round_seconds_bucket{le="2.097152"} 5`,
		`lockproxy_round_seconds_bucket{le="+Inf"} 9`,
		`lockproxy_round_seconds_sum 3`,
		`lockproxy_waiting 31`,
		`lockproxy_held 32`,
		`lockproxy_held_lost_total 33`,
		`lockproxy_lock_refusals_total{group="stock"} 44`,
		`lockproxy_lock_refusals_total{group="other"} 0`,
		`lockproxy_lock_hold_seconds_bucket{group="stock",le="0.001024"} 3`,
		`lockproxy_lock_hold_seconds_bucket{group="stock",le="4294.967296"} 45`,
		`lockproxy_lock_hold_seconds_sum{group="stock"} 46`,
		`lockproxy_lock_wait_seconds_bucket{group="stock",outcome="refused",le="67.108864"} 3`,
		`lockproxy_lock_wait_seconds_count{group="stock",outcome="refused"} 47`,
		`lockproxy_lock_wait_seconds_count{group="stock",outcome="granted"} 0`,
		`lockproxy_lock_wait_seconds_count{group="other",outcome="failed"} 0`,
		`lockproxy_clients 21`,
		`lockproxy_clients_accepted_total 22`,
		`lockproxy_clients_rejected_total 23`,
		`lockproxy_commands_total 24`,
		`lockproxy_protocol_errors_total 25`,
		`lockproxy_late_replies_total 26`,
		`lockproxy_upstream_commands_total 27`,
		`lockproxy_upstream_errors_total 28`,
		`lockproxy_split_requests_total 34`,
		`lockproxy_logins_refused_total 35`,
		`lockproxy_memory_refused_total 36`,
		`lockproxy_client_buffers_bytes 37`,
		`lockproxy_clients_evicted_total 43`,
		`lockproxy_upstream_connections 29`,
		`lockproxy_upstream_down 1`,
		`go_goroutines `,
	} {
		if !strings.Contains(page, "\n"+want) {
			t.Errorf("no %s", want)
		}
	}
	if none := `{setting="master_tls_cert"}`; strings.Contains(page, none) {
		t.Errorf("there is %s, but no certificate", none)
	}
}

// An alert on a metric that does not exist never fires.
func TestEveryMetricThatOperatorsAreToldOfIsThere(t *testing.T) {
	var text []byte
	for _, page := range []string{"deploying", "operating", "troubleshooting"} {
		read, err := os.ReadFile("../../../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, read...)
	}
	_, get := serve(t, &fake{}, false)
	_, page := get("/metrics")
	told := regexp.MustCompile(`lockproxy_\w+(\{\w+="\w+")?`).FindAllString(string(text), -1)
	if len(told) < 10 {
		t.Fatalf("the pages tell of %q only", told)
	}
	for _, metric := range told {
		if strings.Contains(page, "\n# TYPE "+metric+" histogram\n") {
			continue
		}
		if !slices.ContainsFunc([]string{" ", "{", "}", ","}, func(next string) bool { return strings.Contains(page, "\n"+metric+next) }) {
			t.Errorf("there is no %s", metric)
		}
	}
}

// A probe of a path that does not exist keeps a pod out of service for ever.
func TestEveryProbeThatOperatorsAreGivenIsThere(t *testing.T) {
	text, err := os.ReadFile("../../../docs/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	s, get := serve(t, &fake{}, false)
	s.Open()
	probes := regexp.MustCompile(`httpGet: \{path: (\S+),`).FindAllStringSubmatch(string(text), -1)
	if len(probes) != 3 {
		t.Fatalf("docs/deploying.md has the probes %q", probes)
	}
	for _, probe := range probes {
		if status, body := get(probe[1]); status != 200 && status != 503 || status == 503 && probe[1] != "/lockz" {
			t.Errorf("%s: %d %s", probe[1], status, body)
		}
	}
}

func TestProfilesAreThereOnlyIfAskedFor(t *testing.T) {
	_, get := serve(t, &fake{}, false)
	if status, _ := get("/debug/pprof/"); status != 404 {
		t.Errorf("off: %d", status)
	}
	_, get = serve(t, &fake{}, true)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline"} {
		if status, _ := get(path); status != 200 {
			t.Errorf("%s on: %d", path, status)
		}
	}
}

func TestOtherPagesAndMethods(t *testing.T) {
	_, get := serve(t, &fake{}, false)
	if status, body := get("/"); status != 200 || !strings.Contains(body, "/readyz\n/lockz\n") {
		t.Errorf("%d %q", status, body)
	}
	if status, _ := get("/nothing"); status != 404 {
		t.Errorf("%d", status)
	}
}

func TestAListenerThatFailsIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	s := New(&fake{}, fakeFront{}, Options{Logger: slog.New(slog.DiscardHandler)})
	if err := s.Serve(l); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

func TestMetricsDescribeWhatTheyCollect(t *testing.T) {
	if _, err := registry(&fake{}, fakeFront{}, Options{Version: "v", Certificates: certificates}).Gather(); err != nil {
		t.Error(err)
	}
}
