package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/quorum/masters"
)

// A keeper is a master. If its settings have the master write all locks to disk before an answer, the master votes at once after a
// restart, provided that its files were loaded in full. check and init name the obstacles beforehand.
type keeper struct {
	addr     string
	info     masters.Info
	patience time.Duration // the longest wait of a proxy for an answer
	loading  masters.Loading
}

// askAll asks all keepers for the commands that loading their files may leave out. A keeper without an answer counts as leaving out none.
func askAll(cfg *config.Config, ms []*masters.Redis, keepers []*keeper) {
	ctx, cancel := context.WithTimeout(context.Background(), max(cfg.DialTimeout, cfg.MasterDeadAfter))
	defer cancel()
	var asked sync.WaitGroup
	for i, k := range keepers {
		if k.info.KeepsAll() {
			asked.Go(func() { k.loading, _ = ms[i].ProbeLoading(ctx, &k.info) })
		}
	}
	asked.Wait()
}

// askLoading is askAll for masters that were probed.
func askLoading(cfg *config.Config, ms []*masters.Redis, probes []probe) {
	for i := range probes {
		p := &probes[i]
		p.keeper = keeper{addr: p.addr, info: p.info, patience: max(cfg.InstanceTimeout, p.marks.Bounds.Patience)}
	}
	askAll(cfg, ms, keepersOf(probes))
}

func keepersOf(probes []probe) []*keeper {
	all := make([]*keeper, len(probes))
	for i := range probes {
		all[i] = &probes[i].keeper
	}
	return all
}

// forgets says why the keeper forgets locks at a restart; "" if the keeper forgets none.
func (k *keeper) forgets() string { return k.skips() + k.answersFirst() + k.diverged() }

// lacksShown is how many commands are named.
const lacksShown = 5

func (k *keeper) skips() string {
	if len(k.loading.Lacks) == 0 {
		return ""
	}
	lacks, more := k.loading.Lacks, ""
	if n := len(lacks) - lacksShown; n > 0 {
		lacks, more = lacks[:lacksShown], fmt.Sprintf(" and %d more", n)
	}
	return "The default user may not run " + strings.Join(lacks, ", ") + more
}

func (k *keeper) answersFirst() string {
	if !k.info.KeepsAll() || !k.info.AnswersFirst(k.patience) {
		return ""
	}
	return fmt.Sprintf("lua-time-limit is %s ms, and io-threads %s", k.info.ScriptLimit, k.info.IOThreads)
}

func (k *keeper) diverged() string {
	if !k.info.KeepsAll() || !k.info.Diverged() {
		return ""
	}
	return fmt.Sprintf("%d commands in the append-only file were left out when it was loaded", k.info.LoadErrors)
}

func (k *keeper) untold() string {
	if !k.loading.Untold {
		return ""
	}
	return "Nothing tells what the default user may do"
}

func (k *keeper) cut() string {
	if !k.loading.Cut {
		return ""
	}
	return "aof-load-truncated is yes"
}

const allForDefault = "`user default off ~* &* +@all` in its ACL file or configuration, and the same with ACL SETUSER now"

// shortfalls are the obstacles to trusting a keeper after a restart, each with its costs.
var shortfalls = []struct {
	of    func(*keeper) string // "" if the keeper is free of the shortfall
	costs string
}{
	{(*keeper).skips, "this version leaves such commands out when it loads its append-only file. So a restart forgets locks, and the master is " +
		"quarantined: for ttl_max, if most masters restart. Nobody need log in as the default user, but it needs all permissions: set " + allForDefault},
	{(*keeper).diverged, "the file is not what the master has, so that every restart quarantines it. Set the default user's permissions, or databases, " +
		"as they were, and run BGREWRITEAOF there"},
	{(*keeper).untold, "if that user may not do everything, a restart forgets locks, and the master is quarantined. " +
		"Permit ACL DRYRUN (+acl|dryrun) for check to find out, or set " + allForDefault},
	{(*keeper).answersFirst, "this version then answers before it writes to disk, so that every restart quarantines it. Set " +
		"lua-time-limit to the longest instance_timeout or more, and io-threads 1"},
	{(*keeper).cut, "if the disk loses the end of the append-only file, the server starts without that end, nothing tells, and locks " +
		"can be granted twice. Set aof-load-truncated no. A server that then does not start, start without its data"},
}

// writeShortfalls writes each shortfall once, with the masters that have the shortfall.
func writeShortfalls(w io.Writer, keepers []*keeper) {
	for _, s := range shortfalls {
		var order []string
		at := make(map[string][]string) // shortfall: addresses of its masters
		for _, k := range keepers {
			text := s.of(k)
			if text == "" {
				continue
			}
			if at[text] == nil {
				order = append(order, text)
			}
			at[text] = append(at[text], k.addr)
		}
		for _, text := range order {
			fmt.Fprintf(w, "\n%s at %s: %s.\n", text, strings.Join(at[text], ", "), s.costs)
		}
	}
}
