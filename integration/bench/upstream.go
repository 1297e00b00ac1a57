package main

import (
	"fmt"
	"os"
	"os/exec"

	"lockproxy/integration/harness"
)

// through is the name of the subject that goes through a proxy to the Redis that the other is.
const through = "through lockproxy"

// upstreamPart measures what passing through costs: commands on keys that are no locks, straight to a Redis, and to a
// proxy that has it for its upstream.
func (f *fleet) upstreamPart(s settings, r *report) error {
	proxy, err := harness.StartProxy(f.bin, harness.Addrs(f.largest().masters), "--upstream", f.bare.Addr, "--lock-keys", "lock:*")
	if err != nil {
		return err
	}
	defer func() { _ = proxy.Stop() }()
	for _, shape := range []struct{ clients, pipeline int }{{1, 1}, {50, 1}, {50, 16}} {
		for _, command := range []struct {
			what  string
			words []string
		}{
			{"write one key", []string{"SET", "data", "value"}}, // as redis-benchmark -t set does
			{"write new keys", []string{"SET", "data:__rand_int__", "value"}},
			{"read", []string{"GET", "data:__rand_int__"}},
		} {
			subjects := []subject{
				{name: "bare Redis", masters: []*harness.Redis{f.bare}, run: plainBenchmark(f.bare.Addr, command.words)},
				{name: through, masters: []*harness.Redis{f.bare}, run: plainBenchmark(proxy.Addr, command.words)},
			}
			if err := r.rows(os.Stdout, s, command.what, shape.clients, shape.pipeline, subjects); err != nil {
				return err
			}
		}
	}
	return nil
}

// plainBenchmark measures addr with redis-benchmark and that command.
func plainBenchmark(addr string, words []string) func(load) (result, error) {
	return func(l load) (result, error) {
		out, err := exec.Command("redis-benchmark", plainWords(addr, l, words)...).CombinedOutput()
		if err != nil {
			return result{}, fmt.Errorf("redis-benchmark: %w\n%s", err, out)
		}
		return parseBenchmark(string(out))
	}
}
