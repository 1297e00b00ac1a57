package sim

import (
	"testing"
	"time"

	"lockproxy/quorum/vouch"
)

// What masters lose while nobody looks, or in a way that shows only elsewhere: there must be evidence of that, also for proxies that
// come later. All masters keep all on disk. The first lock has the votes of two masters, and one of these loses it.

// loser is the master that loses the first lock, keeper the one that has it all the time, and bystander was away meanwhile.
const keeper, bystander, loser = 0, 1, 2

// A loss is how the loser loses the lock.
type loss struct {
	name   string
	before func(s *scene)                     // the first lock is granted; what its file has then, after may start it on
	after  func(s *scene, file time.Duration) // by when the file, or a copy of it, was written
	// seen says that proxies which end then see it; else they have ended before.
	seen bool
	// met says that the proxies which saw what happened are there all the time: later ones cannot know.
	met bool
}

var losses = []loss{
	{name: "evicted, and full", seen: true, after: func(s *scene, _ time.Duration) {
		m := s.servers[loser]
		s.do(func() {
			m.refuses = "OOM command not allowed when used memory > 'maxmemory'."
			m.evicted++
			s.forgetFirst()
		})
		s.sleep(time.Second)
		s.do(func() { m.refuses = "" })
		s.startAnew(s.now(), files{})
	}},
	{name: "evicted while no proxy ran", after: func(s *scene, _ time.Duration) {
		s.killProxies()
		s.do(func() {
			s.servers[loser].evicted++
			s.forgetFirst()
		})
	}},
	{name: "evicted before a proxy looked", after: func(s *scene, _ time.Duration) {
		s.startAnew(s.now(), files{})
		s.do(func() {
			s.servers[loser].evicted++
			s.forgetFirst()
		})
	}},
	{
		name:   "its directory was changed, and the file written there",
		before: func(s *scene) { s.do(func() { s.servers[loser].files.moved = "/backup" }) },
		after: func(s *scene, file time.Duration) {
			s.do(func() { s.servers[loser].files.moved = "" })
			s.sleep(time.Second)
			s.startAnew(file, files{})
		},
	},
	{name: "started in another directory", after: func(s *scene, file time.Duration) {
		s.startAnew(file, files{moved: "/old"})
	}},
	{name: "started from its dump, and told to keep all", after: func(s *scene, file time.Duration) {
		s.startAnew(file, files{rewritten: true})
	}},
	{
		name:   "the file was turned off and on, unseen, and is still being written",
		before: func(s *scene) { s.unseen(func(m *server) { m.files.rewriting = true }) },
		after:  func(s *scene, file time.Duration) { s.startAnew(file, files{}) },
	},
	{
		name:   "a replica copied it, unseen, and is started in its place",
		before: func(s *scene) { s.unseen(func(m *server) { m.files.copies++ }) },
		after:  func(s *scene, file time.Duration) { s.startAnew(file, files{}) },
	},
	{name: "started with fewer databases", after: func(s *scene, _ time.Duration) {
		s.startAnew(s.now(), files{fewer: 1})
		s.do(s.forgetFirst)
	}},
	{name: "its clock went ahead and back, unseen", after: func(s *scene, _ time.Duration) {
		s.unseen(func(m *server) {
			for _, key := range m.keys(0) {
				if m.store.dbs[0][key].expires != 0 {
					m.store.do(mutation{at: m.now(), kind: removed, key: key})
				}
			}
		})
	}},
	{name: "started from a backup", met: true, after: func(s *scene, file time.Duration) {
		s.sleep(time.Second)    // by then all proxies know what it had
		s.do(s.proxies[0].kill) // the one that has granted the lock
		s.startAnew(file, files{})
		s.sleep(time.Second)
	}},
}

func TestWhatAMasterLostUnseenIsNotTakenForFree(t *testing.T) {
	for _, l := range losses {
		for _, later := range []bool{false, true} { // other proxies ask for the second lock
			if l.met && later {
				continue
			}
			t.Run(l.name, func(t *testing.T) {
				inDurableScene(t, func(s *scene) { s.suffer(l, later) })
			})
		}
	}
}

// suffer lets a lock be lost, and others ask for it.
func (s *scene) suffer(l loss, later bool) {
	s.away(bystander)
	file := s.now()
	if l.before != nil {
		l.before(s)
	}
	s.sleep(2 * time.Second)
	s.expectGranted(s.acquireIn(0, 0, "first", 30*time.Second))
	if later { // those that come are to hear of this from a master that was away
		s.do(s.servers[bystander].boot)
		s.sleep(time.Second)
	}
	if later && !l.seen {
		s.killProxies()
	}
	l.after(s, file)
	if later {
		s.killProxies()
	}
	s.do(func() {
		s.servers[keeper].crash(false)
		if s.servers[bystander].down {
			s.servers[bystander].boot()
		}
		for _, p := range s.proxies {
			if p.life == nil {
				p.boot()
			}
		}
	})
	for range 100 {
		for proxy := range s.proxies {
			s.expectNotGranted(s.acquireIn(0, proxy, "second", 30*time.Second))
		}
		s.sleep(20 * time.Millisecond)
	}
	s.do(s.servers[keeper].boot) // which remembers for how long: then all is well again
	s.sleep(50 * time.Second)
	s.away(bystander)
	s.expectGranted(s.acquireIn(0, 0, "third", 30*time.Second))
}

// forgetFirst deletes the first lock from the loser.
func (s *scene) forgetFirst() {
	m := s.servers[loser]
	m.store.do(mutation{at: m.now(), kind: removed, key: resourceName(0)})
}

// startAnew ends the loser, and starts it on a file that was written at a true time.
func (s *scene) startAnew(file time.Duration, is files) {
	s.do(func() {
		m := s.servers[loser]
		m.crash(false)
		m.boot()
		m.store.rewind(file)
		m.files = is
	})
}

// unseen lets something happen to the loser while no proxy reaches it.
func (s *scene) unseen(f func(m *server)) {
	m := s.servers[loser]
	s.do(func() { m.cutConnections(false); f(m) })
	s.sleep(time.Second)
}

// A replica that is gone before the next look has a copy all the same: it bears the mark of the epoch before.
func TestACopyIsNoticedThoughItsReplicaIsGone(t *testing.T) {
	inDurableScene(t, func(s *scene) {
		was := s.epochOf(loser)
		s.do(func() { s.servers[loser].files.copies++ })
		s.sleep(time.Second)
		if is := s.epochOf(loser); is != was+1 {
			t.Errorf("its epoch was %d, and is %d", was, is)
		}
	})
}

// epochOf returns the epoch in a master's mark.
func (s *scene) epochOf(master int) (epoch int64) {
	s.do(func() {
		it, _ := s.servers[master].store.get(0, "lockproxy:canary", 0)
		c, _ := vouch.ParseCanary(it.text)
		epoch = c.Epoch
	})
	return epoch
}
