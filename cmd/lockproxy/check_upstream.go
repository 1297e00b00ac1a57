package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/quorum/masters"
)

// checkUpstream prints what the upstream tells of itself, if there is one, and returns false if it could not be used.
func checkUpstream(cfg *config.Config, w io.Writer) bool {
	if cfg.Upstream.Addr == "" {
		return true
	}
	fmt.Fprintf(w, "\nUpstream %s, database %d: ", cfg.Upstream.Addr, cfg.Upstream.Database)
	info, err := probeUpstream(cfg)
	if err != nil {
		why := reason(err, upstreamLogin)
		if why == noAnswer && cfg.Upstream.TLS {
			why += " in TLS, if it speaks none there write redis://"
		}
		fmt.Fprintf(w, "no: %s.\n", why)
		return false
	}
	fmt.Fprintf(w, "%s, %s, round trip %s. Locks are what matches %s; all else goes there.\n",
		orDash(info.Server+" "+info.Version), orDash(info.Role), info.RoundTrip.Round(time.Microsecond), strings.Join(cfg.LockKeys, " or "))
	return true
}

// upstreamLogin is where the login at the upstream is set.
const upstreamLogin = "the user and password in upstream: redis://user:password@host:port"

func probeUpstream(cfg *config.Config) (masters.Info, error) {
	t, err := cfg.MasterTLS()
	if err != nil {
		return masters.Info{}, err
	}
	m, err := masters.NewRedis(cfg.Upstream.URL.Reveal(), masters.RedisOptions{DialTimeout: cfg.DialTimeout, TLS: t})
	if err != nil {
		return masters.Info{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*cfg.DialTimeout)
	defer cancel()
	return m.Probe(ctx)
}
