package harness

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A timer waits more exactly than time.Sleep, which rounds up to a millisecond where nothing else happens.
type timer struct {
	fd   int
	file *os.File // the same, which Go's scheduler waits for
}

func newTimer() (*timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &timer{fd, os.NewFile(uintptr(fd), "timer")}, nil
}

// wait returns when the time is over. One goroutine uses the timer.
func (t *timer) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(t.fd, 0, &spec, nil); err != nil {
		time.Sleep(d)
		return
	}
	var expirations [8]byte
	_, _ = t.file.Read(expirations[:])
}

func (t *timer) stop() { _ = t.file.Close() }
