// Package certs follows the files of a TLS configuration: certificates are renewed in place, by certbot or cert-manager, and a
// proxy that goes on showing the one that it has read at its start would be shut out on the day when that expires.
//
// The files are read again before a handshake, at most once in lookEvery, and not by a clock of their own. A handshake before
// which they were read begins with what they say. Connections that are there stay as they are.
package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lockproxy/cmd/lockproxy/config"
)

// lookEvery is for how long files are taken to be as they were.
const lookEvery = time.Second

// A Source has the TLS configuration that its files last made.
type Source struct {
	load  func() (*tls.Config, error)
	files []string
	log   *slog.Logger
	every time.Duration

	config atomic.Pointer[tls.Config]

	mu     sync.Mutex // held by whoever reads the files; guards what follows
	looked time.Time
	held   digest // what was in the files, or why they could not be read
}

type digest [sha256.Size]byte

// New returns a source of what load makes of the files, of which those that are not set are "". The error is load's.
func New(log *slog.Logger, load func() (*tls.Config, error), files ...string) (*Source, error) {
	set := slices.DeleteFunc(slices.Clone(files), func(path string) bool { return path == "" })
	s := &Source{load: load, files: set, log: log, every: lookEvery}
	s.held = s.read()
	config, err := load()
	if err != nil {
		return nil, err
	}
	s.config.Store(config)
	s.looked = time.Now()
	return s, nil
}

// Config returns the configuration, which the caller must not change. If what the files hold now cannot be used, it is the former one.
func (s *Source) Config() *tls.Config {
	if s.mu.TryLock() { // whoever comes while somebody reads them does not wait
		if time.Since(s.looked) >= s.every {
			s.look()
			s.looked = time.Now()
		}
		s.mu.Unlock()
	}
	return s.config.Load()
}

// look makes the configuration anew if the files have changed. What they hold is noted before, so that a change in between shows
// the next time.
func (s *Source) look() {
	held := s.read()
	if held == s.held {
		return
	}
	s.held = held
	config, err := s.load()
	if err != nil {
		s.log.Warn("renewed certificates cannot be used: the former ones stay", "files", s.files, "cause", err)
		return
	}
	s.config.Store(config)
	s.log.Info("certificates were renewed", "files", s.files)
}

func (s *Source) read() digest {
	all := sha256.New()
	for _, path := range s.files {
		text, err := config.ReadPEM(path)
		if err != nil {
			text = []byte(err.Error())
		}
		part := sha256.Sum256(text)
		all.Write(part[:])
	}
	return digest(all.Sum(nil))
}

// Until returns when the certificate that is shown now expires; the zero time if none is.
func (s *Source) Until() time.Time {
	shown := s.Config().Certificates
	if len(shown) == 0 {
		return time.Time{}
	}
	return shown[0].Leaf.NotAfter
}
