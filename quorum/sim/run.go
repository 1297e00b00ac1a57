package sim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"lockproxy/quorum"
)

// A Report is the result of one seed.
type Report struct {
	Findings []Finding
	Counts
	Faults map[string]int
}

// Run plays a plan to its end. The caller must be in a synctest bubble. trace, if not nil, gets every line. Where
// clients are to speak, door makes their front ends.
func Run(p Plan, door Door, trace func(string)) Report {
	if !p.Spoken {
		door = nil
	} else if door == nil {
		panic("sim: in this world clients speak, and there is no door")
	}
	w := newWorld(p, door, trace)
	w.play()
	return Report{w.checker.findings, w.checker.counts, w.faults}
}

func (w *World) play() {
	over := make(chan struct{})
	var turning sync.WaitGroup
	turning.Go(func() { w.turn(over) })
	defer turning.Wait()
	defer close(over)
	w.sleep(50 * time.Millisecond) // the first connections
	w.mu.Lock()
	w.startWalls()
	w.startFaults()
	if w.plan.Spoken && w.plan.Calm {
		w.checker.watchWaiters()
	}
	w.mu.Unlock()
	for i := range w.plan.Clients {
		if w.door != nil {
			w.clients.Go(newSpeaker(w, i).run)
		} else {
			w.clients.Go(newClient(w, i).run)
		}
	}
	w.clients.Wait()
	w.do(w.checker.exchanged)
	w.settle()
	w.lockAll()
	for _, p := range w.proxies {
		w.mu.Lock()
		p.stop()
		w.mu.Unlock()
		w.sleep(time.Millisecond)
	}
	w.closing.Wait()
}

// settle ends the faults, and waits until the world is whole again: silent connections have been given up, and work
// that waits for a heartbeat has been tried again.
func (w *World) settle() {
	w.mu.Lock()
	w.mendAll()
	w.mu.Unlock()
	w.sleep(2*w.plan.loosest().MasterDeadAfter + 2*time.Second)
	w.mu.Lock()
	w.checker.orphans()
	due := w.due
	if due {
		for _, s := range w.servers { // some may still be connected as when addresses were exchanged
			s.cutConnections(false)
		}
		w.after(time.Second, func() { initialised(w, nil) })
	}
	w.mu.Unlock()
	if due {
		w.sleep(4 * time.Second)
	}
}

// lockAll waits until every TTL is over, and then locks everything through every proxy, with all masters or with no
// more than are needed.
func (w *World) lockAll() {
	if w.plan.Databases {
		w.meetAll()
	}
	w.sleep(w.checker.keptMost + w.checker.keptMost/8)
	if w.plan.Forgets { // until every quarantine is over, and keys behind a clock that was set back are gone
		w.sleep(w.checker.keptMost + 2*time.Second)
		w.sleep(w.latest())
	}
	if slices.Contains(w.plan.Faults, suspended) { // the uncertainty of clocks after standstills shrinks at the drift's rate; see vouch/floor.go
		w.sleep(30 * time.Second)
	}
	w.forgotten()
	if w.random("last").IntN(2) == 0 {
		w.mu.Lock()
		for _, s := range w.servers[len(w.servers)/2+1:] {
			s.stopped = true
		}
		w.mu.Unlock()
	}
	for i, p := range w.proxies {
		for j := range w.plan.Resources {
			w.sleep(time.Millisecond)
			req := quorum.AcquireRequest{
				Key: w.plan.key(resourceName(j)), Token: fmt.Sprintf("last-%d", i), TTL: 200*time.Millisecond + 4*w.plan.farthest(),
			}
			a, _ := ask(p, func(*life, quorum.Acquired) {}, func(e *quorum.Engine, done func(quorum.Acquired)) { e.Acquire(req, done) })
			if a.Lock == nil {
				w.mu.Lock()
				w.checker.report(notFree, "%s through p%d: refused %v, %v", req.Key.Name, i+1, a.Refused, a.Err)
				w.mu.Unlock()
				continue
			}
			w.sleep(600*time.Millisecond + 8*w.plan.farthest() + w.plan.loosest().Grace - w.plan.strictest().Grace) // a release might find its script flushed
		}
	}
}

// meetAll lets every proxy connect to all databases, and judge them. Otherwise a proxy does so when it first needs a
// database.
func (w *World) meetAll() {
	for _, p := range w.proxies {
		for i := range databases {
			key := w.plan.key(resourceName(i))
			_, _ = ask(p, func(*life, quorum.View) {}, func(e *quorum.Engine, done func(quorum.View)) { e.Get(key, done) })
		}
	}
}

// forgotten checks that no proxy remembers finished work. Where a connection may not be killed, an undo is repeated
// until the key expires. By now the key has expired. Work for a master whose address leads to another server waits
// until one of the servers counts.
func (w *World) forgotten() {
	replaced := func(m quorum.MasterStatus) bool { return strings.Contains(m.Cause, "was replaced") }
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.proxies {
		if slices.ContainsFunc(p.life.engine.Masters(), replaced) {
			continue
		}
		if n := p.life.engine.Pending(); n > 0 {
			w.checker.report(leak, "%s remembers %d things that are done", p.life.name, n)
		}
	}
}

// latest returns the time until the last lock expires on any master.
func (w *World) latest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := time.Duration(0)
	for _, s := range w.servers {
		now := s.clock.millis(w.now())
		for _, db := range s.store.dbs {
			for key, it := range db {
				if it.expires != 0 && !strings.HasPrefix(key, "lockproxy:") {
					left = max(left, time.Duration(float64(it.expires-now)/s.rate)*time.Millisecond)
				}
			}
		}
	}
	return left + time.Millisecond
}

// A nonce marks the messages and scripts of a process. No seed decides a nonce.
var nonce = regexp.MustCompile(`lockproxy:[0-9a-f]{16}([0-9a-f]{12})`)

// brief shows a command in the trace, its script by its first words.
func brief(args []string) string {
	shown := append([]string(nil), args...)
	if shown[0] == "EVAL" || shown[0] == "EVALSHA" {
		shown[1] = scriptName(shown[1])
	}
	return nonce.ReplaceAllString(strings.Join(shown, " "), "lockproxy:…$1")
}

// scriptName shows a script by the first eight digits of its SHA-1.
func scriptName(text string) string {
	if len(text) != 40 {
		text = sha1hex(text)
	}
	return text[:8]
}

func (a answer) show() string {
	if a.err != nil {
		return a.err.Error()
	}
	return fmt.Sprint(a.reply)
}
