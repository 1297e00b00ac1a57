package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/quorum"
	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
	"lockproxy/resp/upstream"
)

// checkDatabases names the databases in which too few masters are clean, although a quorum of masters votes and has the database. The
// clients' first database is never among them: a master votes only if clean there. The verdicts name databases that a master lacks.
func checkDatabases(cfg *config.Config, probes []probe, w io.Writer) {
	var lacking []string
	for db := range cfg.Databases {
		clean, missing := 0, 0
		for _, p := range probes {
			switch {
			case p.votes && p.marks.CleanIn(db):
				clean++
			case !p.votes || p.marks.Databases <= db:
				missing++
			}
		}
		if needed := rules.Quorum(len(probes)); clean < needed && len(probes)-missing >= needed {
			lacking = append(lacking, strconv.Itoa(db))
		}
	}
	if len(lacking) > 0 {
		fmt.Fprintf(w, "In database %s no quorum could: docs/deploying.md says why, under \"databases without a mark\".\n", strings.Join(lacking, ", "))
	}
}

// checkNames says whether running proxies take the same names for locks. Only proxies that told the masters their names are compared.
func checkNames(cfg *config.Config, probes []probe, w io.Writer) (agreed bool) {
	for _, p := range probes {
		if there := p.marks.OtherNames; there != "" {
			fmt.Fprintf(w, "\nA proxy of this upstream that runs now, or did half a minute ago, takes other names for locks: one lock can have two "+
				"holders. Give both the same lock_keys.\n  here   %s\n  there  %s\n", namesOfLocks(cfg).Are, there)
			return false
		}
	}
	return true
}

// A probe has the answers of one master, and the conclusions.
type probe struct {
	addr        string
	info        masters.Info
	err         error
	wrongScheme string // the mend for the URL's scheme, "" if the scheme is right
	marks       quorum.Inspected
	keeper      keeper
	votes       bool
	verdict     string
}

// inspect adds the masters' marks. With many databases on masters far away, inspect may take as long as init.
func inspect(cfg *config.Config, ms []masters.Master, probes []probe) {
	ctx, cancel := context.WithTimeout(context.Background(), inspectMax(cfg))
	defer cancel()
	for i, in := range quorum.Inspect(ctx, engineConfig(cfg, slog.New(slog.DiscardHandler)), ms) {
		probes[i].marks = in
	}
}

// probeAll asks all masters at the same time, except those that are gone.
func probeAll(cfg *config.Config, ms []*masters.Redis, all []masters.Master) []probe {
	ctx, cancel := context.WithTimeout(context.Background(), max(cfg.DialTimeout, cfg.MasterDeadAfter))
	defer cancel()
	probes := make([]probe, len(ms))
	var asked sync.WaitGroup
	for i, m := range ms {
		asked.Go(func() {
			p := probe{addr: m.Addr()}
			if g, ok := all[i].(gone); ok {
				p.err = g.err
			} else if p.info, p.err = probeMaster(ctx, m, cfg.Databases); p.err != nil && ctx.Err() != nil {
				p.err = ctx.Err() // p.err then names only the closed connection
			}
			p.wrongScheme = wrongScheme(m, p.err)
			probes[i] = p
		})
	}
	asked.Wait()
	return probes
}

// wrongScheme names the scheme for the URL, if the server speaks TLS and the URL has no TLS, or the other way round. wrongScheme has
// its own timeout, because the probe's may be over. A server without TLS in its URL that kept silent is not tried: a TLS server would
// have answered.
func wrongScheme(m *masters.Redis, err error) string {
	if err == nil || !m.TLS() && reason(err, "") == upstream.NoAnswer {
		return ""
	}
	switch otherwise := m.SpeaksOtherwise(context.Background(), err); {
	case otherwise && m.TLS():
		return "the TLS handshake failed: it speaks no TLS, write redis://"
	case otherwise:
		return "it speaks TLS, write rediss://"
	case m.TLS() && reason(err, "") == upstream.NoAnswer:
		return "the TLS handshake failed: no answer, if it speaks no TLS there write redis://"
	}
	return ""
}

// judge gives each master its verdict: could the master vote, and must the operator mend something?
func judge(cfg *config.Config, probes []probe) {
	seen := make(map[string]string) // run id: address
	for i := range probes {
		p := &probes[i]
		first := seen[p.info.RunID]
		switch {
		case p.wrongScheme != "":
			p.verdict = "no: " + p.wrongScheme
		case p.err != nil:
			p.verdict = "no: " + reason(p.err, masterLogin)
		case p.info.Server == "lockproxy":
			p.verdict = "no: is a lockproxy, name a Redis or Valkey server"
		case p.info.Role != "" && p.info.Role != "master":
			p.verdict = "no: is a " + p.info.Role + ", name its master, or, if that is named, another server"
		case p.info.RunID != "" && first != "":
			p.verdict = "no: is the same server as " + first + ", name another"
		case len(missingToVote(&p.info)) > 0:
			p.verdict = "cannot vote: may not run " + strings.Join(missingToVote(&p.info), ", ") + ", permit that there"
		case p.info.Evicts():
			p.verdict = "no: may evict locks, set maxmemory-policy noeviction"
		case p.info.Full():
			p.verdict = "no: its memory is full, raise maxmemory"
		case p.info.Refusal != "":
			p.verdict = "no: it refuses writes: " + strings.TrimSuffix(p.info.Refusal, ".")
		case p.info.RoundTrip > cfg.InstanceTimeout:
			p.verdict = "no: slower than instance_timeout " + cfg.InstanceTimeout.String() + ", raise that to three round trips"
		case p.marks.Addr != "" && p.marks.Err != nil:
			p.verdict = "no: " + reason(p.marks.Err, masterLogin)
		case p.marks.Addr != "" && p.marks.Fresh() && !p.marks.InUse:
			p.verdict = "no: new, or has lost its data: if no lock can be held, run lockproxy init; else start lockproxy, and wait for about ttl_max (" + cfg.TTLMax.String() + ")"
		case p.marks.Foreign && !p.marks.Unread:
			p.verdict = "no: " + state(&p.marks) + ": name all as when they were marked; to change that, stop the clients, wait for the longest lock, run lockproxy init"
		case p.marks.Addr != "" && !p.marks.Clean():
			p.verdict = "no: " + state(&p.marks)
		case p.marks.Addr != "" && p.marks.Databases <= cfg.Upstream.Database:
			p.verdict = fmt.Sprintf("no: has no database %d, in which clients begin, set databases %d there", cfg.Upstream.Database, cfg.Databases)
		case 2*p.info.RoundTrip > cfg.InstanceTimeout:
			p.votes, p.verdict = true, "votes; far away for instance_timeout "+cfg.InstanceTimeout.String()+", raise that to three round trips"
		case p.marks.Addr != "" && p.marks.Databases < cfg.Databases:
			p.votes, p.verdict = true, fmt.Sprintf("votes; has no database beyond %d, where clients SELECT others set databases %d there",
				p.marks.Databases-1, cfg.Databases)
		case p.marks.Addr != "" && len(p.marks.Barred) > 0:
			p.votes, p.verdict = true, "votes; "+state(&p.marks)
		case p.keeper.forgets() != "":
			p.votes, p.verdict = true, "votes; forgets locks at a restart in spite of its AOF, see below"
		case p.marks.Moved:
			p.votes, p.verdict = true, "votes; its dir was changed while it ran: its next restart costs it a quarantine, do not CONFIG SET dir there"
		case len(p.info.Missing) > 0:
			p.votes, p.verdict = true, "votes; may not run "+strings.Join(p.info.Missing, ", ")
		default:
			p.votes, p.verdict = true, "votes"
		}
		if p.err == nil && first == "" {
			seen[p.info.RunID] = p.addr
		}
	}
}

// reason puts an error of the connection into few words, with the mend. login says where logins are set.
func reason(err error, login string) string {
	var stranger x509.UnknownAuthorityError
	switch text := upstream.Innermost(err).Error(); {
	case strings.HasPrefix(text, "NOAUTH"), strings.HasPrefix(text, "WRONGPASS"):
		return strings.TrimSuffix(text, ".") + ", set " + login
	case errors.As(err, &stranger):
		return "its certificate is from an authority that is not trusted here, name that in master_tls_ca"
	default:
		return text
	}
}

// masterLogin is where the logins at masters are set.
const masterLogin = "master_password, and master_user if it has users (ACL), or the ones in its URL"

func writeProbes(w io.Writer, probes []probe) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "MASTER\tSERVER\tROLE\tRUN ID\tPERSISTENCE\tMAXMEMORY\tCLOCK\tROUND TRIP\tVERDICT")
	for _, p := range probes {
		if p.err != nil {
			fmt.Fprintf(table, "%s\t-\t-\t-\t-\t-\t-\t-\t%s\n", p.addr, p.verdict)
			continue
		}
		i := p.info
		fmt.Fprintf(table, "%s\t%s\t%s\t%.8s\t%s\t%s\t%s\t%s\t%s\n", p.addr, orDash(i.Server+" "+i.Version), orDash(i.Role),
			orDash(i.RunID), persistence(i), memory(i), offset(i), i.RoundTrip.Round(time.Microsecond), p.verdict)
	}
	_ = table.Flush()
}

func orDash(s string) string {
	if s = strings.TrimSpace(s); s == "" {
		return "-"
	}
	return s
}

// persistence says how a master keeps locks over a restart. Only with AOF and fsync always do all locks survive.
func persistence(i masters.Info) string {
	switch {
	case i.AppendFsync == "":
		return "-"
	case i.AppendOnly && i.AppendPauses:
		return "aof " + i.AppendFsync + ", not in rewrites"
	case i.AppendOnly:
		return "aof " + i.AppendFsync
	}
	return "no aof"
}

func memory(i masters.Info) string {
	switch {
	case i.MaxMemoryPolicy == "":
		return "-"
	case i.MaxMemory == 0:
		return i.MaxMemoryPolicy + " (unlimited)"
	}
	return fmt.Sprintf("%s (%.4gmb)", i.MaxMemoryPolicy, float64(i.MaxMemory)/(1<<20))
}

// offset is the master's clock less ours. Redlock needs clocks of equal speed, not of equal time.
func offset(i masters.Info) string {
	d := i.ClockOffset.Round(time.Millisecond / 10)
	if d > 0 {
		return "+" + d.String()
	}
	return d.String()
}
