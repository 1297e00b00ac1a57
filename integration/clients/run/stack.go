package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"lockproxy/integration/harness"
)

const (
	mastersCount = 3
	quorum       = mastersCount/2 + 1
	settledMax   = 30 * time.Second // until an undo, a release or a new connection has reached every master
)

// A stack is what one program runs against: masters, a relay before each of them, and the proxy.
type stack struct {
	masters []*harness.Redis
	relays  []*harness.Relay
	proxy   *harness.Proxy
	control *control
	direct  bool // no relays: for speed

	unknown []string // lines in which the proxy has told of scripts that nobody knows

	withUpstream bool
	upstream     *harness.Redis
}

func startStack(bin string, upstream bool) (*stack, error) {
	s := &stack{withUpstream: upstream}
	err := s.start(bin)
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *stack) start(bin string) error {
	var err error
	if s.masters, err = harness.StartRedises(mastersCount, "--databases", "2"); err != nil {
		return err
	}
	addrs := harness.Addrs(s.masters)
	for i, m := range s.masters {
		if s.direct {
			break
		}
		r, err := harness.StartRelay(m.Addr)
		if err != nil {
			return err
		}
		s.relays, addrs[i] = append(s.relays, r), r.Addr
	}
	if err := harness.InitMasters(bin, addrs); err != nil {
		return err
	}
	// A busy machine is no reason for a vote to be late.
	flags := []string{"--databases", "2", "--instance-timeout", "2s", "--grace", "500ms", "--log-level", "debug"}
	if s.withUpstream {
		more, err := s.startUpstream()
		if err != nil {
			return err
		}
		flags = append(flags, more...)
	}
	if s.proxy, err = harness.StartProxy(bin, addrs, flags...); err != nil {
		return err
	}
	s.control, err = startControl(s)
	return err
}

func (s *stack) stop() {
	if s.control != nil {
		s.control.stop()
	}
	if s.proxy != nil {
		s.proxy.Kill()
	}
	for _, r := range s.relays {
		r.Stop()
	}
	harness.StopAll(s.masters)
	if s.upstream != nil {
		s.upstream.Stop()
	}
}

// healthy stops the proxy, which must end as it should, must not have reported a panic, and must have known all scripts: those
// of libraries are understood, or in the table of families.
func (s *stack) healthy() error {
	if err := s.proxy.Stop(); err != nil {
		return err
	}
	if out := s.proxy.Output(); strings.Contains(out, "panic") {
		return fmt.Errorf("the proxy panicked:\n%s", out)
	}
	s.noteUnknown()
	var err error
	for _, line := range s.unknown {
		err = errors.Join(err, fmt.Errorf("the proxy logged: %s", line))
	}
	return err
}

// noteUnknown reads the proxy's log. That has only what is latest, and nothing from before a restart: so each scenario begins
// with it.
func (s *stack) noteUnknown() {
	for line := range strings.Lines(s.proxy.Output()) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "a script that nobody knows") && !slices.Contains(s.unknown, line) {
			s.unknown = append(s.unknown, line)
		}
	}
}

// environment tells a program where everything is.
func (s *stack) environment() []string {
	host, port, _ := net.SplitHostPort(s.proxy.Addr)
	_, controlPort, _ := net.SplitHostPort(s.control.addr())
	return []string{
		"PROXY_HOST=" + host, "PROXY_PORT=" + port, "CONTROL_PORT=" + controlPort,
		"MASTERS=" + strings.Join(harness.Addrs(s.masters), ","),
	}
}

// down makes the last n masters unreachable. They go on running, and forget nothing.
func (s *stack) down(n int) error {
	if n < 0 || n > len(s.relays) {
		return fmt.Errorf("there are %d masters", len(s.relays))
	}
	for _, r := range s.relays[len(s.relays)-n:] {
		r.Refuse(true)
		r.Cut()
	}
	return nil
}

// up makes all masters reachable and waits until the proxy says that the grants of every one count.
func (s *stack) up() error {
	for _, r := range s.relays {
		r.Refuse(false)
	}
	return harness.Poll(settledMax, func() error {
		c, err := harness.Dial(s.proxy.Addr)
		if err != nil {
			return err
		}
		defer c.Close()
		info, err := c.Do("INFO", "lockproxy")
		if err == nil && strings.Count(string(info), ",state=clean,") != mastersCount {
			err = fmt.Errorf("not all masters are clean: %s", info)
		}
		return err
	})
}

// lose removes every key of the clients from all masters, behind the proxy's back.
func (s *stack) lose() error {
	for _, m := range s.masters {
		if _, err := m.Clear(); err != nil {
			return err
		}
	}
	return nil
}

// held waits until a quorum of masters hold a key of the clients: the lock is a majority lock.
func (s *stack) held() error {
	return harness.Poll(settledMax, func() error {
		n, err := s.holding()
		if err == nil && n < quorum {
			err = fmt.Errorf("%d masters hold a key of the clients, want %d", n, quorum)
		}
		return err
	})
}

// empty waits until no master holds a key of the clients: nothing was left behind.
func (s *stack) empty() error {
	return harness.Poll(settledMax, func() error {
		n, err := s.holding()
		if err == nil && n > 0 {
			err = fmt.Errorf("%d masters still hold a key of the clients", n)
		}
		return err
	})
}

// holding counts the masters that hold a key of the clients. Redisson's latches do not count: some versions delete them
// under another name than they were set, so that they stay for some seconds, on one Redis, too.
func (s *stack) holding() (int, error) {
	n := 0
	for _, m := range s.masters {
		keys, err := m.LockKeys()
		if err != nil {
			return 0, err
		}
		if slices.ContainsFunc(keys, func(k string) bool { return !strings.HasPrefix(k, "redisson_unlock_latch:") }) {
			n++
		}
	}
	return n, nil
}
