package main

import (
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/cmd/lockproxy/renewed"
	"lockproxy/cmd/lockproxy/sock"
	"lockproxy/quorum"
	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
	"lockproxy/resp"
	"lockproxy/resp/group"
	"lockproxy/resp/upstream"
)

// newLogger returns the logger of the whole process.
func newLogger(cfg *config.Config, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.LogLevel)) // the table lets only its words through
	opt := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" {
		opt.ReplaceAttr = durationText
		return slog.New(slog.NewJSONHandler(w, opt))
	}
	return slog.New(slog.NewTextHandler(w, opt))
}

// durationText writes a duration as the text format does. The JSON handler would write nanoseconds, without a unit.
func durationText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// listen opens a port; the error is one line that names the setting.
func listen(setting, addr string, sockets net.ListenConfig) (net.Listener, error) {
	l, err := sockets.Listen(context.Background(), networkOf(addr), addr)
	if err == nil {
		return l, nil
	}
	remedy := "set " + setting + " to another address"
	if errors.Is(err, syscall.EADDRINUSE) {
		remedy = "stop what is there, or " + remedy
	}
	return nil, fmt.Errorf("%s: cannot listen on %s: %w; %s", setting, addr, upstream.Innermost(err), remedy)
}

// networkOf returns the network that serves addr. Package net takes 0.0.0.0 for all addresses, also of IPv6. Here an IPv4 address means
// IPv4 alone, also if a host name stands for the address. An empty host and [::] mean both.
func networkOf(addr string) string {
	if a, err := net.ResolveTCPAddr("tcp", addr); err == nil && a.IP.To4() != nil {
		return "tcp4"
	}
	return "tcp"
}

func addrOf(l net.Listener) string {
	if l == nil {
		return "off"
	}
	return l.Addr().String()
}

// adminHosts are the host names that requests to admin may use: from the setting, from the address of admin, and this machine's.
func adminHosts(cfg *config.Config) []string {
	host, _, _ := net.SplitHostPort(cfg.Admin)
	all := append(slices.Clone(cfg.AdminHosts), host)
	if own, err := os.Hostname(); err == nil {
		all = append(all, own)
	}
	return all
}

// masterTLS is TLS towards masters and upstream.
func masterTLS(cfg *config.Config, log *slog.Logger) (renewed.Certificates, error) {
	return renewed.NewCertificates(log, cfg.MasterTLS, cfg.MasterTLSCA, cfg.MasterTLSCert, cfg.MasterTLSKey)
}

// clientTLS is TLS with clients; zero if tls_cert is not set.
func clientTLS(cfg *config.Config, log *slog.Logger) (renewed.Certificates, error) {
	if cfg.TLSCert == "" {
		return renewed.Certificates{}, nil
	}
	return renewed.NewCertificates(log, cfg.ListenTLS, cfg.TLSCert, cfg.TLSKey, cfg.TLSClientCA)
}

// passwordOf returns a function that returns the current password: from the settings, or from its file, which may be renewed.
func passwordOf(read config.Secret, file string, log *slog.Logger) func() string {
	if file == "" {
		return read.Reveal
	}
	s, _ := renewed.New(log, "passwords", func() (config.Secret, error) { return config.ReadSecret(file) }, file)
	return func() string { return cmp.Or(s.Now().Reveal(), read.Reveal()) } // the file may have gone since
}

// dialable returns the masters, not yet connected.
func dialable(cfg *config.Config, addrs []config.Master, secure renewed.Certificates, log *slog.Logger) ([]*masters.Redis, error) {
	room, password := masters.NewRoom(cfg.MaxMemory), passwordOf(cfg.MasterPassword, cfg.MasterPasswordFile, log)
	var all []*masters.Redis
	for _, a := range addrs {
		m, err := masters.NewRedis(a.URL.Reveal(), masters.RedisOptions{
			DialTimeout: cfg.DialTimeout,
			Username:    cfg.MasterUser,
			Password:    password,
			TLS:         secure.Now,
			Wrap:        sock.Wrap,
			Room:        room,
		})
		if err != nil {
			return nil, fmt.Errorf("masters: %s: %w", a.Addr, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// dialableNow is dialable for a command that looks at the masters once.
func dialableNow(cfg *config.Config) ([]*masters.Redis, error) {
	silent := slog.New(slog.DiscardHandler)
	secure, err := masterTLS(cfg, silent)
	if err != nil {
		return nil, err
	}
	return dialable(cfg, cfg.Masters, secure, silent)
}

func engineConfig(cfg *config.Config, log *slog.Logger) quorum.Config {
	grace := cfg.Grace
	if grace == 0 {
		grace = -1 // to the engine, 0 is the default
	}
	return quorum.Config{
		InstanceTimeout: cfg.InstanceTimeout,
		DriftFactor:     cfg.DriftFactor,
		Grace:           grace,
		TTLMax:          cfg.TTLMax,
		MasterDeadAfter: cfg.MasterDeadAfter,
		QueueMax:        cfg.QueueMax,
		Databases:       cfg.Databases,
		FirstDatabase:   cfg.FirstDatabase(),
		Tended:          min(cfg.Databases, tendedMax),
		Deployment:      cfg.Deployment,
		Names:           namesOfLocks(cfg),
		Logger:          log,
	}
}

// tendedMax bounds for how many databases that no client uses there are connections to the masters after one has forgotten locks.
const tendedMax = 16

// namesOfLocks returns the upstream and the patterns of locks' names. Without an upstream all names are names of locks.
func namesOfLocks(cfg *config.Config) quorum.Names {
	if cfg.Upstream.Addr == "" {
		return quorum.Names{}
	}
	patterns := slices.Compact(slices.Sorted(slices.Values(cfg.LockKeys)))
	for i, p := range patterns {
		if strings.ContainsAny(p, ` "`) {
			patterns[i] = strconv.Quote(p)
		}
	}
	are := strings.Join(patterns, " ")
	if len(are) > namesMax {
		are = fmt.Sprintf("%s… (SHA-1 %x)", are[:namesMax], sha1.Sum([]byte(are)))
	}
	return quorum.Names{For: fmt.Sprintf("%s/%d", globalAddr(cfg.Upstream.Addr), cfg.Upstream.Database), Are: are}
}

// namesMax bounds the text of the patterns, because every master is told the text again and again.
const namesMax = 500

// globalAddr returns the address. A loopback address means another server on each machine, so globalAddr adds this machine's name.
func globalAddr(addr string) string {
	host, _, _ := net.SplitHostPort(addr)
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return addr
	}
	name, err := os.Hostname()
	if err != nil {
		return addr
	}
	return addr + " on " + name
}

// upstreamOf returns the upstream, not yet connected. Its connections end if its machine vanishes.
func upstreamOf(cfg *config.Config, secure renewed.Certificates, watch *lookout, log *slog.Logger) *upstream.Redis {
	u := cfg.Upstream
	wrap := func(c net.Conn) net.Conn {
		watch.add(c)
		return sock.Wrap(c)
	}
	opt := upstream.Options{Addr: u.Addr, Username: u.User, Password: passwordOf(u.Password, cfg.UpstreamPasswordFile, log),
		DialTimeout: cfg.DialTimeout, Wrap: wrap}
	if u.TLS {
		opt.TLS = secure.Now
	}
	return upstream.New(opt)
}

func frontConfig(cfg *config.Config, up *upstream.Redis, log *slog.Logger) resp.Config {
	c := resp.Config{
		TTLMax:    cfg.TTLMax,
		TTLMin:    rules.TTLMin(cfg.DriftFactor),
		Databases: cfg.Databases,
		Version:   versionText(),
		Upstream:  up,

		ProtectedMode: cfg.ProtectedMode && cfg.TLSClientCA == "", // a client with a certificate has shown its identity

		Database: cfg.FirstDatabase(),
		CPU:      processorTime,

		LockKeys: cfg.LockKeys,
		Limits: resp.Limits{
			Clients:  cfg.MaxClients,
			Args:     cfg.MaxArgs,
			Bulk:     cfg.MaxBulk,
			Command:  cfg.MaxCommand,
			Input:    cfg.MaxInput,
			Pipeline: cfg.MaxPipeline,
			Output:   cfg.MaxOutput,
			Memory:   cfg.MaxMemory,
			Write:    cfg.WriteTimeout,
			Idle:     cfg.IdleTimeout,
			Auth:     cfg.AuthTimeout,
		},
		SlowLog: cfg.SlowLog,
		Logger:  log,
	}
	if cfg.SlowLog == 0 {
		c.SlowLog = resp.NoSlowLog
	}
	for _, g := range cfg.LockGroups {
		c.LockGroups = append(c.LockGroups, group.Rule{Pattern: g.Pattern, Label: g.Group})
	}
	for _, u := range cfg.Users {
		c.Users = append(c.Users, resp.User{Name: u.Name, Password: passwordOf(u.Password, u.File, log), ForceUnlock: u.ForceUnlock})
	}
	return c
}

// writeBanner tells a person at a terminal which parts were started, and how to try them.
func writeBanner(w io.Writer, door net.Addr, secure bool) {
	host, port, _ := net.SplitHostPort(door.String())
	client := "redis-cli -p " + port
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() && host != "127.0.0.1" {
		client = "redis-cli -h " + host + " -p " + port
	}
	if secure {
		client += " --tls"
	}
	fmt.Fprintf(w, `lockproxy runs on three embedded masters, for trying out only: nothing survives this process.

Try in another terminal:
  %[1]s SET job:7 me NX PX 30000
  %[1]s EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end" 1 job:7 me

With masters of your own: lockproxy --masters host1:6379,host2:6379,host3:6379

`, client)
}
