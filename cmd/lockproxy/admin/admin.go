// Package admin serves the pages for operators: /metrics for Prometheus, three probes, and, only if asked for,
// /debug/pprof/. Each probe answers one question of one asker. /healthz is for tools that restart processes: is the
// process up? /readyz is for balancers: may clients be sent here? Clients may be sent here even without a quorum: they
// are told why they get no lock, and another proxy would have no quorum either. /lockz is for alerts: can locks be had?
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lockproxy/quorum"
	"lockproxy/resp"
	"lockproxy/resp/group"
)

// Engine is the part of quorum.Engine that the pages show.
type Engine interface {
	Database(db int) quorum.DatabaseStatus
	Databases() []quorum.DatabaseStatus
	Stats() quorum.Stats
}

// Front is the part of resp.Server that the pages show.
type Front interface {
	Stats() resp.Stats
	LockGroups() []group.Count // none: lock_groups is not set
}

// A Certificate is a certificate that lockproxy shows, also after a renewal.
type Certificate interface {
	Until() time.Time // the zero time: none is shown
}

// Options of a Server.
type Options struct {
	Version      string
	Databases    int // that clients can select
	First        int // the database in which clients begin
	Pprof        bool
	Hosts        []string               // further host names that the pages answer to; hosts.go has the rule
	Certificates map[string]Certificate // by the setting that names its file
	Console      http.Handler           // the console for browsers; nil: none
	AuditDropped func() uint64          // how many lines of the audit log were dropped; nil: none
	Logger       *slog.Logger
}

// A Server serves the pages.
type Server struct {
	http  *http.Server
	phase atomic.Value // a phase
}

// Nothing here takes long, except a profile, whose length the client chooses.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	headerBytes   = 16 << 10
)

// New returns a server for engine and front. Each page reads from both when it is asked for.
func New(engine Engine, front Front, opt Options) *Server {
	s := &Server{}
	s.phase.Store(starting)
	if opt.Console == nil {
		opt.Console = http.NotFoundHandler()
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", byBrowser(opt.Console))
	for _, page := range []string{"/lock", "/console.css", "/console.js"} {
		mux.Handle("GET "+page, opt.Console)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.refusal()) })
	mux.HandleFunc("GET /lockz", func(w http.ResponseWriter, r *http.Request) { lockz(w, r, engine, opt) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry(engine, front, opt), promhttp.HandlerOpts{}))
	timeout := writeTimeout
	if opt.Pprof {
		timeout = 0
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", program)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	c := &crowd{last: map[net.Conn]uint64{}}
	s.http = &http.Server{
		Handler:           allow(opt.Hosts).guard(mux),
		ConnState:         c.note,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      timeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          slog.NewLogLogger(opt.Logger.Handler(), slog.LevelDebug),
	}
	return s
}

// byBrowser shows the console to browsers, and the list of pages to all others.
func byBrowser(console http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			console.ServeHTTP(w, r)
			return
		}
		fmt.Fprint(w, "lockproxy\n\n/metrics\n/healthz\n/readyz\n/lockz\n/ in a browser: the console\n")
	})
}

// program stands in for pprof.Cmdline. The rest of the command line may have passwords in it.
func program(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprint(w, filepath.Base(os.Args[0])) //nolint:gosec // plain text, of our own
}

// answer says ok, or why not.
func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// lockz says whether locks can be had in the database in which clients begin, or in the database of ?db=.
func lockz(w http.ResponseWriter, r *http.Request, engine Engine, opt Options) {
	db := opt.First
	if query := r.URL.Query(); query.Has("db") {
		var err error
		if db, err = strconv.Atoi(query.Get("db")); err != nil || db < 0 || db >= opt.Databases {
			http.Error(w, fmt.Sprintf("db is a number from 0 to %d", opt.Databases-1), http.StatusBadRequest)
			return
		}
	}
	answer(w, engine.Database(db).Ready())
}

// A phase is why no clients are to be sent here.
type phase string

const (
	starting phase = "lockproxy is starting"
	open     phase = ""
	draining phase = "lockproxy is shutting down"
)

// Open makes /readyz accept clients, unless Drain was called.
func (s *Server) Open() { s.phase.CompareAndSwap(starting, open) }

// Drain makes /readyz refuse new clients from now on.
func (s *Server) Drain() { s.phase.Store(draining) }

// refusal returns why no clients are to be sent here; nil if clients may come.
func (s *Server) refusal() error {
	if why := s.phase.Load().(phase); why != open {
		return errors.New(string(why))
	}
	return nil
}

// Serve answers on l until Close, and closes l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close stops accepting, and waits for the pages being written until ctx ends. Then Close cuts them off.
func (s *Server) Close(ctx context.Context) error {
	if s.http.Shutdown(ctx) == nil {
		return nil
	}
	return s.http.Close()
}
