package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// readyMax is how long a process may take to answer its first PING on a busy machine.
const readyMax = time.Minute

// reference is the server that others are compared with, and the master of tests that choose no other.
const reference = "redis-server"

// A Redis is one real redis-server, or a server that is compatible with it, without persistence.
type Redis struct {
	Addr  string
	Login []string // user and password with which Do logs in; nil for none

	bin   string
	port  int
	dir   string
	extra []string
	clock string // file of the step of its clock; "" if its clock cannot be stepped
	shim  string
	proc  *Process
}

// HaveRedis returns nil if redis-server, and all that LOCKPROXY_REDIS_SERVER names, can be run.
func HaveRedis() error {
	var missing []error
	for _, bin := range append(masterServers(), reference) {
		_, err := exec.LookPath(bin)
		missing = append(missing, err)
	}
	return errors.Join(missing...)
}

// masterServers lists the programs that masters run. LOCKPROXY_REDIS_SERVER names another than redis-server, or several
// with ':' between them, which the masters of a deployment take in turn.
func masterServers() []string {
	if list := filepath.SplitList(os.Getenv("LOCKPROXY_REDIS_SERVER")); len(list) > 0 {
		return list
	}
	return []string{reference}
}

// MasterServer returns the program that the i-th master of a deployment runs.
func MasterServer(i int) string {
	all := masterServers()
	return all[i%len(all)]
}

// StartRedis starts the redis-server in the PATH on a free port and returns when it answers, whatever masters run. The
// extra arguments are its own.
func StartRedis(extra ...string) (*Redis, error) { return startRedis(reference, "", extra) }

func startRedis(bin, shim string, extra []string) (*Redis, error) {
	var err error
	for range 5 { // somebody else may take the port between the look and the bind
		r := &Redis{bin: bin, extra: extra, shim: shim}
		if r.port, err = FreePort(); err != nil {
			return nil, err
		}
		r.Addr = loopback(r.port)
		if r.dir, err = os.MkdirTemp("", "lockproxy-redis-"); err != nil {
			return nil, err
		}
		if err = r.prepareClock(); err == nil {
			err = r.start()
		}
		if err == nil {
			return r, nil
		}
		r.Stop()
	}
	return nil, err
}

// StartRedises starts n masters, each with the program that MasterServer names.
func StartRedises(n int, extra ...string) ([]*Redis, error) {
	return StartRedisesWithClocks("", n, extra...)
}

// StopAll stops the servers.
func StopAll(all []*Redis) {
	for _, r := range all {
		r.Stop()
	}
}

// Addrs returns the addresses of the servers.
func Addrs(all []*Redis) []string {
	var addrs []string
	for _, r := range all {
		addrs = append(addrs, r.Addr)
	}
	return addrs
}

func (r *Redis) start(more ...string) error {
	args := []string{
		"--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--dir", r.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning",
	}
	args = append(append(args, r.extra...), more...)
	if i := slices.Index(args, "--enable-debug-command"); i >= 0 && before7(r.bin) {
		args = slices.Delete(args, i, i+2) // DEBUG is always permitted there
	}
	proc, err := startProcess(filepath.Base(r.bin)+" "+r.Addr, r.bin, args, r.environment())
	if err != nil {
		return err
	}
	r.proc = proc
	return proc.Ready(func() error {
		if err := Ping(r.Addr); err != nil && !strings.Contains(err.Error(), "NOAUTH") { // it is there, and wants a login
			return err
		}
		return nil
	})
}

// before7 says that a program is a Redis older than 7.
func before7(bin string) bool {
	out, _ := exec.Command(bin, "--version").Output()
	return strings.Contains(string(out), "Redis server v=6.")
}

// Pid returns the process id.
func (r *Redis) Pid() int { return r.proc.Pid() }

// Stop ends the server and removes its directory.
func (r *Redis) Stop() {
	if r.proc != nil {
		r.proc.Kill()
	}
	_ = os.RemoveAll(r.dir)
}

// Kill ends the server as kill -9 does.
func (r *Redis) Kill() { r.proc.Kill() }

// Restart kills the server, if it still runs, and starts it again, empty, on the same port.
func (r *Redis) Restart() error {
	r.proc.Kill()
	return r.start()
}

// StartAgain starts a server that was killed, on the same port and with whatever its directory holds. What it loads
// from there is for the arguments to say.
func (r *Redis) StartAgain(more ...string) error { return r.start(more...) }

// Dir returns the directory of the server's files. It goes with the server.
func (r *Redis) Dir() string { return r.dir }

// Pause stops the server from running (SIGSTOP); the kernel still accepts connections and bytes for it.
func (r *Redis) Pause() error { return r.proc.Pause() }

// Resume lets a paused server go on.
func (r *Redis) Resume() error { return r.proc.Resume() }

// Do sends one command on a connection of its own, in the given database, and returns the raw reply.
func (r *Redis) Do(db int, args ...string) ([]byte, error) {
	c, err := Dial(r.Addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if r.Login != nil {
		if reply, err := c.Do(append([]string{"AUTH"}, r.Login...)...); err != nil || string(reply) != "+OK\r\n" {
			return nil, fmt.Errorf("AUTH on %s: %q, %w", r.Addr, reply, errors.Join(err))
		}
	}
	if reply, err := c.Do("SELECT", strconv.Itoa(db)); err != nil || string(reply) != "+OK\r\n" {
		return nil, fmt.Errorf("SELECT %d on %s: %q, %w", db, r.Addr, reply, errors.Join(err))
	}
	return c.Do(args...)
}

// LockKeys lists, sorted, the keys of database 0 that clients set: the proxy's own ("lockproxy:…") are left out.
func (r *Redis) LockKeys() ([]string, error) {
	reply, err := r.Do(0, "KEYS", "*")
	if err != nil {
		return nil, err
	}
	keys, err := Strings(reply)
	if err != nil {
		return nil, err
	}
	keys = slices.DeleteFunc(keys, func(k string) bool { return strings.HasPrefix(k, "lockproxy:") })
	slices.Sort(keys)
	return keys, nil
}

// clearScript removes what clients set and keeps the proxy's own keys, whose loss would mean something to it.
const clearScript = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  if string.sub(key, 1, 10) ~= 'lockproxy:' then redis.call('UNLINK', key) end
end`

// Clear removes the keys of clients from database 0 and returns how many keys there were.
func (r *Redis) Clear() (int, error) {
	reply, err := r.Do(0, "DBSIZE")
	if err != nil {
		return 0, err
	}
	n, ok := Int(reply)
	if !ok {
		return 0, fmt.Errorf("DBSIZE on %s: %q", r.Addr, reply)
	}
	if reply, err = r.Do(0, "EVAL", clearScript, "0"); err != nil || reply[0] == '-' {
		return 0, fmt.Errorf("clear %s: %q, %w", r.Addr, reply, errors.Join(err))
	}
	return int(n), nil
}
