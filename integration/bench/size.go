package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"lockproxy/integration/harness"
)

// A thing is what takes memory. Its connections rest, as after one lock, before they make the things.
type thing struct {
	name  string
	conns int
	each  int // of the thing on each connection
	words func(conn, nth int) []string
	waits bool // no reply comes

	wholeConn bool // the thing is the connection, with all of these commands
}

const (
	sizeConns = 2000
	longTTL   = "600000" // nothing is over before it is measured
)

// things are measured one after the other, each on a proxy and masters of its own. Scripts are fewer than script_cache.
var things = []thing{
	{name: "an idle connection", conns: sizeConns},
	{name: "an active connection (16 commands in one write)", conns: sizeConns, each: 16, wholeConn: true, words: func(conn, nth int) []string {
		return []string{"EXISTS", fmt.Sprintf("active:%d:%d", conn, nth)}
	}},
	{name: "a held lock, SET NX", conns: 20, each: 5000, words: func(conn, nth int) []string {
		return []string{"SET", fmt.Sprintf("held:%d:%d", conn, nth), "tok", "NX", "PX", longTTL}
	}},
	{name: "a held lock, LOCK", conns: 20, each: 5000, words: func(conn, nth int) []string {
		return []string{"LOCK", fmt.Sprintf("held:%d:%d", conn, nth), longTTL, "TOKEN", "tok"}
	}},
	{name: "a HOLD", conns: 100, each: 250, words: func(conn, nth int) []string {
		return []string{"LOCK", fmt.Sprintf("held:%d:%d", conn, nth), longTTL, "TOKEN", "tok", "HOLD"}
	}},
	{name: "a waiter, beside its connection", conns: sizeConns, each: 1, waits: true, words: func(conn, _ int) []string {
		return []string{"LOCK", waitedFor, longTTL, "TOKEN", strconv.Itoa(conn), "WAIT", longTTL}
	}},
	{name: "a known script of 300 bytes", conns: 1, each: 900, words: func(_, nth int) []string {
		return []string{"EVAL", scriptOf(300-len("--0000")) + fmt.Sprintf("--%04d", nth), "1", fmt.Sprintf("script:%d", nth), "tok", longTTL}
	}},
}

// waitedFor is the key of the waiters.
const waitedFor = "waited-for"

// A size is how many KB one thing takes.
type size struct {
	Thing  string  `json:"thing"`
	Proxy  float64 `json:"proxy"`  // resident
	Master float64 `json:"master"` // of one, as it accounts for its memory itself
}

// sizePart measures the memory that each thing takes of the proxy and of a master. The proxy collects its garbage early here: resident
// memory is then what things take, and not also what is left of the commands that made them.
func (f *fleet) sizePart(_ settings, r *report) error {
	if err := os.Setenv("GOGC", "10"); err != nil {
		return err
	}
	defer func() { _ = os.Unsetenv("GOGC") }()
	fmt.Printf("  %-50s %12s %12s\n", "", "proxy", "a master")
	for _, t := range things {
		one, err := f.measureThing(t)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		r.sizes = append(r.sizes, one)
		fmt.Printf("  %-50s %9.2f KB %9.2f KB\n", one.Thing, one.Proxy, one.Master)
	}
	return nil
}

func (f *fleet) measureThing(t thing) (size, error) {
	masters, err := harness.StartRedises(3)
	if err != nil {
		return size{}, err
	}
	defer harness.StopAll(masters)
	proxy, err := harness.StartProxy(f.bin, harness.Addrs(masters), "--max-clients", "100000")
	if err != nil {
		return size{}, err
	}
	defer func() { _ = proxy.Stop() }()
	n, err := harness.RoomFor(t.conns)
	if err != nil {
		return size{}, err
	}
	conns, idle, err := proxy.IdleCost(n)
	defer harness.CloseAll(conns)
	if err != nil || t.each == 0 {
		return size{Thing: t.name, Proxy: idle}, err
	}
	if t.waits {
		if reply, err := conns[0].Do("LOCK", waitedFor, longTTL, "TOKEN", "holder"); err != nil || reply[0] != '*' {
			return size{}, fmt.Errorf("LOCK: %q, %w", reply, errors.Join(err))
		}
	}
	memory := func() (ofProxy, ofMaster int, err error) {
		if ofProxy, err = proxy.MemoryKB(); err == nil {
			ofMaster, err = masterMemory(masters[0])
		}
		return ofProxy * 1024, ofMaster, err
	}
	proxyBefore, masterBefore, err := memory()
	if err != nil {
		return size{}, err
	}
	if err := t.make(conns); err != nil {
		return size{}, err
	}
	if t.waits {
		if err := waitersArrived(proxy.Addr, n); err != nil {
			return size{}, err
		}
	}
	proxyAfter, masterAfter, err := memory()
	each := func(bytes int) float64 { return float64(bytes) / 1024 / float64(n*t.each) }
	one := size{t.name, each(proxyAfter - proxyBefore), each(masterAfter - masterBefore)}
	if t.wholeConn {
		one.Proxy, one.Master = idle+one.Proxy*float64(t.each), one.Master*float64(t.each)
	}
	return one, err
}

// make sends what makes the things, and reads the replies.
func (t thing) make(conns []*harness.Conn) error {
	const atOnce = 16
	for i, conn := range conns {
		for first := 0; first < t.each; first += atOnce {
			var request []byte
			count := min(atOnce, t.each-first)
			for nth := range count {
				request = harness.Encode(request, t.words(i, first+nth)...)
			}
			if err := conn.Send(request); err != nil {
				return err
			}
			if t.waits {
				continue
			}
			for range count {
				if reply, err := conn.Reply(); err != nil || reply[0] == '-' {
					return fmt.Errorf("%.40q: %q, %w", request, reply, errors.Join(err))
				}
			}
		}
	}
	return nil
}

// masterMemory is what a master says that its data, its clients and its scripts take.
func masterMemory(m *harness.Redis) (int, error) {
	info, err := m.Do(0, "INFO", "memory")
	if err != nil {
		return 0, err
	}
	sum := 0
	for line := range strings.Lines(string(info)) {
		for _, name := range []string{"used_memory:", "used_memory_vm_total:"} {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), name); ok {
				n, err := strconv.Atoi(text)
				if err != nil {
					return 0, err
				}
				sum += n
			}
		}
	}
	return sum, nil
}

// waitersArrived waits until so many clients wait.
func waitersArrived(addr string, n int) error {
	conn, err := harness.Dial(addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	want := fmt.Sprintf("waiters\r\n:%d\r\n", n)
	return harness.Poll(time.Minute, func() error {
		reply, err := conn.Do("LOCKINFO", waitedFor)
		if err == nil && !bytes.Contains(reply, []byte(want)) {
			err = fmt.Errorf("LOCKINFO: %.200q", reply)
		}
		return err
	})
}
