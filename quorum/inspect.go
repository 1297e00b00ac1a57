package quorum

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// An Inspected is what one master carries, in all databases together.
type Inspected struct {
	Addr    string
	Err     error // it cannot be asked
	Info    masters.Info
	Keys    int64    // without our own
	Barred  []Barred // the databases that are not clean
	Marked  bool     // it carries a canary of this deployment, and was not quarantined for being new
	Foreign bool     // it carries a canary of another deployment
	Unread  bool     // it carries a canary of another version of lockproxy, which this one does not read; it is Foreign, too
	// Misplaced says that this server was marked in another place of the list; see isMisplaced.
	Misplaced bool
	// Replaced says that the proxies refuse it: under its address they have met another server since.
	Replaced bool
	// Forgets is why a proxy will quarantine it as soon as one comes by, though it bears a mark; "" if none will.
	Forgets string
	// Moved says that the place of its files was changed while it ran: its next restart costs it a quarantine.
	Moved bool
	// OtherNames is what a proxy that runs has said of the names of locks, if that differs from Config.Names.
	OtherNames string
	InUse      bool // some master is Marked: the deployment is not new, even where this one looks so
	// Bounds are those that a proxy with these settings would keep to: its own, and what all masters' marks tell.
	Bounds vouch.Bounds
	// Databases is how many it has of Config.Databases.
	Databases int

	slot      int
	first     int  // the database in which clients begin
	named     bool // the deployment has a name
	uncounted bool // it does not tell how many keys it has
	remnant   bool // it bears keys of ours in a database where it has no canary
	databases []inspectedDatabase
}

type inspectedDatabase struct {
	marks   marks
	epoch   int64
	stands  bool // the server is the one that its canary names, and is not in quarantine
	roster  []int64
	horizon time.Duration // below 0 if it is not told
}

// A Barred is a database of one master in which its grants do not count.
type Barred struct {
	DB      int
	Reason  string        // "" if it has no canary: the first proxy that comes by quarantines it
	Since   time.Duration // how long ago it was quarantined
	Left    time.Duration // how long that lasts at most
	Unknown bool          // too few other masters remember: it lasts as long as any lock can
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
	inquiry := masters.NewInquiry()
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
	in.Keys += max(all-own, 0) // one of ours may have come between the two
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
		stands: known && found.quarantine == "" && canary.Process == orDash(in.Info.RunID),
	}
	if left, ok := horizon.Reply.(int64); ok {
		d.horizon = time.Duration(max(left, 0)) * time.Millisecond // -2 is that there is none
	}
	in.databases = append(in.databases, d)
	in.Databases = len(in.databases)
	return nil
}

// compare finds out what a proxy will make of the mark, given what the server tells of itself now.
func (in *Inspected) compare(is *vouch.Canary) {
	now := *is
	now.Process, now.Lineage, now.Past = orDash(in.Info.RunID), orDash(in.Info.Lineage), pastOf(&in.Info)
	now.Durable, now.MayBeDurable, now.Incomplete = in.Info.Durable(in.Bounds.Patience), in.Info.MayBeDurable(), in.Info.LoadErrors > 0
	now.FirstFile, now.Rewriting = in.Info.Files.IsFirst(), in.Info.Files.Rewriting()
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

// replaced says that the proxies refuse the master: other masters know a later epoch of it than its own. It is not in quarantine,
// and is the server that its canary names, so it gets a new epoch only after some time; see isBack.
func replaced(found []Inspected, i int) bool {
	in := &found[i]
	for db, d := range in.databases {
		if d.stands && in.Err == nil && nextEpochs(found, db, 0)[in.slot] > d.epoch+1 {
			return true
		}
	}
	return false
}

// foresee finds out how long the quarantines of one master last at most, from what the other masters remember, as the proxies do.
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
		if b.Left = max(q.Until, 0); !b.Unknown { // a proxy that has heard them allows for drift since, and counts from when its monitor looked
			b.Left += monitorEvery + time.Duration(2*cfg.DriftFactor*float64(max(b.Since, 0)))
		}
	}
}

func (in *Inspected) barredIn(db int) bool {
	return slices.ContainsFunc(in.Barred, func(b Barred) bool { return b.DB == db })
}

// Fresh says that the master holds nothing, and nobody has ever marked it clean. One that bears some of our keys, and no canary, has
// lost that: it did not load all of its append-only file.
func (in *Inspected) Fresh() bool {
	return in.Err == nil && in.Keys == 0 && !in.uncounted && !in.remnant && !in.Marked && !in.Foreign
}

// Clean says that the master's grants count in the database in which clients begin.
func (in *Inspected) Clean() bool { return in.CleanIn(in.first) }

// CleanIn says that they count in this database. Where the master has no mark there, they count again some time after a proxy first
// uses the database.
func (in *Inspected) CleanIn(db int) bool {
	return in.Err == nil && !in.Foreign && !in.Misplaced && !in.Replaced && in.Forgets == "" && !in.barredIn(db)
}
