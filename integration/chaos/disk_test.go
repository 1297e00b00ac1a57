package chaos

import (
	"fmt"
	"testing"
)

// onDisk are the faults of masters that write everything to disk before they answer: they forget nothing by any of the first three.
var onDisk = []blow{
	{fault{name: "killed, restarted", lasts: lasting / 4, hit: (*deployment).kill, heal: startAgain}, 3, false},
	{fault{name: "killed, restarted", lasts: lasting / 4, hit: (*deployment).kill, heal: startAgain}, mastersMax, true},
	{fault{name: "killed as they rewrite their files, restarted", prepare: command("BGREWRITEAOF"), hit: killRewriting, heal: startAgain}, mastersMax, true},
	{fault{name: "flushed (FLUSHALL)", forgets: true, hit: command("FLUSHALL")}, 2, false},
	{fault{name: "SWAPDB", forgets: true, hit: command("SWAPDB", "0", "1")}, 2, false},
	{fault{name: "link cut", hit: func(d *deployment, i int) error { d.relays[i].Cut(); return nil }}, 3, false},
	{fault{name: "stopped (SIGSTOP)", lasts: lasting,
		hit:  func(d *deployment, i int) error { return d.masters[i].Pause() },
		heal: func(d *deployment, i int) error { return d.masters[i].Resume() }}, 3, true},
	{fault{name: "proxy killed, restarted", proxy: true,
		hit: func(d *deployment, i int) error { d.proxies[i].Kill(); return d.proxies[i].Start() }}, 1, true},
}

func startAgain(d *deployment, i int) error { return d.masters[i].StartAgain() }

// killRewriting begins another rewrite, and kills the master at once.
func killRewriting(d *deployment, i int) error {
	if err := tell(d.masters[i], "", "BGREWRITEAOF"); err != nil {
		return err
	}
	d.masters[i].Kill()
	return nil
}

// Masters with a file of users whose default user is off, as the manual has it, and with all that they answer on disk.
func TestNoFaultCostsAnUpdateOnDisk(t *testing.T) {
	t.Parallel() // as TestNoFaultCostsAnUpdate
	d := deployOnDisk(t, proxiesMax, proxyFlags(*ttl)...)
	var found []finding
	for n, b := range onDisk {
		t.Run(b.String(), func(t *testing.T) {
			f := strike(t, d, b, fmt.Sprintf("disk-%d", n), d.clients)
			found = append(found, f)
			demandNoLoss(t, f)
		})
	}
	t.Log("\n" + table(found))
}
