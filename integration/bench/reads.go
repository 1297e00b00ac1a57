package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lockproxy/integration/harness"
)

// What one client reads and deletes in a loop.
var readLoads = []struct {
	keys, size int
}{{900, 16_000}, {10, 1 << 20}, {1000, 20}}

// readLoops are what it sends, again and again.
var readLoops = []string{"nothing", "MGET", "EXISTS", "LOCKINFO", "DEL"}

// readsPart measures what others pay while one client reads or deletes many keys, or long ones, without a pause: one that locks and
// unlocks through the same proxy, one through a second proxy, and one with a HOLD through each. Beside it stands the same on a bare
// Redis, whose clients have no HOLD.
func (f *fleet) readsPart(s settings, r *report) error {
	g := f.groups[0]
	second, err := harness.StartProxy(f.bin, harness.Addrs(g.masters))
	if err != nil {
		return err
	}
	defer func() { _ = second.Stop() }()
	for _, l := range readLoads {
		for _, command := range readLoops {
			name := fmt.Sprintf("%s on %d × %d bytes", command, l.keys, l.size)
			bare, err := (&crowd{command: command, keys: l.keys, size: l.size, same: f.bare.Addr, second: f.bare.Addr, bare: true}).run(s.duration)
			if err != nil {
				return fmt.Errorf("%s, bare Redis: %w", name, err)
			}
			proxied, err := (&crowd{command: command, keys: l.keys, size: l.size, same: g.proxy.Addr, second: second.Addr}).run(s.duration)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			fmt.Printf("  %-34s %-10s %v\n  %-34s %-10s %v\n", name, "bare Redis", bare, "", "lockproxy", proxied)
			r.reads = append(r.reads, readsFigure{name, bare, proxied})
			_, err = clearAll(append(slices.Clone(g.masters), f.bare))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// A readsFigure is one row of the part.
type readsFigure struct {
	name          string
	bare, proxied crowdResult
}

// A crowd is one client that loops, and those that lock meanwhile.
type crowd struct {
	command      string
	keys, size   int
	same, second string // addresses
	bare         bool
}

// A crowdResult is what became of them.
type crowdResult struct {
	loops, refusals int    // of the client that loops: how often it was through, and how many replies were errors
	refusal         string // the first of these
	longest         time.Duration
	failed          int // attempts to lock
	attempts        int
	p99             [2]time.Duration // of a lock and its release, through the same proxy and through the second one
	lost            int              // holds
}

func (c crowdResult) String() string {
	text := fmt.Sprintf("loops %6d, longest %9s   failed %d of %d   p99 %9s, second %9s   holds lost %d",
		c.loops, ms(c.longest), c.failed, c.attempts, ms(c.p99[0]), ms(c.p99[1]), c.lost)
	if c.refusals > 0 {
		text += fmt.Sprintf("   %d errors: %.100s", c.refusals, c.refusal)
	}
	return text
}

// run lets them be for the duration.
func (c *crowd) run(d time.Duration) (result crowdResult, err error) {
	looping, err := harness.Dial(c.same)
	if err != nil {
		return result, err
	}
	defer func() { _ = looping.Close() }()
	for tries := 0; c.fill(looping) != nil; tries++ { // a proxy that cannot bear it may do so with less going on
		if tries == 5 {
			return result, fmt.Errorf("the keys cannot be set: %w", c.fill(looping))
		}
	}
	holds, err := c.hold()
	defer harness.CloseAll(holds)
	if err != nil {
		return result, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var others sync.WaitGroup
	var lockers [2]locker
	errs := make([]error, 3)
	for i, addr := range []string{c.same, c.second} {
		others.Go(func() { errs[i] = lockers[i].run(ctx, addr) })
	}
	others.Go(func() { errs[2] = c.loopOn(ctx, looping, &result) })
	time.Sleep(d)
	cancel()
	others.Wait()
	for i := range lockers {
		result.failed += lockers[i].failed
		result.attempts += len(lockers[i].took)
		slices.Sort(lockers[i].took)
		if n := len(lockers[i].took); n > 0 {
			result.p99[i] = lockers[i].took[n*99/100]
		}
	}
	for _, h := range holds {
		if reply, err := h.Do("UNLOCK", "held:"+h.LocalAddr().String(), "t"); err != nil || string(reply) != ":1\r\n" {
			result.lost++
		}
	}
	return result, errors.Join(errs...)
}

func (c *crowd) names() []string {
	names := make([]string, c.keys)
	for i := range names {
		names[i] = fmt.Sprintf("read:%d", i)
	}
	return names
}

// fill sets all keys, some at a time.
func (c *crowd) fill(conn *harness.Conn) error {
	for some := range slices.Chunk(c.names(), max(1, min(100, 2<<20/c.size))) {
		var sets []byte
		for _, name := range some {
			sets = harness.Encode(sets, "SET", name, strings.Repeat("v", c.size), "PX", "600000")
		}
		if err := conn.Send(sets); err != nil {
			return err
		}
		var refused error
		for range some {
			reply, err := conn.Reply()
			if err != nil {
				return err
			}
			if string(reply) != "+OK\r\n" {
				refused = fmt.Errorf("SET: %.100q", reply)
			}
		}
		if refused != nil {
			return refused
		}
	}
	return nil
}

// hold begins a hold through each proxy.
func (c *crowd) hold() (holds []*harness.Conn, err error) {
	if c.bare {
		return nil, nil
	}
	for _, addr := range []string{c.same, c.second} {
		conn, err := harness.Dial(addr)
		if err != nil {
			return holds, err
		}
		holds = append(holds, conn)
		if reply, err := conn.Do("LOCK", "held:"+conn.LocalAddr().String(), "1000", "TOKEN", "t", "HOLD"); err != nil || reply[0] != '*' {
			return holds, fmt.Errorf("LOCK: %q %w", reply, err)
		}
	}
	return holds, nil
}

// loopOn is loop that goes on after errors, over another connection where the server has ended one.
func (c *crowd) loopOn(ctx context.Context, conn *harness.Conn, result *crowdResult) error {
	for {
		err := c.loop(ctx, conn, result)
		if err == nil {
			return nil
		}
		result.refuse(err.Error())
		again, err := harness.Dial(c.same)
		if err != nil {
			return err
		}
		defer func() { _ = again.Close() }()
		conn = again
	}
}

func (c *crowdResult) refuse(text string) {
	if c.refusals++; c.refusal == "" {
		c.refusal = text
	}
}

// loop sends the command again and again. What a bare Redis lacks is replaced by what comes nearest.
func (c *crowd) loop(ctx context.Context, conn *harness.Conn, result *crowdResult) error {
	names := c.names()
	for ctx.Err() == nil && c.command != "nothing" {
		began := time.Now()
		var commands []byte
		replies := 1
		switch c.command {
		case "LOCKINFO":
			word := c.command
			if c.bare {
				word = "PTTL"
			}
			replies = len(names)
			for _, name := range names {
				commands = harness.Encode(commands, word, name)
			}
		default:
			commands = harness.Encode(commands, append([]string{c.command}, names...)...)
		}
		if err := conn.Send(commands); err != nil {
			return err
		}
		for range replies {
			reply, err := conn.Reply()
			if err != nil {
				return fmt.Errorf("%s: %w", c.command, err)
			}
			if reply[0] == '-' {
				result.refuse(string(bytes.TrimSpace(reply)))
			}
		}
		result.longest = max(result.longest, time.Since(began))
		result.loops++
		if c.command == "DEL" {
			if err := c.fill(conn); err != nil {
				return err
			}
		}
	}
	return nil
}

// A locker locks and unlocks, one key after another.
type locker struct {
	failed int
	took   []time.Duration
}

func (l *locker) run(ctx context.Context, addr string) error {
	conn, err := harness.Dial(addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("locked:%s:%d", conn.LocalAddr(), n)
		began := time.Now()
		reply, err := conn.Do("SET", key, "t", "NX", "PX", "30000")
		if err != nil {
			return err
		}
		if string(reply) != "+OK\r\n" {
			l.failed++
		} else if reply, err := conn.Do("EVAL", release, "1", key, "t"); err != nil || string(reply) != ":1\r\n" {
			l.failed++
		}
		l.took = append(l.took, time.Since(began))
	}
	return nil
}

// readsTargets are those of the part: no attempt fails, no hold is lost, and a locker waits no longer than twice what it waits for on a
// bare Redis.
func (r *report) readsTargets() []target {
	var targets []target
	for _, f := range r.reads {
		b, p := f.bare, f.proxied
		for i, which := range []string{"same proxy", "second proxy"} {
			ratio := float64(p.p99[i]) / float64(max(b.p99[i], 1))
			targets = append(targets, target{fmt.Sprintf("%s: p99 through the %s", f.name, which), 2, true, "",
				func() (reached, bool) { return reached{value: ratio}, true }})
		}
		bad := float64(p.failed + p.lost + p.refusals)
		targets = append(targets, target{f.name + ": attempts failed, holds lost, errors", 0, true, "",
			func() (reached, bool) { return reached{value: bad}, true }})
	}
	return targets
}
