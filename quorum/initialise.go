package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// Initialise marks all masters clean, whatever marks they have: no earlier lock counts any more. A lock that is held through any
// proxy of this deployment may be taken a second time.
//
// Initialise marks no master if any master does not answer, cannot be written to, as a replica, or is another master under a second
// address. For if the list of masters has changed, a proxy refuses each master that is marked for another list than its own. If some
// masters were marked for the new list, and the others still for the old list, perhaps no proxy would have a quorum.
func Initialise(ctx context.Context, cfg Config, ms []masters.Master) error {
	cfg = cfg.withDefaults()
	found := Inspect(ctx, cfg, ms)
	if err := fit(ctx, cfg, ms, found); err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return markClean(ctx, cfg, ms, found, func(marks) []any { return nil })
}

// markClean marks all masters clean, given the findings on them. If only returns a canary and a quarantine, a database is marked only
// while the database has these two.
func markClean(ctx context.Context, cfg Config, ms []masters.Master, found []Inspected, only func(marks) []any) error {
	least := time.Now().Add(time.Minute).UnixMicro() // later than any mark that a running proxy may write meanwhile
	// However long ctx has patience: once some masters are marked, the others should be. AutoInitialise would not begin again, because not
	// all are fresh any more, and after a change of the list perhaps no proxy has a quorum; see Initialise.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(cfg.Databases)*cfg.MasterDeadAfter)
	defer cancel()
	again := make([]masters.Master, len(ms))
	for i, m := range ms {
		again[i] = persistent{m}
	}
	return everywhere(ctx, cfg, again, func(i, db int, c masters.Conn) error {
		canary := found[i].nextCanary(db, nextEpochs(found, db, least), Members(ms, cfg.Deployment))
		canary.Bounds = vouch.Unbound
		args := append([]any{canary.String()}, only(found[i].marksIn(db))...)
		done, err := execute(c, luaInitialise.whole([]string{canaryKey, quarantineKey}, args...))
		if err == nil && done == int64(0) {
			err = errors.New("was marked by a proxy meanwhile")
		}
		if err == nil && canary.Durable {
			err = leaveWitness(c)
		}
		return err
	})
}

// A persistent master is dialled again if dialling failed, as on a busy machine. A command that was sent is not sent again: by then a
// proxy may have quarantined the master anew.
type persistent struct{ masters.Master }

const (
	persistentDials = 10
	persistentPause = 100 * time.Millisecond
)

func (p persistent) Dial(ctx context.Context, db int) (masters.Conn, error) {
	c, err := p.Master.Dial(ctx, db)
	for tries := 1; err != nil && ctx.Err() == nil && tries < persistentDials; tries++ {
		time.Sleep(persistentPause)
		c, err = p.Master.Dial(ctx, db)
	}
	return c, err
}

// markNew quarantines unmarked databases, as proxies do.
func markNew(ctx context.Context, cfg Config, ms []masters.Master, found []Inspected) error {
	least := time.Now().UnixMicro()
	return everywhere(ctx, cfg, ms, func(i, db int, c masters.Conn) error {
		if found[i].marksIn(db).canary != "" {
			return nil
		}
		canary := found[i].nextCanary(db, nextEpochs(found, db, least), Members(ms, cfg.Deployment))
		canary.Bounds = cfg.bounds()
		keys := []string{canaryKey, quarantineKey, rosterKey}
		_, err := execute(c, luaMark.whole(keys, "", canary.String(), quarantineText(vouch.New))) // or a proxy was faster
		return err
	})
}

// fit returns why masters cannot all be marked.
func fit(ctx context.Context, cfg Config, ms []masters.Master, found []Inspected) error {
	servers := make(map[string]string, len(found)) // addresses by run id
	for _, in := range found {
		if in.Err != nil {
			return fmt.Errorf("%s: %w", in.Addr, in.Err)
		}
		if in.Info.Role != "" && in.Info.Role != "master" {
			return fmt.Errorf("%s: is a %s, not a master", in.Addr, in.Info.Role)
		}
		if first, twice := servers[in.Info.RunID]; twice && in.Info.RunID != "" {
			return fmt.Errorf("%s: is the same server as %s", in.Addr, first)
		}
		servers[in.Info.RunID] = in.Addr
	}
	return everywhere(ctx, cfg, ms, func(_, _ int, c masters.Conn) error {
		_, err := execute(c, luaTrial.whole([]string{trialKey}))
		return err
	})
}

// everywhere calls f with a connection to each database of each master, by its place in ms, and joins the errors.
func everywhere(ctx context.Context, cfg Config, ms []masters.Master, f func(i, db int, c masters.Conn) error) error {
	errs := eachMaster(ctx, cfg, ms, f)
	for i, err := range errs {
		if err != nil {
			errs[i] = fmt.Errorf("%s: %s", ms[i].Addr(), masters.Describe(err))
		}
	}
	return errors.Join(errs...)
}

// eachMaster is everywhere, and returns the errors by master.
func eachMaster(ctx context.Context, cfg Config, ms []masters.Master, f func(i, db int, c masters.Conn) error) []error {
	errs := make([]error, len(ms))
	var all sync.WaitGroup
	for i := range ms {
		all.Go(func() {
			errs[i] = eachDatabase(ctx, cfg, ms[i], func(db int, c masters.Conn) error { return f(i, db, c) })
			if errs[i] != nil && ctx.Err() != nil {
				errs[i] = ctx.Err() // the connection says only that it was closed
			}
		})
	}
	all.Wait()
	return errs
}

// nextEpochs returns new epochs for all masters, by slot, each greater than any that was found.
func nextEpochs(found []Inspected, db int, least int64) []int64 {
	all := make([]int64, len(found))
	for _, in := range found {
		if db >= len(in.databases) {
			continue
		}
		all[in.slot] = max(all[in.slot], in.databases[db].epoch)
		for slot, epoch := range in.databases[db].roster {
			if slot < len(all) {
				all[slot] = max(all[slot], epoch)
			}
		}
	}
	for slot := range all {
		all[slot] = max(all[slot]+1, least)
	}
	return all
}

// nextCanary is the mark of a database in the epoch of its master. The mark has no bounds yet.
func (in *Inspected) nextCanary(db int, epochs []int64, members string) vouch.Canary {
	c := accountOf(&in.Info, in.Bounds.Patience)
	if was, ok := vouch.ParseCanary(in.marksIn(db).canary); ok && was.Process == in.Info.RunID {
		c.Moved = was.Moved || was.Place != c.Place
	}
	c.DB, c.Slot, c.Epoch, c.Members = db, in.slot, epochs[in.slot], members
	c.Durable = c.Durable && !c.Rewriting && !c.Moved
	return c
}

func execute(c masters.Conn, args []any) (reply any, err error) {
	call := &masters.Call{Args: args}
	if err := c.Exec([]*masters.Call{call}); err != nil {
		return nil, err
	}
	return call.Reply, call.Err
}

// looksMax bounds how often masters are looked at until two looks find the same.
const looksMax = 5

// AutoInitialise marks masters clean if every master is fresh. Do so only for a new deployment: masters that all lost their data at
// once look the same, and locks that were held then can be taken a second time. AutoInitialise returns false if any master is not
// fresh, and an error if the freshness is unknown, or another proxy has marked a master meanwhile.
//
// If two looks, one after the other, find the same marks on all masters, all masters were fresh at one moment: each mark is made only
// once. A master is then marked clean only if the master still has its mark. So the master has been in quarantine ever since, and
// nobody has counted on its votes, however long this process was held up, and whatever others have initialised and locked meanwhile.
func AutoInitialise(ctx context.Context, cfg Config, ms []masters.Master) (bool, error) {
	cfg = cfg.withDefaults()
	var before []Inspected
	for range looksMax {
		found := Inspect(ctx, cfg, ms)
		if slices.ContainsFunc(found, func(in Inspected) bool { return in.Err == nil && !in.Fresh() }) {
			return false, nil
		}
		for _, in := range found {
			if in.Err != nil {
				return false, fmt.Errorf("%s: %w", in.Addr, in.Err)
			}
		}
		if err := fit(ctx, cfg, ms, found); err != nil {
			return false, err
		}
		//mutant: init: auto looks once
		if slices.EqualFunc(before, found, isMarkedAlike) {
			err := markClean(ctx, cfg, ms, found, func(m marks) []any { return []any{m.canary, m.quarantine} })
			return err == nil, err
		}
		if err := markNew(ctx, cfg, ms, found); err != nil {
			return false, err
		}
		before = found
	}
	return false, errors.New("masters are marked anew all the time")
}

// isMarkedAlike says that two looks at a master found the same marks in all databases.
func isMarkedAlike(a, b Inspected) bool {
	return slices.EqualFunc(a.databases, b.databases, func(a, b inspectedDatabase) bool {
		return a.marks.canary == b.marks.canary && a.marks.quarantine == b.marks.quarantine && a.marks.canary != ""
	})
}

// eachDatabase calls f with a connection to each database of the master: always the same connection, because on a busy machine a new
// connection for each database takes long.
func eachDatabase(ctx context.Context, cfg Config, m masters.Master, f func(int, masters.Conn) error) error {
	return masters.With(ctx, m, func(c masters.Conn) (err error) {
		for db := range cfg.Databases {
			if db > 0 {
				_, err = execute(c, []any{"SELECT", int64(db)})
			}
			if err != nil && db > 0 && strings.HasPrefix(err.Error(), "ERR") { // the master has fewer databases
				return nil
			}
			if err == nil {
				err = f(db, c)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
