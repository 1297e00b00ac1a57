package audit

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockproxy/quorum"
	"lockproxy/resp"
)

// told is what the process's log was told.
type told struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *told) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *told) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

const (
	warning  = "lines of the audit log are dropped"
	recovery = "the audit log is written again"
)

func opened(t *testing.T, name string) (*Log, *told) {
	t.Helper()
	log := &told{}
	l, err := Open(name, io.Discard, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, log
}

func event(key string) resp.Event {
	return resp.Event{What: resp.Granted, Key: quorum.Key{Name: key}, Token: "me", Client: resp.Client{Addr: "10.0.0.9:1", User: "default"}}
}

// eventually waits until the condition is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// keysIn returns the keys of the lines in a file; "?" for a line that is not JSON.
func keysIn(path string) string {
	text, _ := os.ReadFile(path)
	var keys []string
	for _, row := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		var is line
		if json.Unmarshal([]byte(row), &is) != nil {
			is.Key = "?"
		}
		keys = append(keys, is.Key)
	}
	return strings.Join(keys, " ")
}

func TestALineTellsWhoDidWhat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, _ := opened(t, path)
	before := time.Now()
	e := event("job:<7>")
	e.Fence, e.Cause, e.Client.Name, e.Client.Library = 12, "why", "worker", "redis-py 5"
	l.Told(e)
	e = event("\xff\x00")
	e.Token = strings.Repeat("x", tokenMax+1)
	l.Told(e)
	eventually(t, "no lines", func() bool { return strings.Count(keysIn(path), " ") == 1 })
	text, _ := os.ReadFile(path)
	first, second, _ := strings.Cut(string(text), "\n")
	at, rest, _ := strings.Cut(strings.TrimPrefix(first, `{"time":"`), `"`)
	if when, err := time.Parse(time.RFC3339Nano, at); err != nil || when.Before(before.Truncate(0)) || when.After(time.Now()) {
		t.Errorf("time %q", at)
	}
	want := fmt.Sprintf(`,"event":"granted","db":0,"key":"job:<7>","token_sha256":"%x","fence":12,"client":"10.0.0.9:1","name":"worker",`+
		`"library":"redis-py 5","user":"default","cause":"why"}`, sha256.Sum256([]byte("me")))
	if rest != want {
		t.Errorf("got  %s\nwant %s", rest, want)
	}
	if want := `"key":"","key_base64":"/wA=","client":"10.0.0.9:1","user":"default"}` + "\n"; !strings.HasSuffix(second, want) {
		t.Errorf("a key that is no text: %s", second)
	}
	if is, err := os.Stat(path); err != nil || is.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", is.Mode(), err)
	}
}

// As logrotate does: by renaming, with and without a new file in its place, and by copytruncate.
func TestTheFileIsRotated(t *testing.T) {
	dir := t.TempDir()
	path, former := filepath.Join(dir, "audit.log"), filepath.Join(dir, "audit.log.1")
	l, log := opened(t, path)
	write := func(key, want string) {
		t.Helper()
		l.Told(event(key))
		eventually(t, "no line "+key, func() bool { return keysIn(path) == want })
	}
	write("a", "a")
	write("b", "a b")
	for _, step := range []struct {
		how    string
		rotate func() error
	}{
		{"renamed", func() error { return os.Rename(path, former) }},
		{"renamed, and made", func() error {
			if err := os.Rename(path, former); err != nil {
				return err
			}
			return os.WriteFile(path, nil, 0o600)
		}},
		{"deleted", func() error { return os.Remove(path) }},
		{"truncated", func() error { return os.Truncate(path, 0) }},
	} {
		if err := step.rotate(); err != nil {
			t.Fatal(step.how, err)
		}
		write(step.how, step.how)
		write("more", step.how+" more")
	}
	if got := keysIn(former); got != "renamed more" {
		t.Errorf("the former file has %q", got)
	}
	if l.Dropped() != 0 || log.count(warning) != 0 {
		t.Errorf("%d lines are dropped", l.Dropped())
	}
}

// A full disk costs lines, and the process's log is told once.
func TestAFullDiskDropsLinesAndIsToldOnce(t *testing.T) {
	full := "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("this system has no ", full)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	if err := os.Symlink(full, path); err != nil {
		t.Fatal(err)
	}
	l, log := opened(t, path)
	for i := range 100 {
		l.Told(event(fmt.Sprint(i)))
	}
	eventually(t, "lines are not counted", func() bool { return l.Dropped() == 100 })
	eventually(t, "the log is not told the cause", func() bool { return log.count("no space left on device") > 0 }) // behind the count
	if err := os.Remove(path); err != nil {                                                                         // there is room again
		t.Fatal(err)
	}
	l.Told(event("again"))
	eventually(t, "no line", func() bool { return keysIn(path) == "again" })
	eventually(t, "recovery is not told", func() bool { return log.count(recovery) == 1 })
	if n := log.count(warning); n != 1 {
		t.Errorf("the log was told %d times", n)
	}
}

// A line that was written in part, as a disk became full, does not spoil the next.
func TestATornLineSpoilsNoOther(t *testing.T) {
	l := &Log{to: half{}, log: slog.New(slog.DiscardHandler), lines: make(chan line, 1)}
	l.write(l.gather(line{Key: "torn"}))
	if l.Dropped() != 1 {
		t.Errorf("%d lines are dropped", l.Dropped())
	}
	if text := l.gather(line{Key: "next"}); !strings.HasPrefix(string(text), "\n{") {
		t.Errorf("the next line begins amid the former: %q", text)
	}
}

// half takes half of what it is given.
type half struct{}

func (half) Write(b []byte) (int, error) { return len(b) / 2, syscall.ENOSPC }

// A reader that has stopped reading stops nobody who tells the log.
func TestASlowReaderOfAPipeStopsNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := Open(path, io.Discard, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "nobody reads this pipe") {
		t.Fatalf("a pipe that nobody reads: %v", err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	l, log := opened(t, path)
	const all = 4 * ahead
	for i := range all {
		l.Told(event(fmt.Sprint(i)))
	}
	if l.Dropped() == 0 || log.count(warning) != 1 {
		t.Fatalf("of %d lines %d are dropped, told %d times", all, l.Dropped(), log.count(warning))
	}
	kept, lines := all-int(l.Dropped()), bufio.NewScanner(reader)
	for range kept {
		var is line
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &is) != nil {
			t.Fatalf("line %q, %v", lines.Bytes(), lines.Err())
		}
	}
	l.Told(event("last"))
	if !lines.Scan() || !strings.Contains(lines.Text(), `"key":"last"`) {
		t.Errorf("the last line is %q", lines.Text())
	}
	eventually(t, "recovery is not told", func() bool { return log.count(recovery) == 1 })
}

func TestClosingDoesNotWaitForAReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	l, err := Open(path, io.Discard, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * ahead {
		l.Told(event("k"))
	}
	began := time.Now()
	if l.Close(); time.Since(began) > 20*patience {
		t.Errorf("it took %v", time.Since(began))
	}
}

func TestCheckSeesWhatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		"": "", Stdout: "", filepath.Join(dir, "audit.log"): "",
		dir:                               "audit_log: " + dir + " is a directory; name a file in it",
		filepath.Join(dir, "none", "log"): "make that directory, or name a file elsewhere",
	} {
		if err := Check(name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
