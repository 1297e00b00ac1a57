// Package renewed follows files that are renewed in place: certificates, by certbot or cert-manager, and passwords, by who keeps a
// deployment's secrets. A proxy that went on with what it has read at its start would be shut out on the day when that ends.
//
// The files are read again before a handshake or a login, at most once in lookEvery, and not by a clock of their own. A handshake
// before which they were read begins with what they say. Connections that are there stay as they are.
package renewed

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

// A Source has what its files last made.
type Source[T any] struct {
	what  string
	load  func() (T, error)
	files []string
	log   *slog.Logger
	every time.Duration

	made atomic.Pointer[T]

	mu     sync.Mutex // held by whoever reads the files; guards what follows
	looked time.Time
	held   digest // what was in the files, or why they could not be read
}

type digest [sha256.Size]byte

// New returns a source of what load makes of the files, of which those that are not set are "". The log says of what they are, such as
// "certificates". The error is load's; the source then has the zero value until the files are renewed.
func New[T any](log *slog.Logger, what string, load func() (T, error), files ...string) (*Source[T], error) {
	set := slices.DeleteFunc(slices.Clone(files), func(path string) bool { return path == "" })
	s := &Source[T]{what: what, load: load, files: set, log: log, every: lookEvery}
	s.held = s.read()
	made, err := load()
	s.made.Store(&made)
	s.looked = time.Now()
	return s, err
}

// Now returns what the files make, which the caller must not change. If what they hold now cannot be used, it is the former one.
func (s *Source[T]) Now() T {
	if s.mu.TryLock() { // whoever comes while somebody reads them does not wait
		if time.Since(s.looked) >= s.every {
			s.look()
			s.looked = time.Now()
		}
		s.mu.Unlock()
	}
	return *s.made.Load()
}

// look makes it anew if the files have changed. What they hold is noted before, so that a change in between shows the next time.
func (s *Source[T]) look() {
	held := s.read()
	if held == s.held {
		return
	}
	s.held = held
	made, err := s.load()
	if err != nil {
		s.log.Warn("renewed files cannot be used: what the former had stays", "of", s.what, "files", s.files, "cause", err)
		return
	}
	s.made.Store(&made)
	s.log.Info("files were renewed", "of", s.what, "files", s.files)
}

func (s *Source[T]) read() digest {
	all := sha256.New()
	for _, path := range s.files {
		text, err := config.ReadFile(path)
		if err != nil {
			text = []byte(err.Error())
		}
		part := sha256.Sum256(text)
		all.Write(part[:])
	}
	return digest(all.Sum(nil))
}

// Certificates are the TLS configuration that their files last made.
type Certificates struct{ *Source[*tls.Config] }

// NewCertificates is New for them.
func NewCertificates(log *slog.Logger, load func() (*tls.Config, error), files ...string) (Certificates, error) {
	s, err := New(log, "certificates", load, files...)
	return Certificates{s}, err
}

// Until returns when the certificate that is shown now expires; the zero time if none is.
func (c Certificates) Until() time.Time {
	shown := c.Now().Certificates
	if len(shown) == 0 {
		return time.Time{}
	}
	return shown[0].Leaf.NotAfter
}
