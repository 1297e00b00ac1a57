package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/integration/harness"
)

// waitMax bounds every wait for another process.
const waitMax = 30 * time.Second

// build compiles lockproxy into binaries, a folder that TestMain removes.
var (
	binaries string
	build    = sync.OnceValues(func() (bin string, err error) {
		if binaries, err = os.MkdirTemp("", "lockproxy-test-"); err != nil {
			return "", err
		}
		return harness.BuildPlainProxy(binaries)
	})
)

// A running is a lockproxy process under test.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // of its standard error
	past  []string
}

func launch(t *testing.T, args ...string) *running {
	t.Helper()
	return launchWith(t, nil, args...)
}

// launchWith is launch with variables.
func launchWith(t *testing.T, env []string, args ...string) *running {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, cmd: exec.Command(bin, args...), lines: make(chan string, 1000)}
	r.cmd.Env = append(env, "PATH="+os.Getenv("PATH"))
	out, err := r.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
	}()
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

// await returns the next line with this text in it.
func (r *running) await(text string) string {
	r.t.Helper()
	deadline := time.After(waitMax)
	for {
		select {
		case line, ok := <-r.lines:
			if !ok {
				r.t.Fatalf("the process ended without saying %q; it said\n%s", text, strings.Join(r.past, "\n"))
			}
			r.past = append(r.past, line)
			if strings.Contains(line, text) {
				return line
			}
		case <-deadline:
			r.t.Fatalf("the process did not say %q; it said\n%s", text, strings.Join(r.past, "\n"))
		}
	}
}

func (r *running) signal(s os.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// exit returns the exit code and everything that was said.
func (r *running) exit() (int, string) {
	r.t.Helper()
	kill := time.AfterFunc(waitMax, func() { _ = r.cmd.Process.Kill() })
	defer kill.Stop()
	for line := range r.lines { // to the end of the output, before Wait closes the pipe
		r.past = append(r.past, line)
	}
	_ = r.cmd.Wait()
	return r.cmd.ProcessState.ExitCode(), strings.Join(r.past, "\n")
}

// field returns the value of key=value in a log line.
func field(line, key string) string {
	for part := range strings.FieldsSeq(line) {
		if v, ok := strings.CutPrefix(part, key+"="); ok {
			return v
		}
	}
	return ""
}

// ask sends one inline command and returns the first line of the reply.
func ask(t *testing.T, addr, command string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(waitMax))
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// get returns the status and the body of a page.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Timeout: waitMax, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
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

// eventually calls check until it is content.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitMax); !check(); {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
		time.Sleep(time.Millisecond) // between two looks, not instead of one
	}
}

func TestWithNothingItRunsOnEmbeddedMasters(t *testing.T) {
	// The timeouts are for busy machines.
	r := launch(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--instance-timeout", "4s", "--grace", "1s")
	ready := r.await("msg=listening")
	addr, adminAddr := field(ready, "listen"), field(ready, "admin")
	_, port, _ := net.SplitHostPort(addr)
	said := strings.Join(r.past, "\n")
	for _, want := range []string{
		"for trying out only", "nothing survives",
		"redis-cli -p " + port + " SET job:7 me NX PX 30000", "redis-cli -p " + port + " EVAL",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it did not say %q, but\n%s", want, said)
		}
	}
	eventually(t, "never ready", func() bool {
		status, _ := get(t, "http://"+adminAddr+"/lockz")
		return status == http.StatusOK
	})
	for _, step := range []struct{ command, want string }{
		{"SET job:7 me NX PX 30000", "+OK"},
		{"SET job:7 you NX PX 30000", "$-1"},
		{`EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end" 1 job:7 you`, ":0"},
		{`EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end" 1 job:7 me`, ":1"},
		{`EVAL_RO "return redis.call('set',KEYS[1],1)" 1 job:7`, "-ERR Write commands are not allowed from read-only scripts. script: beef354d82996a708aa0deac229a63225ff0dd9c, on @user_script:1."},
		{"SET job:7 you NX PX 30000", "+OK"},
		{"EXPIRE job:7 20", ":1"},
		{"SET job:7 other XX GET", "$3"},
		{"DEL job:7", ":1"},
		{"TYPE job:7", "+none"},
		{"LOCK job:8 30000 TOKEN x", "*…"},
		{"EXTEND job:8 x 20000", ":…"},
		{"FENCE job:8 1", ":0"},
		{"UNLOCK job:8 x", ":1"},
		{"SET short me NX PX 2000", "+OK"},
	} {
		got := ask(t, addr, step.command)
		begin, open := strings.CutSuffix(step.want, "…")
		if got != step.want && !(open && strings.HasPrefix(got, begin)) {
			t.Errorf("%s: %s, want %s", step.command, got, step.want)
		}
	}
	eventually(t, "the lock never expired", func() bool { return ask(t, addr, "EXISTS short") == ":0" })
	if _, page := get(t, "http://"+adminAddr+"/metrics"); !strings.Contains(page, "lockproxy_attempts_total") {
		t.Errorf("/metrics: %.200s", page)
	}
	r.signal(syscall.SIGTERM)
	if code, out := r.exit(); code != 0 {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// What it says of itself when it starts is what a client would find.
func TestAStartWithoutAQuorumSaysWhatIsMissing(t *testing.T) {
	one := startRedis(t)
	all := one + "," + startRedis(t) + "," + startRedis(t)
	r := launch(t, "--masters", all, "--listen", "127.0.0.1:0", "--admin", "off", "--instance-timeout", "1s", "--dial-timeout", "1s")
	line := r.await("listening, but no quorum can vote yet")
	for _, want := range []string{"level=WARN", "0 of 3 masters answered, 2 needed", one + " quarantined ", "or until lockproxy init"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %s", want, line)
		}
	}
	if code, out := runCommand("init", "--yes", "--masters", all); code != exitOK {
		t.Fatalf("init: %d\n%s", code, out)
	}
	r.await("ready for clients")
	r.signal(syscall.SIGTERM)
	if code, out := r.exit(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// silentMaster accepts connections and answers nothing: a command on it runs until instance_timeout.
func silentMaster(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// launchStuck starts a proxy in which one command is running and will not end by itself.
func launchStuck(t *testing.T, args ...string) *running {
	t.Helper()
	r := launch(t, append([]string{
		"--masters", silentMaster(t), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--instance-timeout", "1m", "--master-dead-after", "10m", "--dial-timeout", "1m",
	}, args...)...)
	ready := r.await("msg=listening")
	conn, err := net.Dial("tcp", field(ready, "listen"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "SET k v NX PX 300000\r\n"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command never began", func() bool {
		_, page := get(t, "http://"+field(ready, "admin")+"/metrics")
		return strings.Contains(page, "\nlockproxy_attempts_total 1\n")
	})
	return r
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	r := launchStuck(t, "--shutdown-timeout", "10m")
	r.signal(syscall.SIGTERM)
	r.await("draining")
	r.signal(os.Interrupt)
	code, out := r.exit()
	if code != exitFailure || !strings.Contains(out, "ended without draining") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// A balancer that asks /readyz sends new clients to other proxies only a while after that says no.
func TestWithADrainDelayClientsAreLetInAWhileLonger(t *testing.T) {
	r := launch(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain-delay", "10m", "--instance-timeout", "4s", "--grace", "1s")
	ready := r.await("msg=listening")
	r.await("ready for clients")
	r.signal(syscall.SIGTERM)
	if line := r.await("draining"); field(line, "at_most") != "10m15s" { // and shutdown_timeout, and master_dead_after for what masters owe
		t.Errorf("it does not say how long that may take: %s", line)
	}
	eventually(t, "/readyz says that clients may come", func() bool {
		status, _ := get(t, "http://"+field(ready, "admin")+"/readyz")
		return status == http.StatusServiceUnavailable
	})
	if reply := ask(t, field(ready, "listen"), "SET k v NX PX 30000"); reply != "+OK" {
		t.Errorf("a client that came then got %s", reply)
	}
	r.signal(os.Interrupt)
	if code, out := r.exit(); code != exitFailure || !strings.Contains(out, "ended without draining") {
		t.Errorf("a second signal: exit code %d\n%s", code, out)
	}

	r = launch(t, "--listen", "127.0.0.1:0", "--admin", "off", "--drain-delay", "300ms")
	r.await("ready for clients")
	began := time.Now()
	r.signal(syscall.SIGTERM)
	if code, out := r.exit(); code != exitOK || time.Since(began) < 300*time.Millisecond || !strings.Contains(out, "msg=stopped") {
		t.Errorf("exit code %d after %v\n%s", code, time.Since(began), out)
	}
}

// Whatever keeps the masters away, another proxy would have no quorum either, and clients are to be told why.
func TestAProxyThatStartsWithoutMastersTakesClientsSoon(t *testing.T) {
	r := launch(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--dial-timeout", "300ms", "--masters", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3")
	admin := "http://" + field(r.await("msg=listening"), "admin")
	if status, body := get(t, admin+"/readyz"); status != http.StatusServiceUnavailable && !strings.Contains(body, "ok") {
		t.Errorf("at the start: %d %s", status, body)
	}
	eventually(t, "/readyz lets no clients in", func() bool {
		status, _ := get(t, admin+"/readyz")
		return status == http.StatusOK
	})
	if out := strings.Join(r.past, "\n"); strings.Contains(out, "ready for clients") {
		t.Errorf("a quorum could vote:\n%s", out)
	}
	if status, body := get(t, admin+"/lockz"); status != http.StatusServiceUnavailable || !strings.HasPrefix(body, "NOQUORUM 0 of 3") {
		t.Errorf("/lockz: %d %s", status, body)
	}
	r.signal(syscall.SIGTERM)
	if code, out := r.exit(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// As timeout(1) sends it: to the process, and then to its group.
func TestASignalThatIsSentTwiceIsOne(t *testing.T) {
	for _, c := range []struct {
		s      os.Signal
		after  time.Duration
		second bool
	}{
		{syscall.SIGTERM, 0, false},
		{syscall.SIGTERM, 200 * time.Millisecond, false},
		{syscall.SIGTERM, 300 * time.Millisecond, true},
		{os.Interrupt, 0, true},
	} {
		if isSecond(c.s, syscall.SIGTERM, c.after) != c.second {
			t.Errorf("%v, %v after a SIGTERM: a second signal is to be %v", c.s, c.after, c.second)
		}
	}
}

// redis-server ignores it, too.
func TestAHangUpEndsOnlyWhatIsTriedOut(t *testing.T) {
	r := launch(t, "--masters", silentMaster(t), "--listen", "127.0.0.1:0", "--admin", "off")
	addr := field(r.await("msg=listening"), "listen")
	r.signal(syscall.SIGHUP)
	if reply := ask(t, addr, "PING"); reply != "+PONG" {
		t.Errorf("after SIGHUP: %s", reply)
	}
	r.signal(syscall.SIGTERM)
	if code, out := r.exit(); code != exitOK || !strings.Contains(out, "signal=terminated") {
		t.Errorf("exit code %d\n%s", code, out)
	}

	r = launch(t, "--listen", "127.0.0.1:0", "--admin", "off")
	r.await("ready for clients")
	r.signal(syscall.SIGHUP)
	if code, out := r.exit(); code != exitOK || !strings.Contains(out, "signal=hangup") || !strings.Contains(out, "msg=stopped") {
		t.Errorf("embedded masters: exit code %d\n%s", code, out)
	}
}

// The log's reader may go, as a supervisor that is restarted does: locks are served on.
func TestALogThatNobodyReadsEndsNothing(t *testing.T) {
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "--masters", silentMaster(t), "--listen", "127.0.0.1:0", "--admin", "off", "--log-level", "debug")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(log)
	for s.Scan() && !strings.Contains(s.Text(), "msg=listening") {
		continue
	}
	addr := field(s.Text(), "listen")
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // at debug each end of a connection is a line
		if reply := ask(t, addr, "PING"); reply != "+PONG" {
			t.Fatalf("got %s", reply)
		}
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// The log's reader may hang: its pipe is full, and takes nothing.
func TestALogThatTakesNothingHoldsUpNothing(t *testing.T) {
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	log, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	_ = out.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	for err == nil {
		_, err = out.Write(make([]byte, 1<<10))
	}
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	cmd := exec.Command(bin, "--masters", silentMaster(t), "--listen", addr, "--admin", "off", "--log-level", "debug")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stderr = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	defer time.AfterFunc(waitMax, func() { _ = cmd.Process.Kill() }).Stop()
	for range 200 {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
			break
		}
		time.Sleep(waitMax / 200)
	}
	for range 2 {
		if reply := ask(t, addr, "PING"); reply != "+PONG" {
			t.Fatalf("got %s", reply)
		}
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestFewFilesLeaveFewerClients(t *testing.T) {
	for _, c := range []struct {
		files    int
		upstream string
		want     int // 0: it does not start
	}{
		{0, "", 10000}, {100000, "", 10000}, {4096, "", 4096 - 48 - 3*17}, {4096, "u:1", (4096 - 48 - 3*17) / 2}, {100, "", 1}, {99, "", 0},
	} {
		var log bytes.Buffer
		p := &process{cfg: config.Default(), log: slog.New(slog.NewTextHandler(&log, nil)), addrs: make([]config.Master, 3)}
		p.cfg.Upstream.Addr = c.upstream
		got, err := p.clientsMax(c.files)
		if got != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%+v: got %d, %v", c, got, err)
		}
		if told := strings.Contains(log.String(), "max_clients is lowered"); told != (got > 0 && got < 10000) {
			t.Errorf("%+v: the log says %q", c, log.String())
		}
	}
}

func TestDrainingEndsAtShutdownTimeout(t *testing.T) {
	// instance_timeout may not exceed shutdown_timeout, so the command would take as long as draining may.
	r := launchStuck(t, "--instance-timeout", "2s", "--shutdown-timeout", "2s")
	r.signal(syscall.SIGTERM)
	if code, out := r.exit(); code != exitOK || !strings.Contains(out, "msg=stopped") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

func TestAnAddressThatCannotBeHadIsOneClearLine(t *testing.T) {
	taken, notHere := silentMaster(t), "192.0.2.1:6380"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--listen", taken, "--admin", "off"}, "listen: cannot listen on " + taken + ": address already in use; " +
			"stop what is there, or set listen to another address"},
		{[]string{"--admin", taken, "--listen", "127.0.0.1:0"}, "admin: cannot listen on " + taken + ": address already in use; " +
			"stop what is there, or set admin to another address"},
		{[]string{"--listen", notHere, "--admin", "off", "--masters", taken}, "listen: cannot listen on " + notHere + ": cannot assign requested address; " +
			"set listen to another address"},
	} {
		code, out := launch(t, c.args...).exit()
		if want := "lockproxy: " + c.want; code != exitFailure || out != want {
			t.Errorf("exit code %d\n got %s\nwant %s", code, out, want)
		}
	}
}

func TestEmbeddedMastersServeNobodyElsewhere(t *testing.T) {
	code, out := launch(t, "--listen", "0.0.0.0:0", "--admin", "off").exit()
	if want := "lockproxy: no masters are named, and other machines can reach listen 0.0.0.0:0; name masters"; code != exitUsage || !strings.HasPrefix(out, want) {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

func TestWhatMakesNoSenseIsExitCode2(t *testing.T) {
	code, out := launch(t, "--databases", "0", "--grace", "x", "--masters", "redis://u:s3cr3t@a/x").exit()
	if code != exitUsage || strings.Count(out, "\n") != 2 || strings.Contains(out, "s3cr3t") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
