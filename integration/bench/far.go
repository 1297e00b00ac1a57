package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"lockproxy/integration/harness"
)

// farTrips are the round trips to the masters, one after the other.
var farTrips = []time.Duration{time.Millisecond, 5 * time.Millisecond}

// farMasters is how many masters are far away.
const farMasters = 3

// A distant is what is behind relays: one Redis, and masters with their proxy, which is near.
type distant struct {
	masters []*harness.Redis
	relays  []*harness.Relay // the last leads to the one Redis
	proxy   *harness.Proxy
}

// farPart measures masters that are far away: a SET on one Redis through a relay, and through a proxy whose masters are behind such
// relays; then the hand-over of one lock for which all wait.
func (f *fleet) farPart(s settings, r *report) error {
	d, err := f.startDistant()
	defer d.stop()
	if err != nil {
		return err
	}
	one, addrs := d.relays[farMasters].Addr, d.addrs()
	for _, trip := range farTrips {
		for _, relay := range d.relays {
			relay.Delay(harness.ToMaster, trip/2)
			relay.Delay(harness.ToProxy, trip/2)
		}
		took, err := roundTrip(one)
		if err != nil {
			return err
		}
		fmt.Printf("  %v away: a PING through the relay takes %s\n", trip, ms(took))
		for _, clients := range []int{10, 50, 200} {
			err := r.rows(os.Stdout, s, farName("set", trip), clients, 1, []subject{
				{name: straight, masters: []*harness.Redis{f.bare}, run: redisBenchmark(one, setWords)},
				{name: farProxy, masters: d.masters, run: redisBenchmark(d.proxy.Addr, setWords)},
			})
			if err != nil {
				return err
			}
		}
		err = r.rows(os.Stdout, s, farName("hot", trip), 51, 1, []subject{ // one has the lock, 50 wait
			{name: farProxy, masters: d.masters, run: contested(1, lockClient(d.proxy.Addr))},
			{name: "redsync, 3 masters", masters: d.masters, run: redsyncContest(addrs, 1)},
		})
		if err != nil {
			return err
		}
		r.trips = append(r.trips, took)
	}
	return nil
}

const farProxy = "lockproxy, 3 masters"

func farName(what string, trip time.Duration) string { return fmt.Sprintf("%s, %v away", what, trip) }

func (f *fleet) startDistant() (d *distant, err error) {
	d = &distant{}
	if d.masters, err = harness.StartRedises(farMasters); err != nil {
		return d, err
	}
	for _, addr := range append(harness.Addrs(d.masters), f.bare.Addr) {
		relay, err := harness.StartRelay(addr)
		if err != nil {
			return d, err
		}
		d.relays = append(d.relays, relay)
	}
	d.proxy, err = harness.StartProxy(f.bin, d.addrs())
	return d, err
}

// addrs are those of the relays to the masters.
func (d *distant) addrs() []string {
	var addrs []string
	for _, relay := range d.relays[:farMasters] {
		addrs = append(addrs, relay.Addr)
	}
	return addrs
}

func (d *distant) stop() {
	if d.proxy != nil {
		if err := d.proxy.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "bench: stop the proxy:", err)
		}
	}
	for _, relay := range d.relays {
		relay.Stop()
	}
	harness.StopAll(d.masters)
}

// roundTrip returns the median of some PINGs.
func roundTrip(addr string) (time.Duration, error) {
	conn, err := harness.Dial(addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	took := make([]time.Duration, 51)
	for i := range took {
		start := time.Now()
		if reply, err := conn.Do("PING"); err != nil || string(reply) != "+PONG\r\n" {
			return 0, fmt.Errorf("PING: %q, %w", reply, errors.Join(err))
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// farTargets are those of masters that are far away.
func (r *report) farTargets() []target {
	p50 := func(f figure) float64 { return float64(f.p50) }
	p99 := func(f figure) float64 { return float64(f.p99) }
	var targets []target
	for i, trip := range farTrips {
		what := farName("set", trip)
		for _, clients := range []int{10, 50, 200} {
			proxy, one := key{what, farProxy, clients, 1}, key{what, straight, clients, 1}
			targets = append(targets,
				target{fmt.Sprintf("%s, %d clients: p50 to that of one master", what, clients), 1.1, true, "", r.ratio(p50, proxy, one)},
				target{fmt.Sprintf("%s, %d clients: p99 to that of one master", what, clients), 1.3, true, "", r.ratio(p99, proxy, one)})
		}
		targets = append(targets, target{farName("hot", trip) + ", 50 wait: hand-over in round trips", 1.1, true, "", func() (reached, bool) {
			f, ok := r.find(key{farName("hot", trip), farProxy, 51, 1})
			if !ok || i >= len(r.trips) {
				return reached{}, false
			}
			return reached{value: float64(f.handP50) / float64(r.trips[i])}, true
		}})
	}
	return targets
}
