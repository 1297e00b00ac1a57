//go:build !linux

package harness

import "time"

type timer struct{}

func newTimer() (*timer, error) { return &timer{}, nil }

func (*timer) wait(d time.Duration) { time.Sleep(d) }

func (*timer) stop() {}
