package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/quorum/masters"
)

// checkUpstream prints the state of the upstream, if there is an upstream, and returns false if the upstream could not be used.
func checkUpstream(cfg *config.Config, probes []probe, w io.Writer) bool {
	if cfg.Upstream.Addr == "" {
		return true
	}
	fmt.Fprintf(w, "\nUpstream %s, database %d: ", cfg.Upstream.Addr, cfg.Upstream.Database)
	info, scheme, err := probeUpstream(cfg, permitsThere)
	if err != nil {
		fmt.Fprintf(w, "no: %s.\n", cmp.Or(scheme, reason(err, upstreamLogin)))
		return false
	}
	if i := slices.IndexFunc(probes, func(p probe) bool { return info.RunID != "" && p.info.RunID == info.RunID }); i >= 0 {
		fmt.Fprintf(w, "no: is the same server as the master %s, name another.\n", probes[i].addr)
		return false
	}
	if info.Server == "lockproxy" {
		fmt.Fprintln(w, "no: is a lockproxy, name the Redis that has the data.")
		return false
	}
	fmt.Fprintf(w, "%s, %s, round trip %s. Locks are what matches %s; all else goes there.\n",
		orDash(info.Server+" "+info.Version), orDash(info.Role), info.RoundTrip.Round(time.Microsecond), strings.Join(cfg.LockKeys, " or "))
	writeDoubts(w, cfg, &info)
	writeCosts(w, permitsThere, []probe{{addr: cfg.Upstream.Addr, info: info}})
	return true
}

// writeDoubts names the shortcomings of an upstream that can be used.
func writeDoubts(w io.Writer, cfg *config.Config, info *masters.Info) {
	if info.Role == "slave" {
		fmt.Fprintln(w, "\nIt is a slave: what writes there gets READONLY. Name its master.")
	}
	if info.Cluster {
		fmt.Fprintln(w, "\nIt runs in cluster mode, and clients take lockproxy for a single Redis: for keys that are elsewhere they get MOVED.")
	}
	if info.MaxClients > 0 && info.MaxClients < cfg.MaxClients {
		fmt.Fprintf(w, "\nIt accepts %d connections (maxclients), but each of up to %d clients (max_clients) of every proxy has its own there: "+
			"raise that, or lower this.\n", info.MaxClients, cfg.MaxClients)
	}
}

// upstreamLogin is where the login at the upstream is set.
const upstreamLogin = "the user and password in upstream: redis://user:password@host:port"

// probeUpstream asks the upstream about itself, and tries the needed permits. If the URL has the wrong scheme, scheme names the right
// scheme.
func probeUpstream(cfg *config.Config, needed []permit) (info masters.Info, scheme string, err error) {
	secure, err := masterTLS(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return info, "", err
	}
	m, err := masters.NewRedis(cfg.Upstream.URL.Reveal(), masters.RedisOptions{DialTimeout: cfg.DialTimeout, TLS: secure.Now,
		Password: cfg.Upstream.Password.Reveal})
	if err != nil {
		return info, "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*cfg.DialTimeout)
	defer cancel()
	if info, err = m.Probe(ctx, trials(needed, "", cfg.Databases)...); err == nil && cfg.Upstream.Database > 0 {
		var there masters.Conn
		if there, err = m.Dial(ctx, cfg.Upstream.Database); err == nil {
			_ = there.Close()
		}
	}
	if err != nil {
		err = cmp.Or(ctx.Err(), err) // as in answers
	}
	return info, wrongScheme(m, err), err
}
