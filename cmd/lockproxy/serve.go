package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"lockproxy/cmd/lockproxy/admin"
	"lockproxy/cmd/lockproxy/audit"
	"lockproxy/cmd/lockproxy/balanced"
	"lockproxy/cmd/lockproxy/config"
	"lockproxy/cmd/lockproxy/console"
	"lockproxy/cmd/lockproxy/embedded"
	"lockproxy/cmd/lockproxy/renewed"
	"lockproxy/cmd/lockproxy/sock"
	"lockproxy/quorum"
	"lockproxy/quorum/masters"
	"lockproxy/quorum/pubsub"
	"lockproxy/quorum/rules"
	"lockproxy/resp"
	"lockproxy/resp/upstream"
	"lockproxy/script"
)

// serve runs a proxy until a signal ends it, and returns the exit code. The first SIGTERM or SIGINT drains: after
// drain_delay no new connections, running commands get their replies, or after shutdown_timeout an end. A second signal ends the process
// at once. SIGHUP changes nothing, as with redis-server: operators send SIGHUP to have settings or a log file opened anew, and that
// must cost no locks. Only a proxy on embedded masters drains when its terminal is closed, because somebody is trying the proxy out.
// A proxy on embedded masters serves no other machine: clients there would rely on locks that end with the process.
func serve(l *config.Loaded, stdout, stderr io.Writer) int {
	if l.Config.Embedded() && l.Config.Exposed() {
		fmt.Fprintf(stderr, "lockproxy: no masters are named, and other machines can reach listen %s; name masters with --masters, LOCKPROXY_MASTERS or --config. "+
			"Embedded ones are for trying out: they forget all locks when lockproxy ends, and serve on 127.0.0.1 only\n", l.Config.Listen)
		return exitUsage
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	if l.Config.Embedded() {
		signal.Notify(signals, syscall.SIGHUP)
	} else {
		signal.Ignore(syscall.SIGHUP)
	}
	signal.Ignore(syscall.SIGPIPE) // if the log's reader goes, locks must go on
	defer signal.Stop(signals)

	log, warnings := newLogbook(l.Config, stderr), &console.Warnings{}
	defer log.Close()
	p := &process{cfg: l.Config, stdout: stdout, stderr: log, warnings: warnings, failed: make(chan error, 2)}
	p.log = slog.New(warnings.Handler(newLogger(l.Config, log).Handler()))
	if err := p.start(l.Warnings); err != nil {
		fmt.Fprintln(log, "lockproxy:", err)
		p.stop(0)
		return exitFailure
	}
	code, delay := exitOK, time.Duration(0)
	var first os.Signal
	select {
	case first = <-signals:
		delay = p.cfg.DrainDelay
		p.log.Info("draining: a second signal ends at once", "signal", first.String(), "at_most", delay+p.cfg.ShutdownTimeout+p.cfg.MasterDeadAfter)
	case err := <-p.failed:
		p.log.Error("cannot go on: it drains, and ends; start it again", "cause", err)
		code = exitFailure
	}
	began, stopped := time.Now(), make(chan struct{})
	go func() {
		defer close(stopped)
		p.stop(delay)
	}()
	for {
		select {
		case <-stopped:
			p.log.Info("stopped")
			return code
		case s := <-signals:
			if isSecond(s, first, time.Since(began)) {
				p.log.Warn("ended without draining", "signal", s.String())
				return exitFailure
			}
		}
	}
}

// isSecond says whether s is a second request to end. after is the time since the first signal. timeout(1) sends one signal twice, to
// the process and then to its group, and means a single request.
func isSecond(s, first os.Signal, after time.Duration) bool {
	return s != first || after > 250*time.Millisecond
}

// A process is a running proxy: its parts, and how each part is stopped.
type process struct {
	cfg      *config.Config
	stdout   io.Writer
	stderr   io.Writer
	log      *slog.Logger
	warnings *console.Warnings // the last lines of log

	door      net.Listener         // for Redis clients
	adminDoor net.Listener         // nil: off
	inTLS     renewed.Certificates // with clients, if there is tls_cert
	outTLS    renewed.Certificates // towards masters and upstream
	addrs     []config.Master
	engine    *quorum.Engine
	hub       *pubsub.Hub
	front     *resp.Server
	audit     *audit.Log // nil: off

	started    func() // clients may be sent here, though perhaps without a quorum
	beforeStop func()
	stops      []func(ctx context.Context) // undo start, last first
	serves     sync.WaitGroup
	failed     chan error // a part that ended by itself
}

// start builds bottom-up. After an error, stop undoes the finished steps.
func (p *process) start(warnings []string) error {
	for _, step := range []func() error{
		p.openDoors, // first: if an address is taken, nothing begins
		p.readCertificates,
		p.startProcessors, // as few as suffice
		p.startMasters,    // the embedded ones, where none are named
		p.startEngine,     // Redlock over the masters, and their messages
		p.startAudit,      // the events of locks, if audit_log is set
		p.startFront,      // for Redis clients
		p.startAdmin,      // for operators
		p.letClientsIn,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, w := range warnings {
		p.log.Warn(w)
	}
	upstream := "none"
	if u := p.cfg.Upstream; u.Addr != "" {
		upstream = u.Addr
	}
	p.log.Info("listening", "version", versionText(), "listen", p.door.Addr().String(), "masters", len(p.addrs),
		"quorum", rules.Quorum(len(p.addrs)), "upstream", upstream, "admin", addrOf(p.adminDoor))
	p.watchForQuorum()
	return nil
}

// stop tears down top-down and waits for every part. The teardown begins after a delay. During the delay /readyz tells of the coming
// end, and all clients are served.
func (p *process) stop(delay time.Duration) {
	if p.beforeStop != nil {
		p.beforeStop()
	}
	time.Sleep(delay)
	ctx, cancel := context.WithTimeout(context.Background(), p.cfg.ShutdownTimeout)
	defer cancel()
	for _, stop := range slices.Backward(p.stops) {
		stop(ctx)
	}
	p.serves.Wait()
}

func (p *process) onStop(f func(ctx context.Context)) { p.stops = append(p.stops, f) }

func (p *process) openDoors() error {
	door, err := listen("listen", p.cfg.Listen, clientSockets())
	if err != nil {
		return err
	}
	p.door = endVanished(door, vanishedAfter)
	p.onStop(func(context.Context) { _ = p.door.Close() })
	if p.cfg.Admin == "" {
		return nil
	}
	if p.adminDoor, err = listen("admin", p.cfg.Admin, net.ListenConfig{}); err != nil {
		return err
	}
	p.onStop(func(context.Context) { _ = p.adminDoor.Close() })
	return nil
}

func (p *process) readCertificates() (err error) {
	if p.inTLS, err = clientTLS(p.cfg, p.log); err != nil {
		return err
	}
	p.outTLS, err = masterTLS(p.cfg, p.log)
	return err
}

func (p *process) startMasters() error {
	p.addrs = p.cfg.Masters
	if !p.cfg.Embedded() {
		return nil
	}
	ms, err := embedded.Start(3)
	if err != nil {
		return err
	}
	p.onStop(func(ctx context.Context) { // a master does not close while it runs a script without end
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			ms.Close()
		}()
		select {
		case <-closed:
		case <-ctx.Done():
		}
	})
	for _, a := range ms.Addrs() {
		p.addrs = append(p.addrs, config.Master{Addr: a, URL: config.NewSecret("redis://" + a)})
	}
	p.log.Warn("embedded masters, for trying out only: nothing survives this process; name masters for more")
	writeBanner(p.stderr, p.door.Addr(), p.cfg.TLSCert != "")
	return nil
}

func (p *process) startEngine() error {
	ms, err := dialable(p.cfg, p.addrs, p.outTLS, p.log)
	if err != nil {
		return err
	}
	cfg, all := engineConfig(p.cfg, p.log), asMasters(ms)
	sources := make([]masters.Source, len(ms))
	for i, m := range ms {
		sources[i] = m
	}
	if p.cfg.Embedded() {
		if err := quorum.Initialise(context.Background(), cfg, all); err != nil {
			return err
		}
	}
	if p.cfg.Init == "auto" {
		all = p.autoInitialise(cfg, ms)
	}
	if p.engine, err = quorum.New(cfg, all); err != nil {
		return err
	}
	p.onStop(func(context.Context) { p.engine.Close() })
	p.hub = pubsub.New(pubsub.Config{
		Patience: p.cfg.InstanceTimeout, DeadAfter: p.cfg.MasterDeadAfter, Logger: p.log,
	}, sources)
	p.onStop(func(context.Context) { p.hub.Close() })
	return nil
}

func (p *process) startAudit() (err error) {
	if p.cfg.AuditLog == "" {
		return nil
	}
	if p.audit, err = audit.Open(p.cfg.AuditLog, p.stdout, p.log); err == nil {
		p.onStop(func(context.Context) { p.audit.Close() })
	}
	return err
}

func (p *process) startFront() error {
	var up *upstream.Redis
	if p.cfg.Upstream.Addr != "" {
		watch := keepLookout(vanishedAfter)
		p.onStop(func(context.Context) { watch.end() })
		up = upstreamOf(p.cfg, p.outTLS, watch, p.log)
		up.Watch(p.log)
		p.onStop(func(context.Context) { up.Close() })
	}
	cfg := frontConfig(p.cfg, up, p.log)
	if p.audit != nil {
		cfg.Audit = p.audit.Told
	}
	var err error
	if cfg.Limits.Clients, err = p.clientsMax(filesMax()); err != nil {
		return err
	}
	p.front = resp.New(cfg, p.engine, script.NewCache(p.cfg.ScriptCache, p.cfg.Scripts...), p.hub)
	return nil
}

func (p *process) startAdmin() error {
	if p.adminDoor == nil {
		return nil
	}
	shown := map[string]admin.Certificate{"master_tls_cert": p.outTLS}
	if p.cfg.TLSCert != "" {
		shown["tls_cert"] = p.inTLS
	}
	page := console.New(p.engine, p.front, console.Options{
		Version: versionText(), Databases: p.cfg.Databases, First: p.cfg.FirstDatabase(), Warnings: p.warnings,
	})
	ctx, cancel := context.WithCancel(context.Background())
	p.onStop(func(context.Context) { cancel() })
	p.serves.Go(func() { page.Run(ctx) })
	s := admin.New(p.engine, p.front, admin.Options{
		Version: versionText(), Databases: p.cfg.Databases, First: p.cfg.FirstDatabase(),
		Pprof: p.cfg.Pprof, Hosts: adminHosts(p.cfg), Certificates: shown, Console: page, Logger: p.log, AuditDropped: p.audit.Dropped,
	})
	p.serve("admin", func() error { return s.Serve(p.adminDoor) })
	p.onStop(func(ctx context.Context) { _ = s.Close(ctx) })
	p.started, p.beforeStop = s.Open, s.Drain // load balancers shall know before the clients are sent away
	return nil
}

func (p *process) letClientsIn() error {
	p.onStop(func(ctx context.Context) {
		if err := p.front.Shutdown(ctx); err != nil {
			p.log.Warn("clients were cut off: raise shutdown_timeout", "cause", err)
		}
	})
	door := sock.Listener(p.door)
	if len(p.cfg.ProxyProtocol) > 0 {
		door = balanced.Listener(door, p.cfg.ProxyProtocol, p.log)
	}
	if p.cfg.TLSCert != "" {
		door = tls.NewListener(resp.Metered(door), &tls.Config{
			MinVersion:         tls.VersionTLS12,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return p.inTLS.Now(), nil },
		})
	}
	p.serve("listen", func() error {
		if err := p.front.Serve(door); !errors.Is(err, resp.ErrServerClosed) {
			return err
		}
		return nil
	})
	return nil
}

// serve runs one of the servers; stop waits for it.
func (p *process) serve(name string, f func() error) {
	p.serves.Go(func() {
		if err := f(); err != nil {
			p.failed <- fmt.Errorf("%s: %w", name, err)
		}
	})
}
