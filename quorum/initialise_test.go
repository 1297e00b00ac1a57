package quorum

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// A proxy finds the masters new, and marks them so, while they are being initialised.
func TestMastersAreInitialisedWhileAProxyStarts(t *testing.T) {
	for delay := range 12 {
		synctest.Test(t, func(t *testing.T) {
			fakes, ms := newFakes(3)
			w := &world{t: t, fakes: fakes}
			cfg := Config{Databases: 1}
			e, err := New(cfg, ms)
			if err != nil {
				t.Fatal(err)
			}
			w.Engine = e
			time.Sleep(time.Duration(delay) * time.Millisecond)
			if done, err := AutoInitialise(context.Background(), cfg, ms); !done || err != nil {
				t.Errorf("after %d ms: %v, %v", delay, done, err)
			}
			w.settle()
			w.expectStates("ccc")
			if done, _ := AutoInitialise(context.Background(), cfg, ms); done {
				t.Error("masters in use were taken for new ones")
			}
			if err := Initialise(context.Background(), cfg, ms); err != nil {
				t.Error(err)
			}
			w.settle()
			w.expectStates("ccc")
			e.Close()
			time.Sleep(time.Second)
		})
	}
}

// However soon a proxy is to give up on masters that do not answer, it leaves none unmarked among marked ones.
func TestWhatIsBegunToBeInitialisedIsEnded(t *testing.T) {
	for patience := range 40 {
		synctest.Test(t, func(t *testing.T) {
			fakes, ms := newFakes(3)
			for i, f := range fakes {
				f.setDelay(time.Duration(1+i) * time.Millisecond)
			}
			cfg := Config{Databases: 1}
			soon, cancel := context.WithTimeout(context.Background(), time.Duration(patience)*time.Millisecond)
			defer cancel()
			done, err := AutoInitialise(soon, cfg, ms)
			if !done && err != nil {
				done, err = AutoInitialise(context.Background(), cfg, ms)
			}
			if !done || err != nil {
				t.Errorf("after giving up within %d ms: %v, %v", patience, done, err)
			}
			time.Sleep(time.Second)
		})
	}
}

// A hurdle is a master one of whose connections cannot be made.
type hurdle struct {
	*fake
	dials, fails int
}

func (h *hurdle) Dial(ctx context.Context, db int) (masters.Conn, error) {
	if h.dials++; h.dials == h.fails {
		return nil, syscall.ETIMEDOUT
	}
	return h.fake.Dial(ctx, db)
}

// On a busy machine a connection may be slow to be made. Masters of which some are marked clean and some are not are never
// initialised by themselves any more.
func TestOneConnectionThatFailsLeavesNoMasterUnmarked(t *testing.T) {
	for fails := 1; fails <= 12; fails++ {
		synctest.Test(t, func(t *testing.T) {
			fakes, ms := newFakes(3)
			ms[2] = &hurdle{fake: fakes[2], fails: fails}
			cfg := Config{Databases: 1}
			done, err := AutoInitialise(context.Background(), cfg, ms)
			if !done && err != nil {
				done, err = AutoInitialise(context.Background(), cfg, ms)
			}
			if !done || err != nil {
				t.Errorf("connection %d fails: %v, %v", fails, done, err)
			}
		})
	}
}

func TestInspectSaysHowLongAQuarantineLastsAtMost(t *testing.T) {
	inWorldWith(t, 3, Config{Databases: 1, TTLMax: time.Hour}, func(w *world) {
		inspect := func() *Barred {
			in := Inspect(context.Background(), w.cfg, w.ms)[0]
			if len(in.Barred) != 1 {
				t.Fatalf("want one database in quarantine: %+v", in)
			}
			return &in.Barred[0]
		}
		w.acquire(key, "mine", 20*time.Second)
		w.settle()
		w.fakes[0].flush()
		if b := inspect(); b.Reason != "" {
			t.Errorf("before anybody has seen it: %+v", b)
		}
		w.read(key)
		time.Sleep(3 * time.Second)
		b := inspect()
		left := w.Masters()[0].Left
		if b.Reason != vouch.New || b.Since < 2*time.Second || b.Since > 4*time.Second || b.Unknown || b.Left < left || b.Left > left+2*time.Second {
			t.Errorf("%+v, and the proxy says %v", b, left)
		}
		w.fakes[1].flush()
		if b := inspect(); !b.Unknown || b.Left < time.Hour-time.Minute || b.Left > time.Hour+5*time.Minute {
			t.Errorf("where one other remembers: %+v", b)
		}
	})
}

func TestAMasterThatDoesNotTellItsKeysIsNoEmptyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(0)
		f.fail["DBSIZE"] = "NOPERM this user has no permissions to run the 'dbsize' command"
		cfg := Config{Databases: 1}
		if done, err := AutoInitialise(context.Background(), cfg, []masters.Master{f}); done {
			t.Errorf("initialised: %v", err)
		}
		time.Sleep(time.Second)
	})
}

// Masters of which some are marked would refuse the proxies that know them, and the others those that do not.
func TestNoMasterIsMarkedUnlessAllCanBe(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*fake)
		want  string
	}{
		"a replica":       {func(f *fake) { f.fail["trial"] = "READONLY You can't write against a read only replica." }, "READONLY"},
		"a Cluster":       {func(f *fake) { f.memory = "cluster_enabled:1\r\n" }, "runs in cluster mode"},
		"the same server": {func(f *fake) { f.alias = newFake(0).process() }, "is the same server as "},
	} {
		synctest.Test(t, func(t *testing.T) {
			fakes, ms := newFakes(3)
			c.spoil(fakes[2])
			cfg := Config{Databases: 1}
			err := Initialise(context.Background(), cfg, ms)
			if err == nil || !strings.Contains(err.Error(), fakes[2].addr+": "+c.want) || !strings.HasSuffix(err.Error(), "; nothing was changed") {
				t.Errorf("%s: %v", name, err)
			}
			for _, in := range Inspect(context.Background(), cfg, ms) {
				if in.Marked {
					t.Errorf("%s: %s is marked", name, in.Addr)
				}
			}
		})
	}
}

// Where a deployment has a name, its masters are known by their places in the list.
func TestAMasterThatIsListedInAnotherPlaceIsRefused(t *testing.T) {
	for _, c := range []struct {
		deployment string
		order      []int
		want       string
	}{
		{"locks", []int{0, 1, 2}, "ccc"},
		{"locks", []int{1, 0, 2}, "..c"},
		{"", []int{1, 0, 2}, "ccc"},
	} {
		synctest.Test(t, func(t *testing.T) {
			fakes, ms := newFakes(3)
			w := &world{t: t, fakes: fakes}
			cfg := Config{Databases: 1, Deployment: c.deployment}
			if err := Initialise(context.Background(), cfg, ms); err != nil {
				t.Fatal(err)
			}
			var listed []masters.Master
			for _, i := range c.order {
				listed = append(listed, ms[i])
			}
			e, err := New(cfg, listed)
			if err != nil {
				t.Fatal(err)
			}
			w.Engine = e
			w.settle()
			w.expectStates(c.want)
			for i, in := range Inspect(context.Background(), cfg, listed) {
				if misplaced := c.want[i] == '.'; in.Misplaced != misplaced || in.Clean() == misplaced {
					t.Errorf("%v: inspected %d: %+v", c.order, i, in)
				}
			}
			e.Close()
			time.Sleep(time.Second)
		})
	}
}
