package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"

	"lockproxy/integration/harness"
)

// The subjects: a Redis, and the ways to the same.
const (
	straight = "bare Redis"
	copied   = "copier of bytes"
	through  = "through lockproxy"
)

// upstreamPart measures what passing through costs where all have to share the processors: commands on keys that are no locks,
// straight to a Redis; to a proxy that has it for its upstream; and to a program that only copies bytes, which is what any proxy would come to here that has a connection for each client's.
func (f *fleet) upstreamPart(s settings, r *report) error {
	own, err := f.upstreamProxy()
	if err != nil {
		return err
	}
	defer func() { _ = own.Stop() }()
	copier, err := startCopier(f.bare.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = copier.Close() }()
	ways := []way{{straight, f.bare.Addr}, {copied, copier.Addr().String()}, {through, own.Addr}}
	for _, shape := range []struct{ clients, pipeline int }{{1, 1}, {50, 1}, {50, 16}} {
		if err := f.compareWays(s, r, shape.clients, shape.pipeline, ways, together); err != nil {
			return err
		}
	}
	return nil
}

// startCopier listens for clients, and copies what they send to a connection to addr, one for each, and back.
func startCopier(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				_ = client.Close()
				continue
			}
			for _, c := range [][2]net.Conn{{client, server}, {server, client}} {
				go func() {
					_, _ = io.Copy(c[0], c[1])
					_ = c[0].Close()
				}()
			}
		}
	}()
	return l, nil
}

// apartPart measures the same where the proxy has a processor of its own: the Redis and its clients have the other, as if they
// were on one machine and lockproxy on another like it.
func (f *fleet) apartPart(s settings, r *report) error {
	if err := os.Setenv("GOMAXPROCS", "1"); err != nil { // it would find two, and one is its own
		return err
	}
	proxy, err := f.upstreamProxy()
	if err != nil {
		return err
	}
	defer func() { _ = proxy.Stop() }()
	if err := f.setApart(proxy); err != nil {
		fmt.Println("  not measured:", err)
		return nil
	}
	return f.compareWays(s, r, 50, 1, []way{{straight, f.bare.Addr}, {through, proxy.Addr}}, apart)
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
func (f *fleet) upstreamProxy() (*harness.Proxy, error) {
	return harness.StartProxy(f.bin, harness.Addrs(f.largest().masters), "--upstream", f.bare.Addr, "--lock-keys", "lock:*")
}

// A setting says how the load and the servers share the machine, in what it adds to the names of subjects.
type setting string

const (
	together setting = ""        // as the kernel likes
	apart    setting = ", apart" // the load is on the first processor
)

// A way to the bare Redis, and the address to which clients connect.
type way struct{ name, addr string }

func (f *fleet) compareWays(s settings, r *report, clients, pipeline int, ways []way, at setting) error {
	for _, command := range []struct {
		what  string
		words []string
	}{
		{"write one key", []string{"SET", "data", "value"}}, // as redis-benchmark -t set does
		{"write new keys", []string{"SET", "data:__rand_int__", "value"}},
		{"read", []string{"GET", "data:__rand_int__"}},
	} {
		var subjects []subject
		for _, w := range ways {
			subjects = append(subjects, subject{name: w.name + string(at), masters: []*harness.Redis{f.bare}, run: at.benchmark(w.addr, command.words)})
		}
		if err := r.rows(os.Stdout, s, command.what, clients, pipeline, subjects); err != nil {
			return err
		}
	}
	return nil
}

// benchmarkMax is how long one run of redis-benchmark may take.
const benchmarkMax = 10 * time.Minute

// benchmark measures addr with redis-benchmark and that command. redis-benchmark 7.0 does not end, keeps a processor busy and prints
// nothing more, if it cannot connect, or a reply does not come.
func (at setting) benchmark(addr string, words []string) func(load) (result, error) {
	return func(l load) (result, error) {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return result{}, err
		}
		_ = conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), benchmarkMax)
		defer cancel()
		var out bytes.Buffer
		cmd := exec.CommandContext(ctx, "redis-benchmark", benchmarkWords(addr, l, words)...)
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
		res, err := parseBenchmark(out.String())
		res.count = l.requests
		res.spent.client = cpu{micros(cmd.ProcessState.UserTime()) / float64(l.requests), micros(cmd.ProcessState.SystemTime()) / float64(l.requests)}
		return res, err
	}
}
