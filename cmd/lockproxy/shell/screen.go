package shell

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// A screen is a terminal that is drawn anew again and again. Its former content comes back when it is closed.
type screen struct {
	out     *os.File
	before  *term.State
	keys    chan byte
	resized chan os.Signal
	ended   chan os.Signal
}

// openScreen returns nil if the output, or the input, is no terminal.
func openScreen(out io.Writer) *screen {
	file := fileOf(out)
	if file == nil || !term.IsTerminal(int(file.Fd())) || !term.IsTerminal(int(os.Stdin.Fd())) {
		return nil
	}
	before, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err != nil {
		return nil
	}
	s := &screen{out: file, before: before, keys: make(chan byte, 16), resized: make(chan os.Signal, 1), ended: make(chan os.Signal, 1)}
	notifyResized(s.resized)
	signal.Notify(s.ended, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for key := make([]byte, 1); ; {
			if n, err := os.Stdin.Read(key); err != nil || n == 0 {
				s.keys <- 'q' // the terminal is gone
				return
			}
			s.keys <- key[0]
		}
	}()
	fmt.Fprint(s.out, "\x1b[?1049h\x1b[?25l\x1b[?7l") // no wrapping: a character may be two columns wide
	return s
}

// fileOf returns the file that a writer writes to, or nil.
func fileOf(w io.Writer) *os.File {
	switch w := w.(type) {
	case *os.File:
		return w
	case interface{ File() *os.File }:
		return w.File()
	}
	return nil
}

func (s *screen) close() {
	fmt.Fprint(s.out, "\x1b[?7h\x1b[?25h\x1b[?1049l")
	_ = term.Restore(int(os.Stdin.Fd()), s.before)
	signal.Stop(s.resized)
	signal.Stop(s.ended)
}

// A room is the size of a window. The zero room has no bounds.
type room struct{ columns, rows int }

// room returns the present size of the window.
func (s *screen) room() room {
	columns, rows, err := term.GetSize(int(s.out.Fd()))
	if err != nil || columns < 1 || rows < 2 {
		return room{80, 24}
	}
	return room{columns, rows}
}

// draw shows as much of a text as there is room for, and a line at the bottom.
func (s *screen) draw(text, bottom string) {
	in := s.room()
	var b strings.Builder
	b.WriteString("\x1b[H")
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range in.rows - 1 {
		if i < len(lines) {
			b.WriteString(cut(lines[i], in.columns))
		}
		b.WriteString("\x1b[K\r\n")
	}
	b.WriteString("\x1b[7m" + cut(bottom, in.columns) + "\x1b[0m\x1b[K")
	_, _ = io.WriteString(s.out, b.String())
}

// cut returns as much of a line as fits.
func cut(line string, columns int) string {
	runes := []rune(line)
	if len(runes) > columns {
		runes = runes[:columns]
	}
	return string(runes)
}
