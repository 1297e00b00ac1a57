package sim

import (
	"testing"
	"time"

	"lockproxy/quorum"
)

// tended has the first proxy see quarantines through in all databases. The second one does not run.
func inTendedScene(t *testing.T, f func(s *scene)) {
	t.Helper()
	c := sceneConfig
	c.Tended = databases
	inSceneWith(t, 3, c, nil, func(s *scene) {
		s.do(s.proxies[1].kill)
		f(s)
	})
}

// restartEmpty has a master lose its data, and waits until the proxy has healed it, as operators do.
func (s *scene) restartEmpty(master int) {
	s.do(func() { s.servers[master].do(&session{}, []string{"FLUSHALL"}) })
	s.sleep(5 * time.Second)
	s.expectStateVia(0, master, quorum.Clean)
}

func (s *scene) lanes() (databases []int) {
	for _, db := range s.proxies[0].life.engine.Databases() {
		databases = append(databases, db.DB)
	}
	return databases
}

// Two masters lose their data one after the other, while clients use only one database. The other one can be used at once.
func TestAMasterIsHealedInDatabasesThatNobodyUses(t *testing.T) {
	inTendedScene(t, func(s *scene) {
		s.restartEmpty(0)
		s.restartEmpty(1)
		if got := s.lanes(); len(got) != 1 {
			t.Errorf("there are lanes of databases %v though all are healed", got)
		}
		s.lockIn(1)
		s.restartEmpty(2)
		if got := s.lanes(); len(got) != 2 {
			t.Errorf("there are lanes of databases %v though both are used", got)
		}
		s.lockIn(1)
	})
}

// While too few masters remember, a database that nobody uses is waited for, too, and a client that comes keeps the lanes.
func TestADatabaseIsTendedUntilItIsHealed(t *testing.T) {
	inTendedScene(t, func(s *scene) {
		s.do(func() {
			for _, m := range s.servers[:2] {
				m.do(&session{}, []string{"FLUSHALL"})
			}
		})
		s.sleep(30 * time.Second)
		if got := s.lanes(); len(got) != 2 {
			t.Errorf("there are lanes of databases %v though none is healed", got)
		}
		if a := s.acquireIn(1, 0, "early", time.Second); a.Lock != nil {
			t.Error("granted in a database that nobody remembers")
		}
		s.sleep(40 * time.Second) // the longest lock, since they have forgotten
		s.lockIn(1)
	})
}

// A second master loses its data while the first one is still in quarantine in the database that is used, and so not where none is held.
func TestAMasterIsTendedThoughAnotherIsInQuarantine(t *testing.T) {
	c := sceneConfig
	c.Tended = databases
	inSceneWith(t, 5, c, nil, func(s *scene) {
		s.do(s.proxies[1].kill)
		if a := s.acquireIn(0, 0, "long", 50*time.Second); a.Lock == nil {
			t.Fatalf("not granted: %+v", a)
		}
		for i := range 2 {
			s.do(func() { s.servers[i].do(&session{}, []string{"FLUSHALL"}) })
			s.sleep(5 * time.Second)
			s.expectStateVia(0, i, quorum.Quarantined)
			if got := s.lanes(); len(got) != 1 {
				t.Errorf("there are lanes of databases %v though all others are healed", got)
			}
		}
		s.do(func() { // and the three that are left lose theirs in the other database
			for _, m := range s.servers[2:4] {
				m.do(&session{db: 1}, []string{"FLUSHDB"})
			}
		})
		if all := s.proxies[0].life.engine.Database(1); all.Ready() == nil {
			t.Error("it is ready before its lanes are there")
		}
		s.sleep(5 * time.Second)
		s.lockIn(1)
	})
}

// What a master has forgotten in one database says nothing of another.
func TestEachDatabaseStandsForItself(t *testing.T) {
	inScene(t, func(s *scene) {
		s.lockIn(0)
		s.lockIn(1)
		s.do(func() {
			for _, m := range s.servers[:2] {
				m.do(&session{db: 1}, []string{"FLUSHDB"})
			}
		})
		s.sleep(5 * time.Second)
		e := s.proxies[0].life.engine
		if err := e.Ready(); err != nil || e.Database(0).Masters[0].State != quorum.Clean {
			t.Errorf("database 0: %v, %+v", err, e.Database(0).Masters[0])
		}
		if err := e.Database(1).Ready(); err == nil || e.Database(1).Masters[0].State != quorum.Quarantined || e.Database(1).Masters[2].State != quorum.Clean {
			t.Errorf("database 1: %v, %+v", err, e.Database(1).Masters)
		}
		views := func(db int) quorum.Viewed {
			return <-begin(e.Views, quorum.Key{DB: db, Name: resourceName(0)})
		}
		if is := views(0).Masters[0]; is.State != quorum.Clean || is.Left != 0 {
			t.Errorf("LOCKINFO in database 0 says %+v", is)
		}
		if is := views(1).Masters[0]; is.State != quorum.Quarantined || is.Left == 0 {
			t.Errorf("LOCKINFO in database 1 says %+v", is)
		}
		s.lockIn(0)
	})
}
