package fencing

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// The server is one for all tests: PostgreSQL takes a while to start. Each test has a database of its own.
var server struct {
	sync.Once
	url       string // without the database
	databases int    // created so far
	stop      func()
}

// startPostgres returns the URL of a database that is new.
func startPostgres(t *testing.T) string {
	t.Helper()
	bin := postgresPrograms(t)
	server.Do(func() { startServer(t, bin) })
	if server.url == "" {
		t.Fatal("PostgreSQL was not started")
	}
	db, err := OpenPostgres(server.url + "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	server.databases++
	name := fmt.Sprintf("test%d", server.databases)
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return server.url + name
}

// stopPostgres ends the server, if there is one.
func stopPostgres() {
	if server.stop != nil {
		server.stop()
	}
}

// startServer starts a PostgreSQL in a folder of its own.
func startServer(t *testing.T, bin string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "lockproxy-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	server.stop = func() { _ = os.RemoveAll(dir) }
	as := ordinaryUser(t, dir)
	initdb := append(as, filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "fencing", "-A", "trust", "-E", "UTF8", "--locale", "C", "-N")
	if out, err := exec.Command(initdb[0], initdb[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	serve := append(as, filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data"), "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-k", "")
	p, err := harness.StartProgram("postgres", serve[0], serve[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	server.stop = func() {
		_ = p.Signal(syscall.SIGQUIT)
		if p.Wait(time.Minute) != nil && !p.Ended() {
			p.Kill()
		}
		_ = os.RemoveAll(dir)
	}
	url := fmt.Sprintf("postgres://fencing@127.0.0.1:%d/", port)
	db, err := OpenPostgres(url + "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := p.Ready(func() error { return db.PingContext(t.Context()) }); err != nil {
		t.Fatal(err)
	}
	server.url = url
}

// postgresPrograms returns the folder of initdb and postgres. Debian keeps both out of the PATH.
func postgresPrograms(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		path, _ = filepath.EvalSymlinks(path)
		found = append(found, path)
	}
	if len(found) == 0 {
		missing(t, "PostgreSQL is not installed (Debian has it in the package postgresql)")
	}
	return filepath.Dir(found[0])
}

// ordinaryUser returns the words that run a program as a user who is not root, and gives that user the folder: PostgreSQL does not
// run as root. The words are none where this program is not root itself.
func ordinaryUser(t *testing.T, dir string) []string {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		return []string{"setpriv", "--reuid", u.Uid, "--regid", u.Gid, "--clear-groups", "--pdeathsig", "KILL"}
	}
	missing(t, "there is no user but root to run PostgreSQL")
	return nil
}

// missing skips the test, or fails it where all that tests need is demanded.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("LOCKPROXY_REQUIRE_REDIS") == "1" {
		t.Fatal(what + "; LOCKPROXY_REQUIRE_REDIS=1 demands it")
	}
	t.Skip("NOT RUN: " + what)
}
