package quorum

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// A master is assessed when a connection to it is made, and whenever the proof of a batch leaves doubt. The question is whether the
// master may have forgotten locks. The answer is in its marks, and in its statements about itself. A master that may have forgotten
// locks gets a new mark and a quarantine (rules 6, 9).

// An assessor finds out whether a lane's master may vote in the lane's database. An assessor belongs to the lane's loop. Facts that
// one connection has shown stand in the connection.
type assessor struct {
	target
	examiner
	clock    *laneClock
	horizon  *horizon
	epochs   *epochs
	recovery *recovery
	witness  witness

	connection *connection // the connection over which the master was found good last
	marked     int         // how many confirmed jumps of the clock are in the database's mark
	refused    instant     // since when the server is refused because a later server was known under its address; 0 if not refused
}

// An examiner is a lane, as seen by the lane's parts that judge the master.
type examiner interface {
	// ask puts a question to the master, if the lane is connected. answer is called in the lane's loop if the question's batch was
	// vouched for. answer may be nil.
	ask(command []any, answer func(reply any))
	// suspect has the master assessed again after the batch. Only the lane's loop calls suspect.
	suspect()
}

// errCluster: not even our own keys are in one slot there.
var errCluster = errors.New("runs in cluster mode: masters are independent servers, with cluster-enabled no")

// inquire asks the master about itself, and refuses a server that cannot vote.
func (a *assessor) inquire(k *connection) error {
	inquiry := &masters.Inquiry{}
	if err := k.conn.Exec(inquiry.Calls()); err != nil {
		return err
	}
	k.info = inquiry.Info()
	a.clock.tellsExpiry = k.info.TellsExpiry
	//mutant: a replica votes
	if k.info.Role != "" && k.info.Role != "master" {
		return fmt.Errorf("is a %s, not a master", k.info.Role)
	}
	if k.info.Cluster {
		return errCluster
	}
	if other := a.engine.servers.claim(k, a.master, k.info.RunID); other != "" {
		return errors.New("is the same server as " + other)
	}
	return nil
}

// markTries bounds how often other proxies may be faster in marking a master.
const markTries = 5

// assess finds out whether the master may have forgotten locks, and quarantines the master if so. last is the connection before, if
// k is new; else nil.
func (a *assessor) assess(k, last *connection) error {
	jumps, forgot := a.master.watch.confirmed()
	switch {
	case jumps != a.marked:
	case k.info.RunID == "" && last != nil: // the canary may be in place all the same
		forgot = "its connection broke, and it may have restarted: it does not let us ask (INFO)"
	default:
		forgot = ""
	}
	for range markTries {
		found, look, err := k.readMarks()
		if err != nil {
			return err
		}
		is, why, err := a.compare(k, last, found, look, forgot)
		if err != nil {
			return err
		}
		//mutant: a proxy watches clocks by its own settings alone
		a.engine.keepTo(is.Next.Bounds)
		if is.Finding == vouch.Same {
			a.marked = jumps
			return a.adopt(k, found, is.Next.Epoch)
		}
		forgot = why
		done, err := a.mark(k, found.canary, is, forgot)
		if err != nil {
			return err
		}
		if done && is.Finding == vouch.Forgot {
			a.horizon.ends = ends{}
		}
		if done { // else another proxy was faster, perhaps with a mark for another reason: ours is still to be made
			forgot = ""
		}
	}
	return errors.New("has a canary that changes all the time: does another deployment use it?")
}

// compare compares the marks that were found with the master's statements, and with the knowledge of this proxy. forgot is why the
// whole server may have forgotten locks, "" if nothing says so. compare returns the same, or the cause that it has found, and an
// error if the master is refused.
func (a *assessor) compare(k, last *connection, found marks, look *endLook, forgot string) (j vouch.Assessment, why string, err error) {
	is, ok := vouch.ParseCanary(found.canary)
	//mutant: epochs of another database are learned
	if ok && is.DB == a.db && is.Members == a.engine.members {
		//mutant: a master that is listed in another place votes
		if a.isMisplaced(k, &is) {
			return j, "", errors.New("stands in another place of the list of a proxy that has marked it: list the masters in the same order in every proxy, or run lockproxy init")
		}
		a.epochs.roster.learn(found.roster) // else the roster may be another database's, or deployment's
	}
	early := !a.epochs.heardOthers() // before a look at the epochs told by the others
	known := a.epochs.latest().Load()
	now := a.canaryNow(k, max(known, is.Epoch), is.Bounds)
	now.Early = early
	if ok && is.Members == a.engine.members && is.Durable && is.Process != k.info.RunID { // a restarted master needs a witness
		witnessed, err := isWitnessed(k.conn)
		if err != nil {
			return j, "", err
		}
		//mutant: a witness that was not loaded is not missed
		now.Incomplete = now.Incomplete || !witnessed
	}
	j = vouch.Assess(found.canary, now, known)
	switch {
	case forgot != "":
	case a.isBack(j.Next.Epoch):
		//mutant: a server to which the address leads back votes at once
		forgot = cmp.Or(reasonOf(found.quarantine), "another server answered under its address meanwhile")
	case wentBack(k, last, found, j.Next.Epoch):
		forgot = vouch.Older
	case known <= is.Epoch: // else the server is another, or is told to be
		forgot = a.hindsight(found, is.Epoch, look)
	}
	if forgot != "" && (j.Finding == vouch.Same || j.Finding == vouch.Renew) {
		j.Finding, j.Reason, j.Next.Epoch = vouch.Forgot, forgot, now.Epoch
	}
	if j.Finding == vouch.Foreign {
		return j, "", errors.New(j.Reason)
	}
	k.early, k.durable = early && j.Next.Process != now.Process, j.Next.Durable
	return j, forgot, nil
}

// isMisplaced says that a proxy has marked this very server which has the server in another place of its list. In a deployment with
// a name, proxies tell each other the epochs of masters by the masters' places, and so must agree on the places.
func (a *assessor) isMisplaced(k *connection, is *vouch.Canary) bool {
	return a.engine.cfg.Deployment != "" && isMarkedElsewhere(is, a.master.slot, &k.info)
}

func isMarkedElsewhere(is *vouch.Canary, slot int, info *masters.Info) bool {
	return is.Slot != slot && is.Process == cmp.Or(info.RunID, "-")
}

// readMarks reads the marks on the master's data, the end of its horizon first.
func (k *connection) readMarks() (marks, *endLook, error) {
	read, look := &masters.Call{Args: marksArgs}, lookForEnd()
	if err := k.conn.Exec(append(look.calls(), read)); err != nil {
		return marks{}, nil, err
	}
	found, err := parseMarks(read)
	if err != nil {
		err = fmt.Errorf("does not let its canary be read: %w", err)
	}
	return found, look, err
}

// hindsight returns why a master may have forgotten locks, by the end of its horizon. epoch is the canary's.
func (a *assessor) hindsight(found marks, epoch int64, look *endLook) string {
	if found.quarantine != "" {
		a.horizon.ends = ends{} // the master is known to have forgotten
	}
	return a.horizon.ends.evidence(look, epoch)
}

// wentBack says that the data of this server is of an earlier time than before, as after a second SWAPDB: the epoch is lower than
// before, or the server was clean in this epoch and is now in the epoch's quarantine. The connection, or the run id, shows that the
// server is the same. A server that cannot be recognised, and has an epoch that is too low, is refused by adopt.
func wentBack(k, last *connection, found marks, epoch int64) bool {
	was := k
	if k.epoch == 0 && last != nil && k.info.RunID != "" && last.info.RunID == k.info.RunID {
		was = last
	}
	returned := found.quarantine != "" && was.marks.quarantine == "" && was.marks.canary == found.canary
	return was.epoch > epoch || returned
}

// isBack says that a server which was replaced has been back under its address for backAfter, as after a failover that was called
// off. Until then adopt refuses the server. From then on the server counts as a master that has lost its data, and the other
// server's grants under this address are void. The wait is for an address that leads some proxies to one server and some to the
// other: without the wait, these proxies would void each other's votes all the time.
func (a *assessor) isBack(epoch int64) bool {
	return a.epochs.latest().Load() > epoch && a.refused != 0 && a.engine.now()-a.refused >= a.engine.cfg.backAfter()
}

// backAfter is long enough for all proxies to notice that a server is gone.
func (c *Config) backAfter() time.Duration {
	//mutant: a server that was replaced is marked anew at once
	return 2 * c.MasterDeadAfter
}

// mark writes the next canary, and the quarantine that goes with the canary. Where the whole server may have forgotten locks, its
// other databases are marked, too: another database may have no lane now to find out. forgot is the reason if the whole server may have
// forgotten; "" if only this database's mark is wrong. mark returns false if another proxy was faster.
func (a *assessor) mark(k *connection, seen string, j vouch.Assessment, forgot string) (done bool, err error) {
	text := ""
	if j.Finding == vouch.Forgot {
		text = quarantineText(j.Reason)
	}
	keys := []string{canaryKey, quarantineKey}
	calls := []*masters.Call{{Args: luaMark.whole(append(keys, rosterKey), seen, j.Next.String(), text)}}
	if flushed := seen == ""; j.Finding == vouch.Forgot && (flushed || a.db == 0) {
		epoch := j.Next.Epoch
		switch {
		//mutant: what a flush of database 0 hides is not marked
		case flushed && a.db == 0 && forgot != "": // the others were not flushed, but forgot concerns them
			text = quarantineText(forgot)
		case flushed: // the others were not flushed; but data that was swapped away from here must not come back as clean
			epoch = 0
		}
		args := luaQuarantineAll.whole(keys, epoch, text, int64(a.db), int64(databasesMax), j.Next.Evicted)
		calls = append(calls, &masters.Call{Args: args})
	}
	if err := k.conn.Exec(calls); err != nil {
		return false, err
	}
	return calls[0].Reply == int64(1), calls[0].Err
}

// adopt takes the marks that the assessment found, or returns why the master has no vote.
func (a *assessor) adopt(k *connection, found marks, epoch int64) error {
	if a.db == 0 {
		a.master.marked.Store(int64(a.marked))
	}
	if a.epochs.latest().Load() > epoch {
		if a.refused == 0 {
			a.refused = a.engine.now()
		}
		return fmt.Errorf("is refused: was replaced: another server answers, or answered, under its address; lead it to that one, or leave it: after %v it is quarantined, like one without its data",
			a.engine.cfg.backAfter())
	}
	a.refused = 0
	//mutant: an evicting master votes
	if k.info.Evicts() {
		return errors.New("may evict locks: set its maxmemory-policy to noeviction")
	}
	known := a.epochs.latest().Load()
	raise(a.epochs.latest(), epoch)
	//mutant: a proxy that starts tells nobody of epochs
	if known < epoch && found.quarantine == "" { // else the others are told during the quarantine, or at its end
		//mutant: nobody is told of an epoch without a quarantine
		a.epochs.tellOthers(nil) // even of a first look at the master: the proxy that saw the epoch begin may be gone
	}
	a.connection, k.marks, k.epoch = k, found, epoch
	a.epochs.shown, a.horizon.until = found.roster, 0
	k.restraintArgs = nil
	if is := k.info.Restraint; is != nil {
		k.restraintArgs = []any{"CONFIG", "GET", is[0]}
	}
	a.recovery.set(found.quarantine, found.canary)
	return nil
}
