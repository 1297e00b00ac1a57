// Package admin serves what operators look at: /metrics for Prometheus, /healthz (the process is up), /readyz (a
// quorum of masters can vote) and, only if asked for, /debug/pprof/.
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
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lockproxy/quorum"
	"lockproxy/resp"
)

// Engine is what the pages show of quorum.Engine.
type Engine interface {
	Masters() []quorum.MasterStatus
	Stats() quorum.Stats
	Ready() error
}

// Front is what the pages show of resp.Server.
type Front interface {
	Stats() resp.Stats
}

// A Certificate is one that lockproxy shows, as it is renewed.
type Certificate interface {
	Until() time.Time // the zero time: none is shown
}

// Options of a Server.
type Options struct {
	Version      string
	Pprof        bool
	Hosts        []string               // further names by which the pages may be asked for; hosts.go has the rule
	Certificates map[string]Certificate // by the setting that names its file
	Logger       *slog.Logger
}

// A Server serves the pages.
type Server struct {
	http     *http.Server
	draining atomic.Bool
}

// Nothing here takes long, except a profile, which takes as long as its client asked for.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	headerBytes   = 16 << 10
)

// New returns a server for engine and front. It reads from both, whenever a page is asked for.
func New(engine Engine, front Front, opt Options) *Server {
	s := &Server{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", index)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		err := engine.Ready()
		if s.draining.Load() {
			err = errDraining
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
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

func index(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, "lockproxy\n\n/metrics\n/healthz\n/readyz\n")
}

// program stands in for pprof.Cmdline. The rest of the command line may have passwords in it.
func program(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprint(w, filepath.Base(os.Args[0]))
}

var errDraining = errors.New("lockproxy is shutting down")

// Drain makes /readyz say from now on that this process takes no new work.
func (s *Server) Drain() { s.draining.Store(true) }

// Serve answers on l until Close. It closes l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close stops accepting, and waits for the pages being written until ctx ends; then it cuts them off.
func (s *Server) Close(ctx context.Context) error {
	if s.http.Shutdown(ctx) == nil {
		return nil
	}
	return s.http.Close()
}
