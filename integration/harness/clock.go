package harness

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

//go:embed testdata/clock.c
var clockSource []byte

// BuildClock compiles the library that lets the clocks of servers be stepped, into dir. It needs Linux and gcc.
func BuildClock(dir string) (shim string, err error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("a server's clock can be stepped on Linux only, not on %s", runtime.GOOS)
	}
	source, shim := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		return "", err
	}
	if out, err := exec.Command("gcc", "-O2", "-shared", "-fPIC", "-o", shim, source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return shim, nil
}

// StartRedisesWithClocks starts n masters whose clocks StepClock can move. Without a shim they cannot be.
func StartRedisesWithClocks(shim string, n int, extra ...string) ([]*Redis, error) {
	var all []*Redis
	for i := range n {
		r, err := startRedis(MasterServer(i), shim, extra)
		if err != nil {
			StopAll(all)
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// prepareClock writes the step, none yet, where the shim will map it.
func (r *Redis) prepareClock() error {
	if r.shim == "" {
		return nil
	}
	r.clock = filepath.Join(r.dir, "clock")
	return r.StepClock(0)
}

// StepClock makes the wall clock of the server differ by so much from the machine's. The change takes effect at once,
// and outlives a restart.
func (r *Redis) StepClock(by time.Duration) error {
	if r.clock == "" {
		return fmt.Errorf("%s was started without the means to step its clock", r.Addr)
	}
	f, err := os.OpenFile(r.clock, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by.Microseconds())), 0)
	return errors.Join(err, f.Close())
}

func (r *Redis) environment() []string {
	env := os.Environ()
	if r.shim != "" {
		env = append(env, "LD_PRELOAD="+r.shim, "LOCKPROXY_TEST_CLOCK="+r.clock)
	}
	return env
}
