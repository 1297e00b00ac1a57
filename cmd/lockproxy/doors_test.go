package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// elsewhere returns an address of this machine that is not loopback: who connects to it comes from it.
func elsewhere(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

// said sends commands, and returns all that comes until the reply to a PING behind them.
func said(t *testing.T, addr string, commands ...string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(waitMax))
	if _, err := io.WriteString(conn, strings.Join(commands, "\r\n")+"\r\nPING the-end\r\n"); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for in := bufio.NewReader(conn); !strings.HasSuffix(all.String(), "the-end\r\n"); {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %q", err, all.String())
		}
		all.WriteString(line)
	}
	return all.String()
}

// greeted sends PING, and returns the first line of the answer.
func greeted(t *testing.T, addr string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, "PING\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(line, "\r\n")
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// As in Redis: where nobody needs to log in, only this machine is served.
func TestProtectedModeTurnsOtherMachinesAway(t *testing.T) {
	other, master := elsewhere(t), silentMaster(t)
	for _, c := range []struct {
		args string
		want string // the beginning of what a client from elsewhere gets
	}{
		{"", "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. In this mode "},
		{"--protected-mode", "-DENIED "},
		{"--protected-mode no", "+PONG"},
		{"USERS", "-NOAUTH "},
	} {
		env := []string(nil)
		if args, asked := strings.CutPrefix(c.args, "USERS"); asked {
			c.args, env = args, []string{"LOCKPROXY_USERS=bob:secret"}
		}
		r := launchWith(t, env, append([]string{"--masters", master, "--listen", "0.0.0.0:0", "--admin", "off"}, strings.Fields(c.args)...)...)
		port := portOf(field(r.await("msg=listening"), "listen"))
		for range 3 {
			if got := greeted(t, other+":"+port); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s%v: %s", c.args, env, got)
			}
		}
		if got := greeted(t, "127.0.0.1:"+port); env == nil && got != "+PONG" {
			t.Errorf("%s over loopback: %s", c.args, got)
		}
		r.signal(os.Interrupt)
		r.exit()
	}
}

// An IPv4 address means IPv4 alone.
func TestAnIPv4AddressServesNoIPv6(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("this machine has no IPv6")
	} else {
		_ = l.Close()
	}
	for _, c := range []struct {
		host string
		six  bool
	}{
		{"0.0.0.0", false}, {"127.0.0.1", false}, {"[::ffff:0.0.0.0]", false}, {"", true}, {"[::]", true},
	} {
		r := launch(t, "--masters", silentMaster(t), "--listen", c.host+":0", "--admin", c.host+":0")
		ready := r.await("msg=listening")
		for _, setting := range []string{"listen", "admin"} {
			port := portOf(field(ready, setting))
			four, err4 := net.Dial("tcp", "127.0.0.1:"+port)
			six, err6 := net.Dial("tcp", "[::1]:"+port)
			if err4 != nil || (err6 == nil) != c.six {
				t.Errorf("%s %s: IPv4 %v, IPv6 %v", setting, c.host, err4, err6)
			}
			for _, conn := range []net.Conn{four, six} {
				if conn != nil {
					_ = conn.Close()
				}
			}
		}
		r.signal(os.Interrupt)
		r.exit()
	}
}

// Whatever page is asked for, none has a password in it, nor has the log.
func TestNoPageShowsAPassword(t *testing.T) {
	const secret = "s3cr3t"
	r := launch(t, "--masters", "redis://bob:"+secret+"@"+silentMaster(t)+",redis://:"+secret+"@127.0.0.1:1", "--upstream=redis://u:"+secret+"@127.0.0.1:2/2",
		"--lock-keys", "lock:*", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--pprof", "--log-level", "debug")
	ready := r.await("msg=listening")
	admin := "http://" + field(ready, "admin")
	for _, path := range []string{
		"/", "/healthz", "/readyz", "/metrics", "/debug/vars", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/cmdline?debug=1",
		"/debug/pprof/cmdline/", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/debug/pprof/allocs?debug=1",
		"/debug/pprof/threadcreate?debug=1", "/debug/pprof/block?debug=1", "/debug/pprof/mutex?debug=1", "/debug/pprof/profile?seconds=1",
		"/debug/pprof/trace?seconds=1", "/debug/pprof/symbol", "/metrics?name[]=" + "x", "/debug/requests", "/debug/events",
	} {
		if _, page := get(t, admin+path); strings.Contains(page, secret) {
			t.Errorf("%s shows the password:\n%s", path, page)
		}
	}
	replies := said(t, field(ready, "listen"), "INFO", "INFO everything", "CONFIG GET *", "CLIENT LIST", "CLIENT INFO",
		"SET lock:1 a NX PX 30000", "GET data", "LOCKINFO lock:1", "DEBUG JMAP", "ACL LIST", "CONFIG GET requirepass")
	if strings.Contains(replies, secret) {
		t.Errorf("a reply shows the password: %s", replies)
	}
	r.signal(os.Interrupt)
	if _, log := r.exit(); strings.Contains(log, secret) {
		t.Errorf("the log shows the password:\n%s", log)
	}
}
