// Package audit writes the audit log: a line of JSON for each event of a lock. Events enter by Told, on the goroutines that serve
// locks; lines leave to a file or to standard output, on a goroutine of the log's own. Between the two is a bounded queue. If the
// queue is full, or a line cannot be written, the line is dropped and counted, and the process's log is told once: locks wait for no disk.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"lockproxy/resp"
)

// Bounds of the queue, and of the texts in a line.
const (
	ahead    = 8192        // lines
	page     = 64 << 10    // bytes of one write, about
	keyMax   = 512         // bytes of a key
	textMax  = 256         // bytes of any other text
	tokenMax = 4 << 10     // a longer token is not hashed
	patience = time.Second // for the last lines, when the process ends
)

// Stdout is the setting for standard output.
const Stdout = "stdout"

// A Log is an audit log.
type Log struct {
	path    string // "": to is standard output
	to      io.Writer
	file    *os.File // the same as to, for a path; nil while the file cannot be opened
	log     *slog.Logger
	lines   chan line
	closing chan struct{}
	closed  chan struct{}
	dropped atomic.Uint64
	failing atomic.Bool // the process's log has been told that lines are dropped, and not yet that lines are written again
	torn    bool        // the last line was written in part
}

// A line is an Event in its written form. Its texts are short copies.
type line struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"`
	DB      int       `json:"db"`
	Key     string    `json:"key"`
	Bytes   []byte    `json:"key_base64,omitempty"` // where the key is no text
	Token   string    `json:"token_sha256,omitempty"`
	Fence   int64     `json:"fence,omitempty"`
	Client  string    `json:"client"`
	Name    string    `json:"name,omitempty"`
	Library string    `json:"library,omitempty"`
	User    string    `json:"user"`
	Cause   string    `json:"cause,omitempty"`
}

// Check says whether Open could open the named log, as far as can be seen without making the file.
func Check(name string) error {
	if name == "" || name == Stdout {
		return nil
	}
	if is, err := os.Stat(name); err == nil && is.IsDir() {
		return fmt.Errorf("audit_log: %s is a directory; name a file in it", name)
	}
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		return fmt.Errorf("audit_log: %w; make that directory, or name a file elsewhere", err)
	}
	return nil
}

// Open begins the named log: stdout, or a path. Close ends the log.
func Open(name string, stdout io.Writer, log *slog.Logger) (*Log, error) {
	l := &Log{to: stdout, log: log, lines: make(chan line, ahead), closing: make(chan struct{}), closed: make(chan struct{})}
	if name != Stdout {
		l.path = name
		if err := l.open(); err != nil {
			return nil, fmt.Errorf("audit_log: %w; let lockproxy's user write there, or name another file", err)
		}
	}
	go l.run()
	return l, nil
}

// open opens the file. A pipe without a reader is an error; open does not wait for a reader.
func (l *Log) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ENXIO) {
		err = &fs.PathError{Op: "open", Path: l.path, Err: errors.New("nobody reads this pipe")}
	}
	if err == nil {
		l.file, l.to = f, f
	}
	return err
}

// Told takes an event, and does not block.
func (l *Log) Told(e resp.Event) {
	n := line{
		Time: time.Now().UTC(), Event: e.What, DB: e.Key.DB, Key: short(e.Key.Name, keyMax), Fence: e.Fence, Cause: short(e.Cause, textMax),
		Client: e.Client.Addr, Name: short(e.Client.Name, textMax), Library: e.Client.Library, User: short(e.Client.User, textMax),
	}
	if e.Token != "" && len(e.Token) <= tokenMax {
		sum := sha256.Sum256([]byte(e.Token))
		n.Token = hex.EncodeToString(sum[:])
	}
	select {
	case l.lines <- n:
	default:
		l.drop(1, errors.New("more lines wait than are written in time"))
	}
}

// short copies the beginning of a text, so that the whole text need not live on.
func short(text string, most int) string { return strings.Clone(text[:min(most, len(text))]) }

// Dropped is how many lines were dropped. Without a log it is 0.
func (l *Log) Dropped() uint64 {
	if l == nil {
		return 0
	}
	return l.dropped.Load()
}

func (l *Log) drop(lines int, cause error) {
	l.dropped.Add(uint64(lines))
	if !l.failing.Swap(true) {
		l.log.Warn("lines of the audit log are dropped: they cannot be written; locks go on", "cause", cause)
	}
}

// Close waits until the queued lines are written, for a second at most.
func (l *Log) Close() {
	close(l.closing)
	select {
	case <-l.closed:
	case <-time.After(patience):
	}
}

func (l *Log) run() {
	defer close(l.closed)
	for {
		select {
		case n := <-l.lines:
			l.write(l.gather(n))
		case <-l.closing:
			for len(l.lines) > 0 {
				l.write(l.gather(<-l.lines))
			}
			if l.file != nil {
				_ = l.file.Close()
			}
			return
		}
	}
}

// gather returns the text of a line, and of the lines queued behind the line, up to about a page.
func (l *Log) gather(n line) []byte {
	var text bytes.Buffer
	if l.torn {
		text.WriteByte('\n')
	}
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	for {
		if !utf8.ValidString(n.Key) {
			n.Bytes, n.Key = []byte(n.Key), ""
		}
		_ = e.Encode(n) // a buffer takes it, and every field can be encoded
		if text.Len() >= page || len(l.lines) == 0 {
			return text.Bytes()
		}
		n = <-l.lines
	}
}

// write writes lines. After an error, lines not written whole are dropped.
func (l *Log) write(text []byte) {
	n, err := 0, l.follow()
	if err == nil {
		n, err = l.to.Write(text)
	}
	if n > 0 {
		l.torn = text[n-1] != '\n'
	}
	if err != nil {
		l.drop(bytes.Count(text[n:], []byte("\n")), err)
		return
	}
	if len(l.lines) < ahead/2 && l.failing.Swap(false) {
		l.log.Info("the audit log is written again", "lines_dropped_so_far", l.dropped.Load())
	}
}

// follow opens the file anew if its path leads to another file, or to none: logrotate has renamed it.
func (l *Log) follow() error {
	if l.path == "" {
		return nil
	}
	if l.file != nil {
		there, err := os.Stat(l.path)
		mine, own := l.file.Stat()
		if err == nil && own == nil && os.SameFile(there, mine) {
			return nil
		}
		_ = l.file.Close()
		l.file, l.torn = nil, false
	}
	return l.open()
}
