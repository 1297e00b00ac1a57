package quorum

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// An Inspected is the state of one master: its marks in all databases together, and its account of itself.
type Inspected struct {
	Addr    string
	Err     error // why the master cannot be asked; nil if it can
	Info    masters.Info
	Keys    int64    // the number of keys, without our own
	Barred  []Barred // the databases that are not clean
	Marked  bool     // has a canary of this deployment, and was not quarantined for being new
	Foreign bool     // has a canary of another deployment
	Unread  bool     // has a canary of another version of lockproxy, which this version does not read; is Foreign, too
	// Misplaced says that this server was marked in another place of the list; see isMisplaced.
	Misplaced bool
	// Replaced says that the proxies refuse the server: they have met another server under the same address since.
	Replaced bool
	// Forgets is why the next proxy will quarantine the master despite its mark; "" if no proxy will.
	Forgets string
	// Moved says that the place of the master's files was changed while the master ran: the next restart costs a quarantine.
	Moved bool
	// OtherNames is a running proxy's rule for the names of locks, if the rule differs from Config.Names.
	OtherNames string
	InUse      bool // some master is Marked: the deployment is not new, even if this master looks new
	// Bounds are the bounds of a proxy with these settings: its own, and the bounds in all masters' marks.
	Bounds vouch.Bounds
	// Databases is the number of databases of Config.Databases that the master has.
	Databases int

	slot      int
	first     int  // the database in which clients begin
	named     bool // the deployment has a name
	uncounted bool // the master does not tell its number of keys
	remnant   bool // the master has keys of ours in a database without a canary
	databases []inspectedDatabase
}

type inspectedDatabase struct {
	marks   marks
	epoch   int64
	stands  bool // the canary names this very server, which is not in quarantine
	roster  []int64
	horizon time.Duration // below 0 if the master does not tell
}

// A Barred is a database of one master in which its grants do not count.
type Barred struct {
	DB      int
	Reason  string        // "" without a canary: the first proxy to come quarantines the database
	Since   time.Duration // the time since the quarantine began
	Left    time.Duration // the longest remaining time of the quarantine
	Unknown bool          // too few other masters remember: the quarantine lasts as long as the longest lock
}

// Inspect looks at the marks on all masters, and changes nothing.
func Inspect(ctx context.Context, cfg Config, ms []masters.Master) []Inspected {
	cfg = cfg.withDefaults()
	found := make([]Inspected, len(ms))
	bounds := cfg.bounds()
	for i, slot := range slots(ms, cfg.Deployment) {
		found[i] = Inspected{Addr: ms[i].Addr(), slot: slot, first: cfg.FirstDatabase, named: cfg.Deployment != "", Bounds: bounds}
	}
	errs := eachMaster(ctx, cfg, ms, func(i, db int, c masters.Conn) error {
		return found[i].look(db, c, &cfg, Members(ms, cfg.Deployment))
	})
	for _, in := range found {
		bounds = bounds.And(in.Bounds)
	}
	used := slices.ContainsFunc(found, func(in Inspected) bool { return in.Marked })
	for i := range found {
		in := &found[i]
		in.Err, in.Bounds, in.InUse = errs[i], bounds, used
		foresee(found, i, &cfg)
		in.Replaced = replaced(found, i)
	}
	return found
}

// look reads the marks in one database.
func (in *Inspected) look(db int, c masters.Conn, cfg *Config, members string) error {
	inquiry := &masters.Inquiry{}
	read := &masters.Call{Args: marksArgs}
	size := &masters.Call{Args: []any{"DBSIZE"}}
	ours := &masters.Call{Args: []any{"EXISTS", canaryKey, quarantineKey, rosterKey, horizonKey, endKey, fenceKey, namesKey, witnessKey, witnessHash}}
	rest := &masters.Call{Args: []any{"EXISTS", rosterKey, horizonKey, endKey, fenceKey, witnessKey, witnessHash}}
	horizon := &masters.Call{Args: []any{"PTTL", horizonKey}}
	names := &masters.Call{Args: []any{"GET", namesKey}}
	if err := c.Exec(append(inquiry.Calls(), read, size, ours, rest, horizon, names)); err != nil {
		return err
	}
	in.Info = inquiry.Info()
	if in.Info.Cluster {
		return errCluster
	}
	found, err := parseMarks(read)
	if err != nil {
		return fmt.Errorf("its canary cannot be read: %w", err)
	}
	in.uncounted = in.uncounted || size.Err != nil || ours.Err != nil
	all, _ := size.Reply.(int64)
	own, _ := ours.Reply.(int64)
	in.Keys += max(all-own, 0) // a key of ours may have come between the two commands
	left, _ := rest.Reply.(int64)
	in.remnant = in.remnant || found.canary == "" && left > 0
	if db == 0 {
		in.OtherNames = cfg.Names.differ(names.Reply)
	}
	canary, known := vouch.ParseCanary(found.canary)
	if known && canary.Members == members {
		in.Bounds = in.Bounds.And(canary.Bounds)
		in.Misplaced = in.Misplaced || in.named && isMarkedElsewhere(&canary, in.slot, &in.Info)
	}
	if db == in.first && known && canary.Members == members && found.quarantine == "" {
		in.compare(&canary)
	}
	in.Foreign = in.Foreign || found.canary != "" && (!known || canary.Members != members)
	in.Unread = in.Unread || vouch.IsUnread(found.canary)
	reason := reasonOf(found.quarantine)
	in.Marked = in.Marked || known && reason != vouch.New
	if found.canary == "" || found.quarantine != "" {
		in.Barred = append(in.Barred, Barred{
			DB: db, Reason: reason, Since: time.Since(quarantinedAt(found.quarantine)),
		})
	}
	d := inspectedDatabase{
		marks: found,
		epoch: canary.Epoch, roster: parseRoster(found.roster), horizon: -1,
		stands: known && found.quarantine == "" && canary.Process == cmp.Or(in.Info.RunID, "-"),
	}
	if left, ok := horizon.Reply.(int64); ok {
		d.horizon = time.Duration(max(left, 0)) * time.Millisecond // -2 is an absent horizon
	}
	in.databases = append(in.databases, d)
	in.Databases = len(in.databases)
	return nil
}

// compare assesses the mark as a proxy will, given the server's present account of itself.
func (in *Inspected) compare(is *vouch.Canary) {
	now := accountOf(&in.Info, in.Bounds.Patience)
	now.DB, now.Slot, now.Epoch, now.Members, now.Bounds = is.DB, is.Slot, is.Epoch, is.Members, is.Bounds
	j := vouch.Assess(is.String(), now, is.Epoch)
	if j.Finding == vouch.Forgot {
		in.Forgets = j.Reason
	}
	in.Moved = j.Next.Moved
}

// marksIn returns the marks in a database, if the master has it.
func (in *Inspected) marksIn(db int) marks {
	if db < len(in.databases) {
		return in.databases[db].marks
	}
	return marks{}
}

// replaced says that the proxies refuse the master, because other masters know a later epoch of the master than its own. The
// master is not in quarantine, and its canary names this very server. So the master gets a new epoch only after some time; see
// isBack.
func replaced(found []Inspected, i int) bool {
	in := &found[i]
	for db, d := range in.databases {
		if d.stands && in.Err == nil && nextEpochs(found, db, 0)[in.slot] > d.epoch+1 {
			return true
		}
	}
	return false
}

// foresee computes the longest remaining time of one master's quarantines from the other masters' horizons, as the proxies do.
func foresee(found []Inspected, i int, cfg *Config) {
	for j := range found[i].Barred {
		b := &found[i].Barred[j]
		q := vouch.NewQuarantine(b.Reason, -max(b.Since, 0), found[i].Bounds.Kept, cfg.DriftFactor)
		var said []vouch.Report
		for o := range found {
			if o != i && b.DB < len(found[o].databases) && found[o].databases[b.DB].horizon >= 0 {
				said = append(said, vouch.Report{Horizon: found[o].databases[b.DB].horizon, Clean: !found[o].barredIn(b.DB)})
			}
		}
		b.Unknown = !q.Hear(said, len(found), 0, cfg.DriftFactor)
		if b.Left = max(q.Until, 0); !b.Unknown { // a proxy that has heard the horizons allows for drift since, and counts from the look of its monitor
			b.Left += monitorEvery + time.Duration(2*cfg.DriftFactor*float64(max(b.Since, 0)))
		}
	}
}

func (in *Inspected) barredIn(db int) bool {
	return slices.ContainsFunc(in.Barred, func(b Barred) bool { return b.DB == db })
}

// Fresh says that the master holds no keys, and nobody has ever marked the master clean. A master with some of our keys, but
// without a canary, has lost its canary: it did not load all of its append-only file.
func (in *Inspected) Fresh() bool {
	return in.Err == nil && in.Keys == 0 && !in.uncounted && !in.remnant && !in.Marked && !in.Foreign
}

// Clean says that the master's grants count in the database in which clients begin.
func (in *Inspected) Clean() bool { return in.CleanIn(in.first) }

// CleanIn says that the master's grants count in this database. In a database without a mark, grants count some time after a
// proxy first uses the database.
func (in *Inspected) CleanIn(db int) bool {
	return in.Err == nil && !in.Foreign && !in.Misplaced && !in.Replaced && in.Forgets == "" && !in.barredIn(db)
}
