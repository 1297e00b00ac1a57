package quorum

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"

	"lockproxy/quorum/masters"
)

// A scriptKiller is a master that can end the script that it runs, without being free for anything else.
type scriptKiller interface {
	KillScript(ctx context.Context) error
}

// killScripts is Engine.KillScripts, and waits for the masters.
func killScripts(e *Engine) error {
	ctx, cancel := context.WithTimeout(e.ctx, 2*e.cfg.MasterDeadAfter) // a master takes it only some seconds into a script
	defer cancel()
	errs := make([]error, len(e.masters))
	var all sync.WaitGroup
	for i, m := range e.masters {
		all.Go(func() {
			errs[i] = errors.New("cannot be told to end a script")
			if k, ok := m.Master.(scriptKiller); ok {
				errs[i] = k.KillScript(ctx)
			}
		})
	}
	all.Wait()
	return mergeKills(e.masters, errs)
}

// mergeKills returns the answer that matters most: that a script was ended, else that one cannot be, else that there is none.
func mergeKills(ms []*master, errs []error) error {
	failure := &NoQuorum{Masters: len(errs)}
	var answer error
	for i, err := range errs {
		switch {
		case err == nil:
			return nil
		case strings.HasPrefix(err.Error(), "UNKILLABLE"):
			answer = err
		case strings.HasPrefix(err.Error(), "NOTBUSY"):
			answer = cmp.Or(answer, err)
		default:
			failure.Causes = append(failure.Causes, Cause{ms[i].Addr(), masters.Describe(err)})
		}
	}
	return cmp.Or(answer, error(failure))
}
