package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// A person opens the console: who holds job:7? Then a master falls out, and comes back.
func TestTheConsoleInABrowser(t *testing.T) {
	browser := browserOf(t)
	masters := startMasters(t, 3)
	admin := freeAddr(t)
	proxy := startProxy(t, harness.Addrs(masters), "--admin", admin)
	c := dial(t, proxy.Addr)
	for _, about := range [][]string{{"SETNAME", "billing-3"}, {"SETINFO", "LIB-NAME", "redis-py"}, {"SETINFO", "LIB-VER", "5.0.1"}} {
		expect(t, c, "+OK\r\n", append([]string{"CLIENT"}, about...)...)
	}
	expect(t, c, "+OK\r\n", "SET", "job:7", "worker-12", "NX", "PX", "600000")
	e := dial(t, proxy.Addr)
	expect(t, e, "+OK\r\n", "CLIENT", "SETINFO", "LIB-NAME", "<img>")
	expect(t, e, "+OK\r\n", "SET", "evil", "<img src=x onerror=document.body.append('pwned')>", "NX", "PX", "600000")
	page := "http://" + admin + "/"
	for range 3 {
		expect(t, c, "$-1\r\n", "SET", "job:7", "worker-13", "NX", "PX", "600000")
	}
	expect(t, c, "$-1\r\n", "LOCK", "job:7", "60000", "WAIT", "600")

	shown := browser.show(t, page+"?match=job:*")
	wantOn(t, shown, `<a href="lock?db=0&amp;name=job%3a7">job:7</a>`, "worker-12", "billing-3, 127.0.0.1:", "user default, redis-py 5.0.1", "A quorum votes.",
		`<td data-of="refused most"><a href="lock?db=0&amp;name=job%3a7">job:7</a>`, `<td data-of="waited for longest"><a href="lock?db=0&amp;name=job%3a7">job:7</a>`)
	if strings.Contains(shown, "evil") {
		t.Error("the pattern leaves evil in")
	}
	wantOn(t, browser.show(t, page+"lock?name=job:7"), "worker-12", ">held<", "<dd>billing-3</dd>", "<dd>127.0.0.1:", "<dd>redis-py 5.0.1</dd>", masters[2].Addr)
	if shown = browser.show(t, page); !strings.Contains(shown, "&lt;img") || strings.Contains(shown, "<img") || strings.Contains(shown, "pwned<") {
		t.Errorf("a token is more than text: %s", shown)
	}

	masters[0].Kill()
	eventually(t, cleanMax, "the console shows the master that is gone", func() error {
		return has(browser.show(t, page), masters[0].Addr, ">disconnected<")
	})
	browser.picture(t, page+"?match=job:*")
	if err := masters[0].Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, cleanMax, "the console shows that it may have forgotten locks", func() error {
		return has(browser.show(t, page), ">quarantined<", "at most")
	})
	if err := masters[1].Pause(); err != nil {
		t.Fatal(err)
	}
	eventually(t, cleanMax, "the console shows that no lock can be had", func() error {
		return has(browser.show(t, page), "No lock can be had", ">disconnected<")
	})
	if err := masters[1].Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, cleanMax, "the console shows the master that is back", func() error {
		shown := browser.show(t, page)
		if strings.Contains(shown, ">disconnected<") {
			return errors.New(shown)
		}
		return has(shown, "A quorum votes.")
	})
}

// The page keeps itself up to date: a lock that is taken after the page was opened comes onto the page.
func TestTheConsoleRefreshesItself(t *testing.T) {
	browser := browserOf(t)
	admin := &url.URL{Scheme: "http", Host: freeAddr(t)}
	proxy := startProxy(t, harness.Addrs(startMasters(t, 3)), "--admin", admin.Host)
	c := dial(t, proxy.Addr)
	var opened atomic.Int32
	through := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(admin)
			if r.In.URL.Path == "/" && opened.Add(1) == 2 {
				expect(t, c, "+OK\r\n", "SET", "later", "worker-13", "NX", "PX", "600000")
				eventually(t, cleanMax, "what the masters have is no older than a second", func() error {
					return has(get(t, admin.String()), ">later<")
				})
			}
		},
	})
	defer through.Close()
	shown := browser.show(t, through.URL)
	if opened.Load() < 2 {
		t.Fatalf("the page was asked for %d times", opened.Load())
	}
	wantOn(t, shown, ">later<", "worker-13")
}

func get(t *testing.T, page string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A web page from elsewhere may let its name mean the address of the admin port.
func TestTheConsoleIsForItsOwnHost(t *testing.T) {
	admin := freeAddr(t)
	startProxy(t, harness.Addrs(startMasters(t, 3)), "--admin", admin)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "evil.example"
	req.Header.Set("Accept", "text/html")
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("answered with %s", reply.Status)
	}
}

// A browser is the path of a Chromium.
type browser string

func browserOf(t *testing.T) browser {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return browser(path)
		}
	}
	missing(t, "LOCKPROXY_REQUIRE_BROWSER", "chromium is not installed")
	return ""
}

// show opens a page, lets its scripts run for some seconds, and returns what the page has become.
func (b browser) show(t *testing.T, page string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, string(b), "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=7000", "--dump-dom", page)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	return string(out)
}

// picture writes docs/console.png, if LOCKPROXY_PICTURES is set.
func (b browser) picture(t *testing.T, page string) {
	t.Helper()
	if os.Getenv("LOCKPROXY_PICTURES") == "" {
		return
	}
	eventually(t, cleanMax, "the charts have lines", func() error { return has(get(t, page), `class="acquired" points="6`) })
	file, err := filepath.Abs("../docs/console.png")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), string(b), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,900",
		"--user-data-dir="+t.TempDir(), "--screenshot="+file, page).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func has(page string, want ...string) error {
	for _, w := range want {
		if !strings.Contains(page, w) {
			return fmt.Errorf("%q is not on the page: %s", w, page)
		}
	}
	return nil
}

func wantOn(t *testing.T, page string, want ...string) {
	t.Helper()
	if err := has(page, want...); err != nil {
		t.Error(err)
	}
}
