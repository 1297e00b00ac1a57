package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"lockproxy/integration/harness"
)

// A cpu is processor time for one request, in microseconds.
type cpu struct{ user, system float64 }

func (c cpu) all() float64 { return c.user + c.system }

// costs is what one request took of each. A master's is the mean of all masters.
type costs struct{ proxy, master, client cpu }

// server is the time of whatever clients connect to: of the proxy, or of the one Redis where there is none.
func (c costs) server() float64 {
	if c.proxy != (cpu{}) {
		return c.proxy.all()
	}
	return c.master.all()
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// tick is the unit of the kernel's accounting.
const tick = 10 * time.Millisecond

// cpuOf returns the processor time that a process has taken so far (Linux only).
func cpuOf(pid int) (cpu, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return cpu{}, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name, which may hold spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return cpu{}, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	user, err := strconv.ParseUint(fields[11], 10, 64)
	if err != nil {
		return cpu{}, err
	}
	system, err := strconv.ParseUint(fields[12], 10, 64)
	return cpu{float64(user) * micros(tick), float64(system) * micros(tick)}, err
}

// An account is the processes whose time a subject is charged with.
type account struct {
	proxy   *harness.Proxy // nil if there is none
	masters []*harness.Redis
}

// charged measures, beside what run does, the processor time of one request. run names the client's own time, or the client is this
// program.
func (a account) charged(run func(load) (result, error)) func(load) (result, error) {
	return func(l load) (result, error) {
		before, err := a.read()
		if err != nil {
			return result{}, err
		}
		res, err := run(l)
		if err != nil || res.count == 0 {
			return res, err
		}
		after, err := a.read()
		client := res.spent.client
		res.spent = costs{
			proxy:  after.proxy.since(before.proxy, res.count),
			master: after.master.since(before.master, res.count*len(a.masters)),
			client: after.client.since(before.client, res.count),
		}
		if client != (cpu{}) {
			res.spent.client = client
		}
		return res, err
	}
}

func (c cpu) since(before cpu, requests int) cpu {
	return cpu{(c.user - before.user) / float64(requests), (c.system - before.system) / float64(requests)}
}

// read returns the time of each so far, that of all masters together.
func (a account) read() (sum costs, err error) {
	if a.proxy != nil {
		if sum.proxy, err = cpuOf(a.proxy.Pid()); err != nil {
			return sum, err
		}
	}
	for _, m := range a.masters {
		c, err := cpuOf(m.Pid())
		if err != nil {
			return sum, err
		}
		sum.master.user, sum.master.system = sum.master.user+c.user, sum.master.system+c.system
	}
	sum.client, err = cpuOf(os.Getpid())
	return sum, err
}
