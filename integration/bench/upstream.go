package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"lockproxy/integration/harness"
)

// The subjects: a Redis, and the way through a proxy to the same.
const (
	straight = "bare Redis"
	through  = "through lockproxy"
)

// upstreamPart measures what passing through costs: commands on keys that are no locks, straight to a Redis, and to a
// proxy that has it for its upstream.
func (f *fleet) upstreamPart(s settings, r *report) error {
	proxy, err := f.upstreamProxy()
	if err != nil {
		return err
	}
	defer func() { _ = proxy.Stop() }()
	for _, shape := range []struct{ clients, pipeline int }{{1, 1}, {50, 1}, {50, 16}} {
		if err := f.throughAndStraight(s, r, shape.clients, shape.pipeline, proxy, together); err != nil {
			return err
		}
	}
	return nil
}

// apartPart measures the same where each client has its own connection to the upstream, and the proxy a processor of its own: the
// Redis and its clients have the other, as if they were on one machine and lockproxy on another like it.
func (f *fleet) apartPart(s settings, r *report) error {
	if err := os.Setenv("GOMAXPROCS", "1"); err != nil { // it would find two, and one is its own
		return err
	}
	proxy, err := f.upstreamProxy("--upstream-shared=false")
	if err != nil {
		return err
	}
	defer func() { _ = proxy.Stop() }()
	if err := f.setApart(proxy); err != nil {
		fmt.Println("  not measured:", err)
		return nil
	}
	return f.throughAndStraight(s, r, 50, 1, proxy, apart)
}

// setApart keeps the Redis on the first processor, and the proxy and its masters on the second.
func (f *fleet) setApart(proxy *harness.Proxy) error {
	errs := []error{pin(f.bare.Pid(), 0), pin(proxy.Pid(), 1)}
	for _, m := range f.largest().masters {
		errs = append(errs, pin(m.Pid(), 1))
	}
	return errors.Join(errs...)
}

// upstreamProxy starts a proxy that has the bare Redis for its upstream.
func (f *fleet) upstreamProxy(flags ...string) (*harness.Proxy, error) {
	return harness.StartProxy(f.bin, harness.Addrs(f.largest().masters),
		append([]string{"--upstream", f.bare.Addr, "--lock-keys", "lock:*"}, flags...)...)
}

// A setting says how the load and the servers share the machine, in what it adds to the names of subjects.
type setting string

const (
	together setting = ""        // as the kernel likes
	apart    setting = ", apart" // the load is on the first processor
)

func (f *fleet) throughAndStraight(s settings, r *report, clients, pipeline int, proxy *harness.Proxy, at setting) error {
	for _, command := range []struct {
		what  string
		words []string
	}{
		{"write one key", []string{"SET", "data", "value"}}, // as redis-benchmark -t set does
		{"write new keys", []string{"SET", "data:__rand_int__", "value"}},
		{"read", []string{"GET", "data:__rand_int__"}},
	} {
		bare := []*harness.Redis{f.bare}
		err := r.rows(os.Stdout, s, command.what, clients, pipeline, []subject{
			{name: straight + string(at), masters: bare, run: at.benchmark(f.bare.Addr, command.words)},
			{name: through + string(at), masters: bare, run: at.benchmark(proxy.Addr, command.words)},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// benchmark measures addr with redis-benchmark and that command.
func (at setting) benchmark(addr string, words []string) func(load) (result, error) {
	return func(l load) (result, error) {
		var out bytes.Buffer
		cmd := exec.Command("redis-benchmark", benchmarkWords(addr, l, words)...)
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			return result{}, err
		}
		var pinned error
		if at == apart {
			pinned = pin(cmd.Process.Pid, 0)
		}
		if err := errors.Join(cmd.Wait(), pinned); err != nil {
			return result{}, fmt.Errorf("redis-benchmark: %w\n%s", err, out.String())
		}
		return parseBenchmark(out.String())
	}
}
