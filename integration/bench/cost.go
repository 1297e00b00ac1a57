package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"lockproxy/integration/harness"
)

// scriptOf is a text of so many bytes that no table knows, so that it runs by vote. Like SET NX PX it takes a lock.
func scriptOf(size int) string {
	const head = `local long = '`
	const tail = `' local mine = redis.call('get', KEYS[1]) == false if mine then redis.call('psetex', KEYS[1], ARGV[2], ARGV[1]) end return mine and #long or 0`
	return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
}

// A kind is one way to take a lock whose cost is measured.
type kind struct {
	what              string
	clients, pipeline int
	run               func(addr string) func(load) (result, error)
	ours              bool // the command is lockproxy's own: a Redis has none
	held              int  // locks that are held meanwhile
}

func costKinds() []kind {
	benchmark := func(words ...string) func(string) func(load) (result, error) {
		return func(addr string) func(load) (result, error) { return redisBenchmark(addr, words) }
	}
	const name = "key:__rand_int__"
	set := benchmark(setWords...)
	kinds := []kind{
		{what: "SET NX", clients: 1, pipeline: 1, run: set},
		{what: "SET NX", clients: 50, pipeline: 1, run: set},
		{what: "SET NX", clients: 200, pipeline: 1, run: set},
		{what: "SET NX", clients: 50, pipeline: 16, run: set},
		{what: "SET NX, TTL 1 s", clients: 50, pipeline: 1, run: benchmark("SET", name, "tok", "NX", "PX", "1000")},
		{what: "SET NX, TTL 1 h", clients: 50, pipeline: 1, run: benchmark("SET", name, "tok", "NX", "PX", "3600000")},
		{what: "SET NX, many held", clients: 50, pipeline: 1, run: set, held: 100_000},
		{what: "DEL of 1 key", clients: 50, pipeline: 1, run: benchmark("DEL", name)},
		{what: "DEL of 10 keys", clients: 50, pipeline: 1, run: benchmark(append([]string{"DEL"}, strings.Split(strings.Repeat(name+" ", 10), " ")[:10]...)...)},
		{what: "SET NX, release", clients: 50, pipeline: 1, run: pairs},
		{what: "LOCK", clients: 50, pipeline: 1, run: benchmark("LOCK", name, strconv.FormatInt(ttl.Milliseconds(), 10), "TOKEN", "tok"), ours: true},
		{what: "LOCK, UNLOCK", clients: 50, pipeline: 1, run: lockPairs, ours: true},
	}
	for _, size := range []int{300, 3000} {
		kinds = append(kinds, kind{what: fmt.Sprintf("script of %d bytes", size), clients: 50, pipeline: 1,
			run: benchmark("EVAL", scriptOf(size), "1", name, "tok", "30000")})
	}
	return kinds
}

// costPart measures the processor time that a lock takes of the proxy, of one master and of the client, beside what it takes of a bare
// Redis. The kernel accounts for it, so that the figures hold on a machine that is busy with other work, too.
func (f *fleet) costPart(s settings, r *report) error {
	for _, k := range costKinds() {
		var subjects []subject
		if !k.ours {
			bare := []*harness.Redis{f.bare}
			subjects = append(subjects, subject{name: straight, masters: bare, run: account{masters: bare}.charged(k.run(f.bare.Addr)), before: k.hold(f.bare.Addr)})
		}
		for _, g := range f.groups {
			subjects = append(subjects, subject{name: g.name("lockproxy"), masters: g.masters,
				run: account{g.proxy, g.masters}.charged(k.run(g.proxy.Addr)), before: k.hold(g.proxy.Addr)})
		}
		if err := r.rows(os.Stdout, s, k.what, k.clients, k.pipeline, subjects); err != nil {
			return fmt.Errorf("%s: %w", k.what, err)
		}
	}
	return nil
}

// hold returns what takes the locks that are held meanwhile, or nil.
func (k kind) hold(addr string) func() error {
	if k.held == 0 {
		return nil
	}
	return func() error {
		_, err := redisBenchmark(addr, setWords)(load{clients: 50, pipeline: 16, requests: k.held})
		return err
	}
}

// costTargets compare what the proxy takes with what one Redis takes for a SET in the same run, and a master's LOCK with its SET.
func (r *report) costTargets(masters int) []target {
	proxyName := fmt.Sprintf("lockproxy, %d masters", masters)
	proxyTime := func(f figure) float64 { return f.spent.server() }
	masterTime := func(f figure) float64 { return f.spent.master.all() }
	at := func(what, subject string, pipeline int) key { return key{what, subject, 50, pipeline} }
	script := at("script of 300 bytes", proxyName, 1)
	return []target{
		{"processor time, SET NX: proxy's to one Redis's", 1.3, true, "", r.ratio(proxyTime, at("SET NX", proxyName, 1), at("SET NX", straight, 1))},
		{"processor time, SET NX with -P 16: proxy's to one Redis's", 1.2, true, "", r.ratio(proxyTime, at("SET NX", proxyName, 16), at("SET NX", straight, 16))},
		{"processor time of a master: LOCK to SET NX", 2, true, "", r.ratio(masterTime, at("LOCK", proxyName, 1), at("SET NX", proxyName, 1))},
		{"processor time of the proxy: script of 300 bytes to SET NX", 2, true, "", r.ratio(proxyTime, script, at("SET NX", proxyName, 1))},
		{"processor time of a master: script of 300 bytes to SET NX", 2, true, "", r.ratio(masterTime, script, at("SET NX", proxyName, 1))},
	}
}
