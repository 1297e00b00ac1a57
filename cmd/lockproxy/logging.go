package main

import (
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"lockproxy/cmd/lockproxy/config"
)

// A logbook takes the log's lines and hands them on, so that whoever logs waits for nobody: a pipe whose reader hangs, or
// a terminal after Ctrl-S, may take no line for a long time, and locks must go on.
type logbook struct {
	to      io.Writer
	own     *slog.Logger // for the line about lines that are missing
	lines   chan []byte
	closing chan struct{}
	closed  chan struct{}
	missing atomic.Int64 // lines that found no room
}

// logAhead is how many lines may wait. Further lines are dropped, and counted.
const logAhead = 4096

// logPatience is how long the end of the process waits for the last lines to be taken.
const logPatience = time.Second

func newLogbook(cfg *config.Config, to io.Writer) *logbook {
	l := &logbook{to: to, own: newLogger(cfg, to), lines: make(chan []byte, logAhead),
		closing: make(chan struct{}), closed: make(chan struct{})}
	go l.run()
	return l
}

// Write takes one line.
func (l *logbook) Write(line []byte) (int, error) {
	select {
	case l.lines <- append([]byte(nil), line...):
	default:
		l.missing.Add(1)
	}
	return len(line), nil
}

func (l *logbook) run() {
	defer close(l.closed)
	for {
		select {
		case line := <-l.lines:
			l.hand(line)
		case <-l.closing:
			for len(l.lines) > 0 {
				l.hand(<-l.lines)
			}
			return
		}
	}
}

func (l *logbook) hand(line []byte) {
	_, _ = l.to.Write(line)
	if n := l.missing.Load(); n > 0 && len(l.lines) == 0 {
		l.missing.Add(-n)
		l.own.Warn("lines of this log are missing here: they were not taken", "lines", n)
	}
}

// Close waits for the lines that were written before, for at most logPatience.
func (l *logbook) Close() {
	close(l.closing)
	select {
	case <-l.closed:
	case <-time.After(logPatience):
	}
}
