package quorum

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// Keys of ours on every master, in every database that carries locks. Clients cannot touch them.
const (
	canaryKey     = "lockproxy:canary"     // a vouch.Canary: as long as it is unchanged, nothing was forgotten
	quarantineKey = "lockproxy:quarantine" // there while the master's grants do not count: the beginning, and the reason
	horizonKey    = "lockproxy:horizon"    // its remaining TTL is never less than that of any lock granted there
	endKey        = horizonKey + ":end"    // when the horizon is to be over; see horizon_end.go
	rosterKey     = "lockproxy:roster"     // the epochs of all masters, as far as this master was told
	fenceKey      = "lockproxy:fence"      // the largest fence seen here, and the epoch in which none was missed; see fence.go
	witnessKey    = "lockproxy:witness"    // there if a durable master has loaded all of its file; see witness.go
	witnessHash   = "lockproxy:witness:hash"
	trialKey      = "lockproxy:trial" // set and deleted at once, to see whether keys can be written
	namesKey      = "lockproxy:names" // in database 0: the names of locks, as the latest proxy told them; see names.go
	recordPrefix  = fenceKey + ":"    // with a resource after it: its newest fence, and the fence's epoch
)

// Reserved says that name is one of the keys that lockproxy keeps for itself.
func Reserved(name string) bool {
	if !strings.HasPrefix(name, "lockproxy:") {
		return false
	}
	switch name {
	case canaryKey, quarantineKey, horizonKey, endKey, rosterKey, fenceKey, witnessKey, witnessHash, trialKey, namesKey:
		return true
	}
	return strings.HasPrefix(name, recordPrefix)
}

// marks prove a master's memory; "" for each mark that is not there.
type marks struct{ canary, roster, quarantine string }

var marksArgs = []any{"MGET", canaryKey, rosterKey, quarantineKey}

var errNoMarks = errors.New("it answers as no Redis does")

// parseMarks reads the reply to marksArgs, or returns why no marks can be read.
func parseMarks(c *masters.Call) (marks, error) {
	list, ok := c.Reply.([]any)
	if !ok || !c.Answered || len(list) != 3 {
		return marks{}, cmp.Or(c.Err, errNoMarks)
	}
	var m marks
	m.canary, _ = list[0].(string)
	m.roster, _ = list[1].(string)
	m.quarantine, _ = list[2].(string)
	return m, nil
}

// Members names a deployment in the canaries of its masters, by its name or by the masters.
func Members(ms []masters.Master, deployment string) string {
	h := fnv.New64a()
	names := []string{deployment}
	if deployment == "" {
		names = names[:0]
		for _, m := range ms {
			names = append(names, m.Addr())
		}
		slices.Sort(names)
	}
	_, _ = h.Write([]byte(strings.Join(names, "\n"))) // it never fails
	return fmt.Sprintf("%d-%016x", len(ms), h.Sum64())
}

// quarantineText is the text of a quarantine key.
func quarantineText(reason string) string {
	return strconv.FormatInt(time.Now().UnixMilli(), 10) + " " + reason
}

// reasonOf returns the reason in a quarantine key's text.
func reasonOf(text string) string {
	_, reason, _ := strings.Cut(text, " ")
	return reason
}

// quarantinedAt returns when a quarantine key's text was written, by the clock of the proxy that wrote it.
func quarantinedAt(text string) time.Time {
	at, _, _ := strings.Cut(text, " ")
	ms, _ := strconv.ParseInt(at, 10, 64)
	return time.UnixMilli(ms)
}

// canaryNow is the mark that a master would get now, in an epoch later than known. b are the bounds in the master's present mark.
func (a *assessor) canaryNow(k *connection, known int64, b vouch.Bounds) vouch.Canary {
	own, info := *a.engine.bounds.Load(), &k.info
	return vouch.Canary{
		DB: a.db, Slot: a.master.slot, Process: orDash(info.RunID), Lineage: orDash(info.Lineage),
		Members: a.engine.members, Bounds: own,
		Durable: info.Durable(max(own.Patience, b.Patience)), MayBeDurable: info.MayBeDurable(), Incomplete: info.LoadErrors > 0,
		Past: pastOf(info), FirstFile: info.Files.IsFirst(), Rewriting: info.Files.Rewriting(), Watched: k.durable,
		Epoch: a.nextEpoch(known, info.RunID),
	}
}

// isDurable says that a master may be marked as durable, by its statements about itself.
func (a *assessor) isDurable(info *masters.Info) bool {
	return info.Durable(a.engine.bounds.Load().Patience)
}

// pastOf returns a server's statements about its life so far.
func pastOf(info *masters.Info) vouch.Past {
	return vouch.Past{
		Evicted: info.Evicted, Copies: info.Files.Copies(), Databases: info.Files.Databases, Place: info.Files.Place(),
	}
}
