package quorum

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"lockproxy/quorum/rules"
	"lockproxy/quorum/vouch"
)

// Config holds the settings of an engine. Zero values get the defaults.
type Config struct {
	// InstanceTimeout is how long a round waits for a master's vote. Default 250 ms.
	InstanceTimeout time.Duration
	// DriftFactor is the part of a TTL by which clocks may come apart: drift = TTL × DriftFactor + 2 ms. Default 0.01.
	DriftFactor float64
	// Grace is how much longer than TTL + drift a master keeps a key. Negative means none; default 50 ms.
	Grace time.Duration
	// TTLMax is the longest TTL, and the TTL of a key that asks for none. Default 1 h.
	TTLMax time.Duration
	// MasterDeadAfter is how long a master's answer may be due before its connection is given up, and how long connecting
	// may take. Default 5 s.
	MasterDeadAfter time.Duration
	// FarAway is the least round trip at which a batch is written while earlier batches are under way. Default 800 µs.
	FarAway time.Duration
	// QueueMax is how many commands may wait for one lane; a vote beyond the bound fails at once. Default 65,536.
	QueueMax int
	// Databases is how many logical databases there are, at most 1024. Default 16.
	Databases int
	// FirstDatabase is the database in which clients begin, and the database of Masters and Ready.
	FirstDatabase int
	// Tended says of how many databases, from 0 on, the masters' quarantines are to be seen through although no client uses the
	// databases. Default: none.
	Tended int
	// Deployment names the masters where proxies know them by different addresses; then all proxies must list them in the
	// same order. Default: the masters are known by their addresses.
	Deployment string
	// Names are the names of locks, to be compared with the names of other proxies. Default: nothing is compared.
	Names Names
	// Slept returns for how long, in all since some fixed moment, this machine had been suspended at now: Go's monotonic clock leaves
	// suspends out. Default: the system's answer.
	Slept func(now time.Time) time.Duration
	// Wall is the wall clock, by which fences are proposed. Default: time.Now.
	Wall func() time.Time
	// Pause chooses how long a script waits before it is asked again, less than most. Default: at random.
	Pause func(most time.Duration) time.Duration
	// Logger gets one line for each change of a lane's state. Default: none.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.InstanceTimeout = cmp.Or(c.InstanceTimeout, 250*time.Millisecond)
	c.DriftFactor = cmp.Or(c.DriftFactor, 0.01)
	c.Grace = cmp.Or(c.Grace, 50*time.Millisecond)
	c.TTLMax = cmp.Or(c.TTLMax, time.Hour)
	c.MasterDeadAfter = cmp.Or(c.MasterDeadAfter, 5*time.Second)
	c.FarAway = cmp.Or(c.FarAway, 800*time.Microsecond)
	c.QueueMax = cmp.Or(c.QueueMax, 1<<16)
	c.Databases = cmp.Or(c.Databases, 16)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Grace = max(c.Grace, 0)
	if c.Slept == nil {
		c.Slept = newSuspends().since
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.Pause == nil {
		c.Pause = rand.N[time.Duration]
	}
	return c
}

// databasesMax bounds the databases: facts of a whole master are written into all databases, also those that this proxy does not use.
const databasesMax = 1024

// maxMasters bounds N: beyond the bound every lock costs more than further masters gain.
const maxMasters = 15

func (c *Config) validate(n int) error {
	switch {
	case n == 0:
		return errors.New("no masters")
	case n > maxMasters:
		return fmt.Errorf("%d masters: at most %d", n, maxMasters)
	case c.InstanceTimeout < 0 || c.DriftFactor < 0 || c.DriftFactor >= 1 || c.TTLMax < 0 || c.MasterDeadAfter < 0:
		return errors.New("negative timeouts, or a drift factor outside 0 to 1")
	case c.FirstDatabase < 0 || c.FirstDatabase >= c.Databases || c.Tended < 0 || c.Tended > c.Databases:
		return fmt.Errorf("databases %d, or %d of them, where there are %d", c.FirstDatabase, c.Tended, c.Databases)
	case c.QueueMax < 0 || c.Databases < 0 || c.Databases > databasesMax:
		return fmt.Errorf("negative limits, or more than %d databases", databasesMax)
	}
	return nil
}

// kept returns how long masters are told to keep the key of a lock.
func (c *Config) kept(ttl time.Duration) time.Duration {
	return rules.Kept(ttl, c.Grace, c.DriftFactor)
}

// shown is the inverse of kept.
func (c *Config) shown(remaining time.Duration) time.Duration {
	return rules.Shown(remaining, c.Grace, c.DriftFactor)
}

// Proxies of one deployment may have different settings. Each promises validity by its own settings, and watches the masters' clocks
// by the strictest settings of all, which stand in the marks on the masters.

// bounds returns the bounds on which the locks of a proxy with these settings rest.
func (c *Config) bounds() vouch.Bounds {
	return vouch.Bounds{Kept: c.kept(c.TTLMax), Grace: c.Grace, DriftFactor: c.DriftFactor, Patience: c.InstanceTimeout}
}

// keepTo makes the engine keep to the bounds of a mark, besides its present bounds. Bounds never become less strict again: a lock of a
// proxy that is gone may still be held.
func (e *Engine) keepTo(b vouch.Bounds) {
	was := e.bounds.Load()
	//mutant: a quarantine lasts as long as the locks of its proxy
	next := was.And(b)
	switch {
	case next == *was:
		return
	case !e.bounds.CompareAndSwap(was, &next): // another lane was faster
		e.keepTo(b)
		return
	case next.Grace == was.Grace && next.DriftFactor == was.DriftFactor:
		return
	}
	for _, m := range e.masters {
		m.watch.restrict(next.DriftFactor, tolerance(next.Grace))
	}
	e.cfg.Logger.Warn("another proxy has stricter settings: clocks are watched by them until all proxies are stopped and lockproxy init is run",
		"grace", next.Grace, "drift_factor", next.DriftFactor)
}

// A lock's key is kept for 2 × drift + grace longer than the lock is promised. The first drift is for clocks that run differently,
// the second for steps that are forgiven over time (vouch.Clock). The rest covers steps that may go unnoticed:
//
//	tolerance + 2 × uncertainty = (1/5 + 2 × 2/5) × (grace + clock floor)
//
// The first uncertainty is for steps that the batch which set the key cannot tell, the second for steps that the batch which does not
// find the key cannot tell. The rest is a reserve.

// Uncertainty is by how much a key may end too early, as far as one batch can tell, if the batch is to have a vote at once.
func Uncertainty(grace time.Duration) time.Duration { return (grace + rules.ClockFloor) * 2 / 5 }

func (e *Engine) uncertainty() time.Duration { return Uncertainty(e.bounds.Load().Grace) }

// tolerance is how far a master's clock may step, in either direction, before that counts as a jump.
func tolerance(grace time.Duration) time.Duration { return (grace + rules.ClockFloor) / 5 }
