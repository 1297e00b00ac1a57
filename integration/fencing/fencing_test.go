package fencing

import (
	"context"
	"errors"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"lockproxy/integration/harness"
)

// resource is the name of the lock, and of what the lock guards.
const resource = "account"

// A kind is a kind of resource.
type kind struct {
	start func(t *testing.T) (where string) // makes a resource that ends with the test
	open  func(where string) (Store, error) // opens the resource, in whatever process
}

// kinds are all kinds of resource, by name.
var kinds = map[string]kind{
	"PostgreSQL, the fence in the row":       {rowsOf(startPostgres, openPostgresRows), openPostgresRows},
	"PostgreSQL, the fence in a transaction": {transactionsOf(startPostgres, openPostgresTransactions), openPostgresTransactions},
	"SQLite, the fence in the row":           {rowsOf(sqliteFile, openSQLiteRows), openSQLiteRows},
	"SQLite, the fence in a transaction":     {transactionsOf(sqliteFile, openSQLiteTransactions), openSQLiteTransactions},
	"a file":                                 {(*testing.T).TempDir, func(dir string) (Store, error) { return Files{dir}, nil }},
	"an HTTP service":                        {startService, func(url string) (Store, error) { return Client{url}, nil }},
	"Redis":                                  {startData, func(addr string) (Store, error) { return Redis{redis.NewClient(&redis.Options{Addr: addr})}, nil }},
}

func sqliteFile(t *testing.T) string { return filepath.Join(t.TempDir(), "data.db") }

func openPostgresRows(url string) (Store, error) {
	db, err := OpenPostgres(url)
	return Rows{db}, err
}

func openSQLiteRows(path string) (Store, error) {
	db, err := OpenSQLite(path)
	return Rows{db}, err
}

func openPostgresTransactions(url string) (Store, error) {
	db, err := OpenPostgres(url)
	return Transactions{db}, err
}

func openSQLiteTransactions(path string) (Store, error) {
	db, err := OpenSQLite(path)
	return Transactions{db}, err
}

func rowsOf(start func(*testing.T) string, open func(string) (Store, error)) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		where := start(t)
		store, err := open(where)
		if err == nil {
			defer store.(Rows).DB.Close()
			err = store.(Rows).Create(t.Context(), resource)
		}
		if err != nil {
			t.Fatal(err)
		}
		return where
	}
}

func transactionsOf(start func(*testing.T) string, open func(string) (Store, error)) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		where := start(t)
		store, err := open(where)
		if err == nil {
			defer store.(Transactions).DB.Close()
			err = store.(Transactions).Create(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return where
	}
}

func startService(t *testing.T) string {
	t.Helper()
	store, err := openSQLiteTransactions(transactionsOf(sqliteFile, openSQLiteTransactions)(t))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(Handler(store))
	t.Cleanup(server.Close)
	return server.URL
}

func startData(t *testing.T) string {
	t.Helper()
	r, err := harness.StartRedis()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r.Addr
}

// noGuard names the kind that no test but one is to use.
const noGuard = "no guard"

// findKind returns a kind by its name, the one without a guard, too.
func findKind(name string) kind {
	if name == noGuard {
		return kind{(*testing.T).TempDir, func(dir string) (Store, error) { return unguarded{dir}, nil }}
	}
	return kinds[name]
}

// startProxy starts lockproxy in front of three masters.
func startProxy(t *testing.T) string {
	t.Helper()
	if err := harness.HaveRedis(); err != nil {
		missing(t, "redis-server cannot be run: "+err.Error())
	}
	bin := os.Getenv("LOCKPROXY_BIN")
	if bin == "" {
		bin = filepath.Join(t.TempDir(), "lockproxy")
		// In its own module, so that this module need not know what lockproxy depends on.
		if out, err := exec.Command("go", "build", "-C", "../..", "-trimpath", "-o", bin, "./cmd/lockproxy").CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	masters, err := harness.StartRedises(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { harness.StopAll(masters) })
	proxy, err := harness.StartProxy(bin, harness.Addrs(masters), "--instance-timeout", "500ms", "--grace", "500ms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return proxy.Addr
}

// A holder is stopped while it works, its lock passes to another, and the holder goes on: when the next holder has read, or when
// the next holder has written, too.
func TestALateWriteIsRefused(t *testing.T) {
	proxy := startProxy(t)
	for name, k := range kinds {
		for _, wakes := range []string{"after the next holder has read", "after the next holder has written"} {
			t.Run(name+"/"+wakes, func(t *testing.T) {
				where := k.start(t)
				first := startHolder(t, name, where, proxy)
				first.says("works")
				first.stop()
				next := takeOver(t, k, where, proxy)
				if wakes == "after the next holder has written" {
					next.write("next ")
				}
				first.goOn()
				first.says("refused") // the write
				first.says("refused") // a read
				if wakes == "after the next holder has read" {
					next.write("next ")
				}
				next.demand("next ")
			})
		}
	}
}

// A holder in time is served, as often as it asks, and so is each that comes after.
func TestHoldersInTimeAreServed(t *testing.T) {
	proxy := startProxy(t)
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			where := k.start(t)
			for _, value := range []string{"late ", "late late "} {
				h := startHolder(t, name, where, proxy)
				h.says("works")
				h.goOn()
				h.says("done")
				h.says("done")
				next := takeOver(t, k, where, proxy)
				next.demand(value)
				next.write(value)
				unlock(t, proxy)
			}
		})
	}
}

// A next is the holder after the one that was stopped. It runs in the test itself.
type next struct {
	t     *testing.T
	store Store
	fence int64
}

// takeOver waits until the lock is free, takes it, and reads.
func takeOver(t *testing.T, k kind, where, proxy string) *next {
	t.Helper()
	store, err := k.open(where)
	if err != nil {
		t.Fatal(err)
	}
	fence, err := lock(t.Context(), proxy, "600000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unlock(t, proxy) })
	if _, err := store.Read(t.Context(), resource, fence); err != nil {
		t.Fatal(err)
	}
	return &next{t, store, fence}
}

func unlock(t *testing.T, proxy string) {
	t.Helper()
	c, err := harness.Dial(proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if reply, err := c.Do("FORCEUNLOCK", resource); err != nil || reply[0] != ':' {
		t.Fatalf("FORCEUNLOCK: %q, %v", reply, err)
	}
}

func (n *next) write(value string) {
	n.t.Helper()
	if err := n.store.Write(n.t.Context(), resource, value, n.fence); err != nil {
		n.t.Fatal(err)
	}
}

func (n *next) demand(want string) {
	n.t.Helper()
	value, err := n.store.Read(n.t.Context(), resource, n.fence)
	if err != nil || value != want {
		n.t.Errorf("the resource holds %q, %v, want %q", value, err, want)
	}
}

// unguarded is a Store that compares no fences.
type unguarded struct{ dir string }

func (u unguarded) Read(context.Context, string, int64) (string, error) {
	text, err := os.ReadFile(filepath.Join(u.dir, resource))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(text), err
}

func (u unguarded) Write(_ context.Context, name, value string, _ int64) error {
	return replace(filepath.Join(u.dir, name), value)
}

// Without a guard, the same steps lose the next holder's write: so the steps above would show a guard that does not guard.
func TestWithoutAGuardTheLateWriteIsDone(t *testing.T) {
	proxy, k, where := startProxy(t), findKind(noGuard), t.TempDir()
	first := startHolder(t, noGuard, where, proxy)
	first.says("works")
	first.stop()
	next := takeOver(t, k, where, proxy)
	next.write("next ")
	first.goOn()
	first.says("done")
	first.says("done")
	next.demand("late ")
}

// Fences are whole numbers up to 2^53; a guard that rounds one takes two holders for one.
func TestNeighbouringFencesAreToldApart(t *testing.T) {
	const large = 1<<53 - 2
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			store, err := k.open(k.start(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Write(t.Context(), resource, "x", large+1); err != nil {
				t.Fatal(err)
			}
			if err := store.Write(t.Context(), resource, "y", large); !errors.Is(err, ErrStale) {
				t.Errorf("the smaller fence is answered %v", err)
			}
			if value, err := store.Read(t.Context(), resource, large+1); err != nil || value != "x" {
				t.Errorf("the resource holds %q, %v", value, err)
			}
		})
	}
}
