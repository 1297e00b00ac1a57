package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"lockproxy/integration/harness"
)

func (f *fleet) setPart(s settings, r *report) error {
	for _, shape := range []struct{ clients, pipeline int }{{1, 1}, {50, 1}, {200, 1}, {50, 16}} {
		subjects := []subject{{name: straight, masters: []*harness.Redis{f.bare}, keep: true, run: redisBenchmark(f.bare.Addr, setWords)}}
		for _, g := range f.groups {
			if shape.pipeline == 1 { // redsync cannot pipeline
				subjects = append(subjects, subject{name: g.name("redsync"), masters: g.masters, run: redsyncOn(g.masters, false)})
			}
			subjects = append(subjects, subject{name: g.name("lockproxy"), masters: g.masters, keep: true, run: redisBenchmark(g.proxy.Addr, setWords)})
		}
		r.commands = append(r.commands, benchmarkWords("HOST:PORT", load{clients: shape.clients, pipeline: shape.pipeline}, setWords))
		if err := r.rows(os.Stdout, s, "set", shape.clients, shape.pipeline, subjects); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) pairsPart(s settings, r *report) error {
	for _, clients := range []int{1, 50, 200} {
		subjects := []subject{{name: straight, masters: []*harness.Redis{f.bare}, run: pairs(f.bare.Addr)}}
		for _, g := range f.groups {
			subjects = append(subjects,
				subject{name: g.name("redsync"), masters: g.masters, run: redsyncOn(g.masters, true)},
				subject{name: g.name("lockproxy"), masters: g.masters, run: pairs(g.proxy.Addr)})
		}
		if err := r.rows(os.Stdout, s, "pairs", clients, 1, subjects); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) pausedPart(s settings, r *report) error {
	g := f.largest()
	victim := g.masters[len(g.masters)-1]
	caughtUp := func() error { return errors.Join(victim.Resume(), g.caughtUp()) }
	paused := func(name string, run func(load) (result, error)) subject {
		return subject{name: name + ", one paused", masters: g.masters, run: run, before: victim.Pause, after: caughtUp}
	}
	set, pair := redisBenchmark(g.proxy.Addr, setWords), pairs(g.proxy.Addr)
	err := r.rows(os.Stdout, s, "set", 50, 1, []subject{
		{name: g.name("lockproxy") + ", all well", masters: g.masters, run: set},
		paused(g.name("lockproxy"), set),
	})
	if err != nil {
		return err
	}
	err = r.rows(os.Stdout, s, "pairs", 50, 1, []subject{
		{name: g.name("lockproxy") + ", all well", masters: g.masters, run: pair},
		paused(g.name("lockproxy"), pair),
	})
	if err != nil {
		return err
	}
	// One round is enough: redsync waits for the silent master each time, for seconds.
	s.rounds = 1
	return r.rows(os.Stdout, s, "set", 50, 1, []subject{paused(g.name("redsync"), redsyncOn(g.masters, false))})
}

// caughtUp waits until a lock taken through the proxy reaches all masters again.
func (g *group) caughtUp() error {
	c, err := harness.Dial(g.proxy.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	n := 0
	return harness.Poll(time.Minute, func() error {
		n++
		key := fmt.Sprintf("caught-up:%d", n)
		if reply, err := c.Do("SET", key, "probe", "NX", "PX", "10000"); err != nil || string(reply) != "+OK\r\n" {
			return fmt.Errorf("SET: %q, %w", reply, errors.Join(err))
		}
		return harness.Poll(50*time.Millisecond, func() error {
			for _, m := range g.masters {
				if reply, err := m.Do(0, "EXISTS", key); err != nil || string(reply) != ":1\r\n" {
					return fmt.Errorf("EXISTS on %s: %q, %w", m.Addr, reply, errors.Join(err))
				}
			}
			return nil
		})
	})
}

// idleConnections is how many connections rest at once, if the limit on open files allows it.
const idleConnections = 10_000

func (f *fleet) idlePart(_ settings, r *report) error {
	connections, err := harness.RoomFor(idleConnections)
	if err != nil {
		return err
	}
	g := f.largest()
	proxy, err := harness.StartProxy(f.bin, harness.Addrs(g.masters), "--max-clients", fmt.Sprint(connections+100))
	if err != nil {
		return err
	}
	defer func() { _ = proxy.Stop() }()
	var conns []*harness.Conn
	conns, r.idleKB, err = proxy.IdleCost(connections)
	defer harness.CloseAll(conns)
	if err != nil {
		return err
	}
	fmt.Printf("%d connections that locked and unlocked once: %.1f KB of resident memory each\n", connections, r.idleKB)
	return nil
}
