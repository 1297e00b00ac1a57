package console

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"lockproxy/resp"
)

// How many lines are kept.
const (
	linesKept = 50
	lineMax   = 1000 // bytes of one
)

// A Line is a line of the log that warns.
type Line struct {
	At    time.Time
	Level string
	Text  string
}

// Warnings keeps the log's last warnings, and apart from the warnings the last lines about lost locks.
type Warnings struct {
	mu   sync.Mutex // guards the fields below
	all  []Line     // the latest first
	lost []Line
}

// Handler returns a handler that keeps warnings at any log level, and hands to next the lines that next's level lets through.
func (w *Warnings) Handler(next slog.Handler) slog.Handler { return keeper{next: next, to: w} }

// last returns copies, the latest line first.
func (w *Warnings) last() (lost, all []Line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lost), slices.Clone(w.all)
}

func (w *Warnings) keep(r *slog.Record, attrs []slog.Attr) {
	var b strings.Builder
	b.WriteString(r.Message)
	add := func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%s", a.Key, printable(a.Value.Resolve().String()))
		return b.Len() <= lineMax
	}
	for _, a := range attrs {
		add(a)
	}
	r.Attrs(add)
	text := b.String()
	l := Line{At: r.Time, Level: r.Level.String(), Text: text[:min(len(text), lineMax)]}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = push(w.all, l)
	if r.Message == resp.LostMessage {
		w.lost = push(w.lost, l)
	}
}

func push(lines []Line, l Line) []Line {
	return append([]Line{l}, lines[:min(len(lines), linesKept-1)]...)
}

// A keeper is a slog.Handler.
type keeper struct {
	next  slog.Handler
	to    *Warnings
	attrs []slog.Attr
}

// Enabled implements slog.Handler.
func (k keeper) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn || k.next.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (k keeper) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		k.to.keep(&r, k.attrs)
	}
	if !k.next.Enabled(ctx, r.Level) {
		return nil
	}
	return k.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (k keeper) WithAttrs(attrs []slog.Attr) slog.Handler {
	return keeper{k.next.WithAttrs(attrs), k.to, slices.Concat(k.attrs, attrs)}
}

// WithGroup implements slog.Handler.
func (k keeper) WithGroup(name string) slog.Handler {
	return keeper{k.next.WithGroup(name), k.to, k.attrs}
}
