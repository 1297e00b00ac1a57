package quorum

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// When a connection is made, and whenever the proof of a batch leaves doubt, the master is assessed: whether it may have forgotten
// locks, by its marks and by what it says of itself. If so it is marked, and quarantined (rules 6 and 9).

// inquire asks the master about itself, and refuses one that cannot vote.
func (l *lane) inquire(k *link) error {
	inquiry := masters.NewInquiry()
	if err := k.conn.Exec(inquiry.Calls()); err != nil {
		return err
	}
	k.info = inquiry.Info()
	if k.info.Role != "" && k.info.Role != "master" {
		return fmt.Errorf("is a %s, not a master", k.info.Role)
	}
	if other := l.engine.servers.claim(k, l.master, k.info.RunID); other != "" {
		return errors.New("is the same server as " + other)
	}
	return nil
}

// markTries bounds how often proxies may be faster than this one in marking a master.
const markTries = 5

// assess finds out whether the master may have forgotten locks, and quarantines it if so.
func (l *lane) assess(k *link) error {
	charges, charge := l.master.watch.charged()
	forgot := l.suspicion(k)
	if charges != l.charges {
		forgot = charge
	}
	for range markTries {
		read := &masters.Call{Args: marksArgs}
		if err := k.conn.Exec([]*masters.Call{read}); err != nil {
			return err
		}
		found, ok := parseMarks(read)
		if !ok {
			return fmt.Errorf("does not let its canary be read: %w", read.Err)
		}
		is, ok := vouch.ParseCanary(found.canary)
		if ok && is.DB == l.db && is.Members == l.engine.members {
			if l.isMisplaced(k, &is) {
				return errors.New("stands in another place of the list of a proxy that has marked it: list the masters in the same order in every proxy, or run lockproxy init")
			}
			l.roster.learn(found.roster) // else it may be another database's, or deployment's
		}
		early := !l.heardOthers() // before what they have told is looked at
		known := l.latestEpoch().Load()
		now := l.canaryNow(&k.info, max(known, is.Epoch))
		now.Early = early
		j := vouch.Judge(found.canary, now, known)
		switch {
		case forgot != "":
		case l.wentBack(k, found, j.Next.Epoch):
			forgot = vouch.Older
		case l.isBack(j.Next.Epoch):
			forgot = cmp.Or(reasonOf(found.quarantine), "another server answered under its address meanwhile")
		}
		if forgot != "" && (j.Verdict == vouch.Same || j.Verdict == vouch.Renew) {
			j.Verdict, j.Reason, j.Next.Epoch = vouch.Forgot, forgot, now.Epoch
		}
		if j.Verdict == vouch.Foreign {
			return errors.New(j.Reason)
		}
		l.engine.keepTo(j.Next.Bounds)
		if j.Verdict == vouch.Same {
			l.charges, k.early = charges, early && j.Next.Process != now.Process
			return l.adopt(k, found, j.Next.Epoch)
		}
		done, err := l.mark(k, found.canary, j, forgot)
		if err != nil {
			return err
		}
		if done { // else another proxy was faster: perhaps with something that has nothing to do with this
			forgot = ""
		}
	}
	return errors.New("has a canary that changes all the time: does another deployment use it?")
}

// isMisplaced says that this very server was marked in another place of a list. Where a deployment has a name, the epochs of its
// masters go by their places, and proxies that do not agree on these would not hear of each other's.
func (l *lane) isMisplaced(k *link, is *vouch.Canary) bool {
	return l.engine.cfg.Deployment != "" && isMarkedElsewhere(is, l.master.slot, &k.info)
}

func isMarkedElsewhere(is *vouch.Canary, slot int, info *masters.Info) bool {
	return is.Slot != slot && is.Slot != vouch.Unplaced && is.Process == orDash(info.RunID)
}

// suspicion returns why a master may have forgotten locks though its canary is in place.
func (l *lane) suspicion(k *link) string {
	switch {
	case k.info.RunID == "" && l.last != nil:
		return "its connection broke, and it may have restarted: it does not let us ask (INFO)"
	case l.evicted.more(&k.info):
		return "it evicted keys"
	}
	return ""
}

// wentBack says that this server, as which it is known by its connection or its run id, had a later epoch before: its
// data is of another time, as after a second SWAPDB. Or it was clean in this very epoch, and is in quarantine: data that
// went away when it was quarantined has come back. Of any other server that is behind nothing is known, and it has no
// vote.
func (l *lane) wentBack(k *link, found marks, epoch int64) bool {
	was := k
	if k.epoch == 0 && l.last != nil && k.info.RunID != "" && l.last.info.RunID == k.info.RunID {
		was = l.last
	}
	returned := found.quarantine != "" && was.marks.quarantine == "" && was.marks.canary == found.canary
	return was.epoch > epoch || returned
}

// isBack says that this server is refused because another was known under its address since, and that the address has led to
// it for so long that it is to be taken as one that has lost its data, as where a failover was called off. What the other
// has granted is void then. At once that would be too early: where the address leads some proxies to one server and some to the
// other, they would void each other's votes without a pause.
func (l *lane) isBack(epoch int64) bool {
	return l.latestEpoch().Load() > epoch && l.refused != 0 && l.engine.now()-l.refused >= l.engine.cfg.backAfter()
}

// backAfter is so long that proxies notice meanwhile that a server is gone.
func (c *Config) backAfter() time.Duration { return 2 * c.MasterDeadAfter }

// evictions is how many keys a server has evicted, when last asked.
type evictions struct {
	runID string
	keys  int64
}

// A marked is what every database of a master has been marked for, by the lane of database 0.
type marked struct {
	charges int
	evicted evictions
}

// more says that keys may have been evicted since. Where the number is less it was reset, and says nothing of what came before.
func (e *evictions) more(now *masters.Info) bool {
	if e.runID != now.RunID {
		return now.Evicts() && now.Evicted > 0
	}
	return now.Evicted != e.keys
}

// mark writes the next canary, and the quarantine that goes with it. What concerns the whole server is written into its
// other databases, too: nobody may have a lane for them now. forgot is why they may all have forgotten, "" if nothing but the mark
// says so. It returns false if another proxy was faster.
func (l *lane) mark(k *link, seen string, j vouch.Judgement, forgot string) (done bool, err error) {
	text := ""
	if j.Verdict == vouch.Forgot {
		text = sentenceText(j.Reason)
	}
	keys := []string{canaryKey, quarantineKey}
	calls := []*masters.Call{{Args: luaMark.whole(append(keys, rosterKey), seen, j.Next.String(), text)}}
	if flushed := seen == ""; j.Verdict == vouch.Forgot && (flushed || l.db == 0) {
		epoch := j.Next.Epoch
		switch {
		case flushed && l.db == 0 && forgot != "": // the others were not flushed, but have this to answer
			text = sentenceText(forgot)
		case flushed: // the others were not; but what was swapped for it must not come back
			epoch = 0
		}
		args := luaSentence.whole(keys, epoch, text, int64(l.db), int64(databasesMax))
		calls = append(calls, &masters.Call{Args: args})
	}
	if err := k.conn.Exec(calls); err != nil {
		return false, err
	}
	return calls[0].Reply == int64(1), calls[0].Err
}

// adopt takes what the assessment found.
func (l *lane) adopt(k *link, found marks, epoch int64) error {
	l.evicted = evictions{k.info.RunID, k.info.Evicted}
	if l.db == 0 {
		is := l.marked
		l.master.marked.Store(&is)
	}
	if l.latestEpoch().Load() > epoch {
		if l.refused == 0 {
			l.refused = l.engine.now()
		}
		return fmt.Errorf("is refused: was replaced: another server answers, or answered, under its address; lead it to that one, or leave it: after %v it is quarantined, like one without its data",
			l.engine.cfg.backAfter())
	}
	l.refused = 0
	if k.info.Evicts() {
		return errors.New("may evict locks: set its maxmemory-policy to noeviction")
	}
	known := l.latestEpoch().Load()
	raise(l.latestEpoch(), epoch)
	if known < epoch && found.quarantine == "" { // of a quarantine they are told while it lasts, or when it ends
		l.tellOthers(nil) // also when it has just started: who saw the epoch begin may be gone
	}
	k.marks, k.epoch, k.horizon = found, epoch, 0
	l.setQuarantine(found.quarantine, found.canary)
	return nil
}

// reassess does again what the handshake did, on the same connection.
func (l *lane) reassess(k *link) error {
	if err := l.inquire(k); err != nil {
		return err
	}
	if err := l.assess(k); err != nil {
		return err
	}
	l.master.describe(&k.info)
	return nil
}
