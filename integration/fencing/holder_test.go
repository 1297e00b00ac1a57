package fencing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockproxy/integration/harness"
)

// The variables that make this program a holder, in place of running tests.
const (
	holderKind  = "FENCING_HOLDER_KIND"  // the name of the resource's kind
	holderWhere = "FENCING_HOLDER_WHERE" // where the resource is
	holderProxy = "FENCING_HOLDER_PROXY" // the address of lockproxy
)

func TestMain(m *testing.M) {
	if os.Getenv(holderKind) == "" {
		code := m.Run()
		stopPostgres()
		os.Exit(code)
	}
	if err := hold(os.Stdin, os.Stdout); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// hold is what an application does: it locks, reads, works for a while, and writes. While it works it waits for a line of input.
func hold(in io.Reader, out io.Writer) error {
	ctx := context.Background()
	store, err := findKind(os.Getenv(holderKind)).open(os.Getenv(holderWhere))
	if err != nil {
		return err
	}
	fence, err := lock(ctx, os.Getenv(holderProxy), "500")
	if err != nil {
		return err
	}
	value, err := store.Read(ctx, resource, fence)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "works")
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return store.Write(ctx, resource, value+"late ", fence) },
		func() error { _, err := store.Read(ctx, resource, fence); return err },
	} {
		switch err := step(); {
		case errors.Is(err, ErrStale):
			fmt.Fprintln(out, "refused")
		case err != nil:
			return err
		default:
			fmt.Fprintln(out, "done")
		}
	}
	return nil
}

// lock waits for the lock of the resource, and returns its fence.
func lock(ctx context.Context, proxy, ttl string) (int64, error) {
	client := redis.NewClient(&redis.Options{Addr: proxy, ReadTimeout: 2 * time.Minute, MaxRetries: -1})
	defer client.Close()
	reply, err := client.Do(ctx, "LOCK", resource, ttl, "WAIT", "60000").Result()
	for errors.Is(err, redis.Nil) { // on a busy machine, answers may come too late for a short TTL
		reply, err = client.Do(ctx, "LOCK", resource, ttl, "WAIT", "60000").Result()
	}
	if err != nil {
		return 0, err
	}
	fence, ok := reply.(map[any]any)["fence"].(int64)
	if !ok {
		return 0, fmt.Errorf("LOCK: %v", reply)
	}
	return fence, nil
}

// A holder is a process that runs hold.
type holder struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func startHolder(t *testing.T, kind, where, proxy string) *holder {
	t.Helper()
	h := &holder{t: t, cmd: exec.Command(os.Args[0])}
	h.cmd.Env = append(os.Environ(), holderKind+"="+kind, holderWhere+"="+where, holderProxy+"="+proxy)
	h.cmd.Stderr = os.Stderr
	in, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.in, h.out = in, bufio.NewScanner(out)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
	})
	return h
}

// says demands the next line of the holder's output.
func (h *holder) says(want string) {
	h.t.Helper()
	if !h.out.Scan() || h.out.Text() != want {
		h.t.Fatalf("the holder says %q, want %q (%v)", h.out.Text(), want, h.out.Err())
	}
}

// stop stops the process, and returns when the kernel says that it is stopped.
func (h *holder) stop() {
	h.t.Helper()
	if err := h.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		h.t.Fatal(err)
	}
	err := harness.Poll(time.Minute, func() error {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(h.cmd.Process.Pid) + "/stat")
		if errors.Is(err, os.ErrNotExist) {
			return nil // not Linux
		}
		_, after, _ := strings.Cut(string(text), ") ")
		if !strings.HasPrefix(after, "T") {
			return fmt.Errorf("it is not stopped: %q, %w", text, errors.Join(err))
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// goOn lets a stopped process go on with its work.
func (h *holder) goOn() {
	h.t.Helper()
	if _, err := io.WriteString(h.in, "go on\n"); err != nil {
		h.t.Fatal(err)
	}
	if err := h.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		h.t.Fatal(err)
	}
}
