package admin

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestWhichHostsAreAnswered(t *testing.T) {
	for _, c := range []struct {
		host    string
		answers bool
	}{
		{"", true},
		{"127.0.0.1:6381", true},
		{"127.0.0.1", true},
		{"10.1.2.3:6381", true},
		{"[::1]:6381", true},
		{"[::1]", true},
		{"[fe80::1%25eth0]:6381", true},
		{"localhost:6381", true},
		{"LocalHost.", true},
		{"a.localhost:80", true},
		{"proxy-1:6381", true},
		{"PROXY-1", true},
		{"proxy-1.locks.svc.cluster.local.:6381", true},

		{"evil.example", false},
		{"evil.example:6381", false},
		{"evil", false},
		{"127.0.0.1.evil.example:6381", false},
		{"localhost.evil.example", false},
		{"notlocalhost", false},
		{".localhost", false},
		{"2130706433", false},
		{"127.1", false},
		{"svc.cluster.local", false},
		{".svc.cluster.local", false},
		{"xsvc.cluster.local", false},
		{"proxy-1@evil.example", false},
		{"evil.example#localhost", false},
		{"proxy-1..", false},
		{":6381", false},
	} {
		a := allow([]string{"Proxy-1", "*.svc.cluster.local"})
		if got := a.answers(c.host); got != c.answers {
			t.Errorf("%q: %v", c.host, got)
		}
	}
	if a := allow([]string{"*"}); !a.answers("evil.example") {
		t.Error("* does not mean any host")
	}
}

// raw sends a request as it is, and returns all of the answer.
func raw(t *testing.T, addr, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

// A page that somebody else's name leads to shows nothing, whichever way the name is told.
func TestAForeignHostSeesNothing(t *testing.T) {
	l := listen(t)
	serveOn(t, l, &fake{}, true)
	addr := l.Addr().String()
	for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/heap", "/nothing"} {
		for _, request := range []string{
			"GET " + path + " HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
			"GET http://evil.example" + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
			"GET " + path + " HTTP/1.0\r\nHost: evil.example\r\n\r\n",
		} {
			if answer := raw(t, addr, request); !strings.Contains(answer, " 421 ") || !strings.Contains(answer, `"evil.example"`) {
				t.Errorf("%q: %q", request, answer)
			}
		}
	}
	for _, request := range []string{
		"GET /healthz HTTP/1.0\r\n\r\n", // as HAProxy's httpchk
		"GET /healthz HTTP/1.1\r\nHost: " + addr + "\r\nConnection: close\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nHost: 10.9.8.7:1\r\nConnection: close\r\n\r\n", // as a kubelet, which asks by the pod's address
	} {
		if answer := raw(t, addr, request); !strings.Contains(answer, " 200 ") {
			t.Errorf("%q: %q", request, answer)
		}
	}
}

// The command line may have a password in it, as in --masters redis://user:password@host.
func TestTheCommandLineIsNotShown(t *testing.T) {
	_, get := serve(t, &fake{}, true)
	if status, body := get("/debug/pprof/cmdline"); status != http.StatusOK || strings.ContainsAny(body, "\x00 ") || strings.Contains(body, "-test.") {
		t.Errorf("%d %q", status, body)
	}
}
