// Package renewed follows files that are renewed in place: certificates, by certbot or cert-manager, and passwords, by
// the keeper of a deployment's secrets. Otherwise a proxy would be shut out on the day when the certificate or password
// of its start ends.
//
// The files are read again before a handshake or a login, at most once in lookEvery, and not by a clock of their own. A
// handshake uses the files read before it. Existing connections stay as they are.
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

// lookEvery is for how long files are taken as unchanged.
const lookEvery = time.Second

// A Source has the latest result of its files.
type Source[T any] struct {
	what  string
	load  func() (T, error)
	files []string
	log   *slog.Logger
	every time.Duration

	made atomic.Pointer[T]

	mu     sync.Mutex // held by the goroutine that reads the files; guards the fields below
	looked time.Time
	held   digest // the files' content, or why the files could not be read
}

type digest [sha256.Size]byte

// New returns a source of load's results. files are the files that load reads; "" for a file that is not set. what
// names the result in the log, such as "certificates". The error is load's; the source then has the zero value until
// the files are renewed.
func New[T any](log *slog.Logger, what string, load func() (T, error), files ...string) (*Source[T], error) {
	set := slices.DeleteFunc(slices.Clone(files), func(path string) bool { return path == "" })
	s := &Source[T]{what: what, load: load, files: set, log: log, every: lookEvery}
	s.held = s.read()
	made, err := load()
	s.made.Store(&made)
	s.looked = time.Now()
	return s, err
}

// Now returns the result of the files, which the caller must not change. While the files cannot be used, Now returns
// the former result.
func (s *Source[T]) Now() T {
	if s.mu.TryLock() { // while another goroutine reads the files, nobody waits
		if time.Since(s.looked) >= s.every {
			s.look()
			s.looked = time.Now()
		}
		s.mu.Unlock()
	}
	return *s.made.Load()
}

// look makes the result anew if the files have changed. look notes the files' content before load reads them, so that a
// change in between shows the next time.
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

// Certificates are the TLS configuration of the latest files.
type Certificates struct{ *Source[*tls.Config] }

// NewCertificates is New for certificates.
func NewCertificates(log *slog.Logger, load func() (*tls.Config, error), files ...string) (Certificates, error) {
	s, err := New(log, "certificates", load, files...)
	return Certificates{s}, err
}

// Until returns when the certificate that is shown now expires; the zero time if none is shown.
func (c Certificates) Until() time.Time {
	shown := c.Now().Certificates
	if len(shown) == 0 {
		return time.Time{}
	}
	return shown[0].Leaf.NotAfter
}
