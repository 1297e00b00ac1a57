package integration

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// versionBefore is what proxies are upgraded from: the latest tag, or, as there is none yet, a commit that makes the same mark on masters.
const versionBefore = "57edf276ed32dabaf8d941c5ce9b4d064fbdc5f7"

// buildBefore builds the version before, out of this repository's history. LOCKPROXY_UPGRADE_FROM names another one.
func buildBefore(t *testing.T) string {
	t.Helper()
	// safe.directory: the checkout may belong to another user, whom git does not trust then.
	rev := cmp.Or(os.Getenv("LOCKPROXY_UPGRADE_FROM"), versionBefore)
	if tag, err := exec.Command("git", "-c", "safe.directory=*", "describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^").Output(); err == nil {
		rev = cmp.Or(os.Getenv("LOCKPROXY_UPGRADE_FROM"), strings.TrimSpace(string(tag)))
	}
	dir := t.TempDir()
	source, err := exec.Command("git", "-C", "..", "-c", "safe.directory=*", "archive", rev).Output()
	if err != nil {
		missing(t, "LOCKPROXY_REQUIRE_HISTORY", "the history of the repository lacks %s", rev)
	}
	unpack := exec.Command("tar", "x", "-C", dir)
	unpack.Stdin = strings.NewReader(string(source))
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	bin := filepath.Join(dir, "lockproxy-before")
	build := exec.Command("go", "build", "-trimpath", "-o", bin, "./cmd/lockproxy")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", rev, err, out)
	}
	return bin
}

// A guarded is a resource that its lock alone protects. Its count is read and written apart, so that two holders at a time lose updates.
type guarded struct {
	inside atomic.Int32 // holders
	count  atomic.Int64
	grants atomic.Int64
	fence  atomic.Int64
}

// visit is what a holder does, within its validity.
func (g *guarded) visit(fence int64) error {
	if n := g.inside.Add(1); n != 1 {
		return fmt.Errorf("%d hold the lock", n)
	}
	if was := g.fence.Swap(fence); was >= fence {
		return fmt.Errorf("fence %d came after %d", fence, was)
	}
	was := g.count.Load()
	runtime.Gosched()
	g.count.Store(was + 1)
	g.grants.Add(1)
	g.inside.Add(-1)
	return nil
}

var fenceField = regexp.MustCompile(`fence\r\n:(\d+)`)

// A relocker takes and gives back the lock of one guarded resource, by one proxy or another, until it is stopped.
type relocker struct {
	proxies []*harness.Proxy
	id, n   int
	conn    *harness.Conn
}

// do asks the proxy that the client is connected to, or the next one. No reply is never an answer: the client asks again.
func (r *relocker) do(stop <-chan struct{}, args ...string) (string, error) {
	for {
		if r.conn == nil {
			if c, err := harness.Dial(r.proxies[r.id%len(r.proxies)].Addr); err == nil {
				r.conn = c
			}
		}
		if r.conn != nil {
			reply, err := r.conn.Do(args...)
			if err == nil {
				if reply[0] == '-' {
					err = fmt.Errorf("%q: %q", args, reply)
				}
				return string(reply), err
			}
			_ = r.conn.Close()
			r.conn = nil
		}
		r.id++
		select {
		case <-stop:
			return "", nil
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// once makes one attempt. A token is new each time, so that a lock whose reply was lost is given back, too.
func (r *relocker) once(g *guarded, stop <-chan struct{}) error {
	r.n++
	token := fmt.Sprint(r.id, ":", r.n, ":", time.Now().UnixNano())
	begun := time.Now()
	reply, err := r.do(stop, "LOCK", "guarded", "30000", "TOKEN", token)
	if field := fenceField.FindStringSubmatch(reply); field != nil && time.Since(begun) < 20*time.Second {
		fence, _ := strconv.ParseInt(field[1], 10, 64)
		if err := g.visit(fence); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	_, err = r.do(stop, "EVAL", compareAndDelete, "1", "guarded", token)
	return err
}

// Two proxies are brought from the version before to this one, and back, one after the other, while clients lock through both. Nobody gets an
// error, no two hold the lock, fences grow, and a lock that was taken before is held until the end.
func TestTheVersionIsChangedAndBackWhileClientsLock(t *testing.T) {
	before := buildBefore(t)
	masters := startMasters(t, 3)
	addrs := harness.Addrs(masters)
	proxies := []*harness.Proxy{startBinary(t, before, addrs), startBinary(t, before, addrs)}
	allVote(t, dial(t, proxies[0].Addr), masters)
	expect(t, dial(t, proxies[0].Addr), "+OK\r\n", "SET", "kept", "me", "NX", "PX", long)

	g, stop, errs := &guarded{}, make(chan struct{}), make(chan error, 16)
	var crew sync.WaitGroup
	end := sync.OnceFunc(func() {
		close(stop)
		crew.Wait()
		close(errs)
		for err := range errs {
			t.Error(err)
		}
	})
	defer end()
	for i := range 6 {
		crew.Go(func() {
			r := &relocker{proxies: proxies, id: i}
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := r.once(g, stop); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	progress := func(when string) {
		t.Helper()
		from := g.grants.Load()
		eventually(t, progressMax, when, func() error {
			if len(errs) > 0 {
				t.Fatal(when, <-errs)
			}
			if n := g.grants.Load() - from; n < 200 {
				return fmt.Errorf("%d locks", n)
			}
			return nil
		})
	}
	progress("before")
	for _, step := range []struct {
		when  string
		proxy int
		bin   string
	}{
		{"one proxy is new", 0, proxyBinary}, {"both are new", 1, proxyBinary}, {"one is back", 0, before}, {"both are back", 1, before},
	} {
		if err := proxies[step.proxy].Replace(step.bin); err != nil {
			t.Fatal(step.when, err)
		}
		progress(step.when)
		expect(t, dial(t, proxies[step.proxy].Addr), "$2\r\nme\r\n", "GET", "kept")
		expect(t, dial(t, proxies[1-step.proxy].Addr), "$-1\r\n", "SET", "kept", "you", "NX", "PX", long)
	}
	end()
	if g.count.Load() != g.grants.Load() {
		t.Errorf("%d locks were granted, and the count is %d", g.grants.Load(), g.count.Load())
	}
	t.Logf("%d locks", g.grants.Load())
}
