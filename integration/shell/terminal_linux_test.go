package shell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A terminal is a lockproxy in a terminal of its own.
type terminal struct {
	master *os.File
	cmd    *exec.Cmd
	done   chan struct{}
	mu     sync.Mutex
	shown  strings.Builder
}

// inTerminal starts lockproxy in a terminal of that size.
func inTerminal(t *testing.T, columns, rows int, args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("NOT RUN: there are no terminals here: %v", err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	side, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{master: master, cmd: exec.Command(binary, args...), done: make(chan struct{})}
	term.resize(t, columns, rows)
	term.cmd.Env = environment("TERM=xterm")
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = side, side, side
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = side.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			term.mu.Lock()
			term.shown.Write(b[:n])
			term.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() {
		_ = term.cmd.Wait()
		<-read // the rest of the output
		close(term.done)
	}()
	t.Cleanup(func() {
		_ = term.cmd.Process.Kill()
		<-term.done
		_ = master.Close()
	})
	return term
}

func (m *terminal) resize(t *testing.T, columns, rows int) {
	t.Helper()
	size := &unix.Winsize{Col: uint16(columns), Row: uint16(rows)}
	if err := unix.IoctlSetWinsize(int(m.master.Fd()), unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
}

func (m *terminal) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := m.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// output returns all that was shown.
func (m *terminal) output() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shown.String()
}

// screen returns the lines of the latest drawing that is complete.
func (m *terminal) screen() []string {
	drawings := strings.Split(m.output(), "\x1b[H")
	for i := len(drawings) - 1; i > 0; i-- {
		if end := strings.Index(drawings[i], "\x1b[0m\x1b[K"); end >= 0 {
			return strings.Split(codes.ReplaceAllString(drawings[i][:end], ""), "\r\n")
		}
	}
	return nil
}

var codes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

func (m *terminal) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-m.done:
	case <-time.After(progressMax):
		t.Fatalf("it does not end: %q", m.output())
	}
	return m.cmd.ProcessState.ExitCode()
}

// wants waits until the screen has so many lines, none too long, and this text.
func (m *terminal) wants(t *testing.T, columns, rows int, text string) {
	t.Helper()
	eventually(t, "the screen", func() error {
		all := m.screen()
		words := strings.Join(strings.Fields(strings.Join(all, " ")), " ")
		if len(all) != rows || !strings.Contains(words, text) {
			return fmt.Errorf("%d lines, without %q: %q", len(all), text, all)
		}
		for _, line := range all {
			if len([]rune(line)) > columns {
				return fmt.Errorf("%q is too long", line)
			}
		}
		return nil
	})
}

func TestTopInATerminal(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, masters)
	fill(t, p)
	term := inTerminal(t, 120, 30, "top", "--proxy", p.Addr, "--every", "1h")
	term.wants(t, 120, 30, "job:8 worker-b")
	if all := strings.Join(term.screen(), "\n"); strings.Index(all, "job:8") > strings.Index(all, "job:7") {
		t.Errorf("who is waited for does not come first: %s", all)
	}
	term.press(t, "k")
	term.wants(t, 120, 30, "sorted by key;")
	eventually(t, "the locks are sorted by name", func() error {
		if all := strings.Join(term.screen(), "\n"); strings.Index(all, "job:8") < strings.Index(all, "job:7") {
			return errors.New(all)
		}
		return nil
	})
	term.resize(t, 40, 9)
	term.wants(t, 40, 9, "PROXY")
	term.resize(t, 200, 50)
	term.wants(t, 200, 50, "job:7 worker-a")
	term.press(t, "q")
	if code := term.exit(t); code != 0 || !strings.HasSuffix(term.output(), "\x1b[?7h\x1b[?25h\x1b[?1049l") {
		t.Errorf("exit code %d; at the end it shows %q", code, term.output()[max(len(term.output())-40, 0):])
	}
}

// The hottest keys stand beside each other in a wide window, below each other in a narrow one, and leave room for locks in a small one.
func TestTopShowsTheHottestKeysInATerminal(t *testing.T) {
	p := startProxy(t, startMasters(t, 3))
	contend(t, p)
	term := inTerminal(t, 120, 40, "top", "--proxy", p.Addr, "--every", "1h", "--sort", "refused")
	term.wants(t, 120, 40, "REFUSED/MIN DB KEY WAITED S/MIN DB KEY")
	term.wants(t, 120, 40, `0 "hot\x1b[2J\n"`)
	if strings.Contains(term.output(), "\x1b[2J") {
		t.Error("a key clears the terminal")
	}
	if all := strings.Join(term.screen(), "\n"); strings.LastIndex(all, "hot") > strings.LastIndex(all, "warm") {
		t.Errorf("the lock with most refusals does not come first: %s", all)
	}
	term.resize(t, 60, 24)
	term.wants(t, 60, 24, `"hot\x1b[2J\n"`)
	term.wants(t, 60, 24, "0 warm WAITED S/MIN DB KEY")
	term.wants(t, 60, 24, "KEY HOLDER")
	term.press(t, "w")
	term.wants(t, 60, 24, "sorted by waiters;")
	term.press(t, "r")
	term.wants(t, 60, 24, "sorted by refused;")
}

// It follows what happens, and ends by ^C as by q.
func TestTopIsRefreshed(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, masters)
	term := inTerminal(t, 120, 30, "top", "--proxy", p.Addr, "--every", "200ms")
	term.wants(t, 120, 30, "KEY HOLDER")
	fill(t, p)
	term.wants(t, 120, 30, "job:7 worker-a")
	masters[0].Kill()
	term.wants(t, 120, 30, "2 of 3")
	p.Kill()
	term.wants(t, 120, 30, "connection refused")
	term.press(t, "\x03")
	if code := term.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A command under a lock has the terminal: it reads what is typed, and ^C is for it.
func TestACommandUnderALockHasTheTerminal(t *testing.T) {
	masters := startMasters(t, 3)
	p := startProxy(t, masters)
	term := inTerminal(t, 80, 24, "run", "k", "--proxy", p.Addr, "--", "sh", "-c", "echo ready; read word; echo got $word; exit 7")
	shows := func(text string) {
		t.Helper()
		eventually(t, "the terminal", func() error {
			if out := term.output(); !strings.Contains(out, text) {
				return fmt.Errorf("%q is not in %q", text, out)
			}
			return nil
		})
	}
	shows("ready")
	term.press(t, "hello\n")
	shows("got hello")
	if code := term.exit(t); code != 7 {
		t.Errorf("exit code %d: %s", code, term.output())
	}
	term = inTerminal(t, 80, 24, "run", "k", "--proxy", p.Addr, "--", "sh", "-c", "trap 'exit 9' INT; echo ready; while :; do sleep 0.01; done")
	shows("ready")
	term.press(t, "\x03")
	if code := term.exit(t); code != 9 {
		t.Errorf("exit code %d: %s", code, term.output())
	}
}
