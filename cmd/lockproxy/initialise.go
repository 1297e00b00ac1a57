package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/quorum"
	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// initialise marks the masters of a new deployment clean. Before, initialise shows the masters' keys and states, and asks the operator.
func initialise(l *config.Loaded, yes bool, stdin io.Reader, stdout, stderr io.Writer) int {
	if l.Config.Embedded() {
		fmt.Fprintln(stderr, "lockproxy: init: no masters; name them with --masters or --config (embedded ones need no init)")
		return exitUsage
	}
	ms, err := dialableNow(l.Config)
	if err != nil {
		fmt.Fprintln(stderr, "lockproxy:", err)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(context.Background(), inspectMax(l.Config))
	defer cancel()
	cfg := engineConfig(l.Config, slog.New(slog.DiscardHandler))
	found := quorum.Inspect(ctx, cfg, answering(l.Config, ms))
	writeFound(stdout, found)
	if slices.ContainsFunc(found, func(in quorum.Inspected) bool { return in.Err != nil }) {
		fmt.Fprintln(stderr, "lockproxy: init: every master must answer; see lockproxy check")
		return exitFailure
	}
	keepers := make([]*keeper, len(found))
	for i, in := range found {
		keepers[i] = &keeper{addr: in.Addr, info: in.Info, patience: in.Bounds.Patience}
	}
	askAll(l.Config, ms, keepers)
	writeShortfalls(stdout, keepers)
	fmt.Fprint(stdout, "\nAll of them will count as masters that have forgotten nothing. Locks that are held through lockproxy now, or\n"+
		"were when masters lost data, can be taken a second time: do this only while no client holds a lock.\n")
	if !yes && !agreed(stdin, stdout) {
		fmt.Fprintln(stdout, "Nothing was changed.")
		return exitFailure
	}
	ctx, cancel = context.WithTimeout(context.Background(), inspectMax(l.Config))
	defer cancel()
	if err := quorum.Initialise(ctx, cfg, asMasters(ms)); err != nil {
		fmt.Fprintln(stderr, "lockproxy: init:", err)
		return exitFailure
	}
	fmt.Fprintf(stdout, "%d masters are clean.\n", len(found))
	return exitOK
}

// inspectMax bounds the time for reading or marking all databases of all masters.
func inspectMax(cfg *config.Config) time.Duration {
	return time.Duration(cfg.Databases+1) * (cfg.DialTimeout + cfg.MasterDeadAfter)
}

func agreed(stdin io.Reader, stdout io.Writer) bool {
	fmt.Fprint(stdout, "Go on? (yes/no) ")
	answer, err := bufio.NewReader(stdin).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprint(stdout, "\nNobody answered; --yes goes on without asking. ")
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

func writeFound(w io.Writer, found []quorum.Inspected) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "MASTER\tSERVER\tKEYS\tSTATE")
	for _, in := range found {
		if in.Err != nil {
			fmt.Fprintf(table, "%s\t-\t-\t%s\n", in.Addr, reason(in.Err, masterLogin))
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", in.Addr, orDash(in.Info.Server+" "+in.Info.Version), in.Keys, state(&in))
	}
	_ = table.Flush()
}

// state says in few words whether a master's grants count.
func state(in *quorum.Inspected) string {
	switch {
	case in.Unread:
		return "is refused: " + vouch.Unread
	case in.Foreign:
		return "marked by another deployment, or for another list of masters"
	case in.Misplaced:
		return "is refused: stands in another place of the list than where it was marked; list the masters in the same order for every proxy, or run lockproxy init"
	case in.Replaced:
		return "is refused: was replaced by another server under its address; lead it to that one, or leave it: proxies quarantine it soon, like one without its data"
	case in.Forgets != "":
		return in.Forgets + ": in quarantine as soon as a proxy comes by"
	case len(in.Barred) == 0:
		return "clean"
	case in.Fresh() && !in.InUse:
		return "new, or has lost its data"
	}
	b, where := in.Barred[0], ""
	if n := len(in.Barred); n > 1 {
		where = fmt.Sprintf("%d databases ", n)
	} else if b.DB > 0 {
		where = fmt.Sprintf("database %d ", b.DB)
	}
	text := where + "without a mark: in quarantine as soon as a proxy comes by"
	if in.Clean() {
		text = where + "without a mark: in quarantine as soon as a client uses it"
	}
	if b.Reason != "" {
		text = where + fmt.Sprintf("in quarantine (%s) for %v, %v more at most", b.Reason,
			max(b.Since, 0).Round(time.Second), b.Left.Round(time.Second))
	}
	if in.Fresh() {
		text = "without its data: " + text
	}
	switch {
	case b.Unknown:
		return text + ", or until lockproxy init, if no client holds a lock"
	case in.Fresh(): // init would free locks that other masters remember
		return text + ", and votes again by itself"
	}
	return text
}

func asMasters(ms []*masters.Redis) []masters.Master {
	all := make([]masters.Master, len(ms))
	for i, m := range ms {
		all[i] = m
	}
	return all
}

// autoInitialise carries out init: auto: at once if all masters answer soon, else in the background when all answer. The returned
// masters stay out of the engine's reach until the end of init: auto, but for autoMax at most. Otherwise keys that clients' attempts
// set for a moment would make the masters look used, and quarantine the masters for ttl_max. Nothing is lost: no quorum could vote
// meanwhile.
func (p *process) autoInitialise(cfg quorum.Config, ms []*masters.Redis) []masters.Master {
	over := make(chan struct{})
	gated := make([]masters.Master, len(ms))
	for i, m := range ms {
		gated[i] = gatedMaster{m, over, &sync.Map{}}
	}
	soon, cancel := context.WithTimeout(context.Background(), p.cfg.DialTimeout+p.cfg.InstanceTimeout)
	defer cancel()
	cause := tryInitialise(soon, cfg, asMasters(ms))
	if cause == nil {
		close(over)
		return gated
	}
	cfg.Logger.Info("init: auto: waits until all masters answer", "cause", cause)
	ctx, stop := context.WithCancel(context.Background())
	p.serves.Go(func() {
		open := sync.OnceFunc(func() { close(over) })
		defer open()
		latest := time.AfterFunc(autoMax, open)
		defer latest.Stop()
		for cause != nil && ctx.Err() == nil {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return
			}
			last := cause.Error()
			if cause = tryInitialise(ctx, cfg, asMasters(ms)); cause != nil && ctx.Err() == nil && cause.Error() != last {
				cfg.Logger.Info("init: auto: waits until all masters answer", "cause", cause)
			}
		}
	})
	p.onStop(func(context.Context) { stop() })
	return gated
}

// autoMax is the longest time for which init: auto keeps the engine from the masters. A master that comes later still counts as new,
// if clients have set nothing on the other masters by then.
const autoMax = time.Minute

// A gatedMaster is out of the engine's reach until init: auto is over.
type gatedMaster struct {
	*masters.Redis
	over <-chan struct{}
	told *sync.Map // the databases whose first Dial has failed with errAuto
}

// Dial fails at once when first called for a database, so that clients are told the reason. Later calls wait for the end of init: auto,
// so that all databases are reached at the same time.
func (m gatedMaster) Dial(ctx context.Context, db int) (masters.Conn, error) {
	wait := time.Duration(0)
	if _, told := m.told.LoadOrStore(db, true); told {
		latest, _ := ctx.Deadline()
		wait = time.Until(latest) * 9 / 10
	}
	select {
	case <-m.over:
	default:
		select {
		case <-m.over:
		case <-time.After(wait):
			return nil, errAuto
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return m.Redis.Dial(ctx, db)
}

var errAuto = errors.New("init: auto waits for all masters")

// tryInitialise returns the cause for another try; nil if the masters are marked, or need no marks.
func tryInitialise(ctx context.Context, cfg quorum.Config, ms []masters.Master) error {
	done, err := quorum.AutoInitialise(ctx, cfg, ms)
	switch {
	case done:
		cfg.Logger.Warn("init: auto: all masters were empty, and count as new", "masters", len(ms))
	case err == nil:
		cfg.Logger.Info("init: auto: nothing to do: not all masters are empty and new")
	}
	return err
}
