package wire

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// frameLen is the slow and obvious way to find the length of the frame at the beginning of b: 0 if it is not whole.
func frameLen(b []byte) (int, error) { return lenInside(b, false) }

// lenInside is frameLen for what may be inside another frame.
func lenInside(b []byte, inside bool) (int, error) {
	end := bytes.IndexByte(b, '\n')
	if len(b) == 0 {
		return 0, nil
	}
	if !strings.ContainsRune("+-:_#,($=!*~>%|", rune(b[0])) {
		return 0, ErrFraming
	}
	line := b[1:]
	if end >= 0 {
		line = b[1:end]
	}
	if strings.ContainsRune("+-:_#,(", rune(b[0])) {
		return end + 1, nil
	}
	text := strings.ReplaceAll(string(line), "\r", "")
	digits := strings.TrimPrefix(text, "-")
	n, err := strconv.ParseInt("0"+digits, 10, 64)
	if err != nil || n > countMax || strings.Trim(digits, "0123456789") != "" {
		return 0, ErrFraming
	}
	if end < 0 {
		return 0, nil
	}
	if strings.HasPrefix(text, "-") {
		return end + 1, nil
	}
	switch b[0] {
	case '$', '=', '!':
		if int64(len(b)-end-1) < n+2 {
			return 0, nil
		}
		return end + 1 + int(n) + 2, nil
	case '%':
		n *= 2
	case '|':
		n = 2*n + 1
	case '>':
		if inside { // the value in whose place it came is behind it
			n++
		}
	}
	at := end + 1
	for range n {
		k, err := lenInside(b[at:], true)
		if k == 0 || err != nil {
			return 0, err
		}
		at += k
	}
	return at, nil
}

var frames = []string{
	"+OK\r\n", "-ERR no\r\n", ":-12\r\n", "$3\r\na\nb\r\n", "$-1\r\n", "$0\r\n\r\n", "*-1\r\n", "*0\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123\r\n",
	"*2\r\n$1\r\na\r\n*1\r\n:1\r\n", "%1\r\n+k\r\n*2\r\n+a\r\n+b\r\n", "~1\r\n+a\r\n", ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n",
	"*2\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n:1\r\n", "*1\r\n>1\r\n+a\r\n>1\r\n*1\r\n+b\r\n%1\r\n+c\r\n+d\r\n",
	"|1\r\n+k\r\n+v\r\n*1\r\n+x\r\n", "=5\r\ntxt:a\r\n", "!3\r\nERR\r\n", "*1\r\n|1\r\n+k\r\n:1\r\n+x\r\n",
}

// split feeds b in pieces and returns the lengths of the frames.
func split(b []byte, cuts []byte) (lengths []int, err error) {
	var f Framer
	length := 0
	for i := 0; len(b) > 0; i++ {
		size := len(b)
		if len(cuts) > 0 {
			size = min(size, 1+int(cuts[i%len(cuts)]))
		}
		piece := b[:size]
		b = b[size:]
		for len(piece) > 0 {
			n, ends, err := f.Next(piece)
			if err != nil {
				return lengths, err
			}
			if n == 0 {
				return lengths, errors.New("no progress")
			}
			length += n
			piece = piece[n:]
			if ends {
				lengths, length = append(lengths, length), 0
			}
			if ends != f.Between() {
				return lengths, errors.New("between frames is not where one ends")
			}
		}
	}
	return lengths, nil
}

func TestFramesEndWhereTheyDo(t *testing.T) {
	whole := []byte(strings.Join(frames, ""))
	var want []int
	for _, f := range frames {
		want = append(want, len(f))
	}
	for size := range 40 {
		got, err := split(whole, []byte{byte(size)})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("pieces of %d: %v, %v, want %v", size+1, got, err, want)
		}
	}
}

func TestWhatIsNoRESPIsRefused(t *testing.T) {
	for _, text := range []string{"x", "\r\n", "$a\r\n", "*?\r\n", "$1-\r\n", "*99999999999999999999\r\n", "$--1\r\n"} {
		if _, err := split([]byte(text), nil); !errors.Is(err, ErrFraming) {
			t.Errorf("%q: %v", text, err)
		}
	}
	nested := strings.Repeat("*1000000000000\r\n", 1<<20)
	if _, err := split([]byte(nested), nil); err != nil && !errors.Is(err, ErrFraming) {
		t.Errorf("nested: %v", err)
	}
}

func FuzzFramer(f *testing.F) {
	for _, frame := range frames {
		f.Add([]byte(frame+frame), []byte{0, 3})
	}
	f.Fuzz(func(t *testing.T, b, cuts []byte) {
		if len(b) > 1<<12 {
			return
		}
		got, err := split(b, cuts)
		for i, rest := 0, b; ; i++ {
			n, bad := frameLen(rest)
			if n == 0 || bad != nil {
				if i != len(got) || errors.Is(bad, ErrFraming) != errors.Is(err, ErrFraming) {
					t.Fatalf("%q: %v, %v; the model has %d frames, %v", b, got, err, i, bad)
				}
				return
			}
			if i >= len(got) || got[i] != n {
				t.Fatalf("%q: %v, %v; frame %d has %d bytes", b, got, err, i, n)
			}
			rest = rest[n:]
		}
	})
}

func TestTheFirstWordOfAMessage(t *testing.T) {
	for _, c := range []struct {
		text, word string
		more       bool
	}{
		{"*3\r\n$7\r\nmessage\r\n$1\r\nc", "message", false},
		{">2\r\n$10\r\ninvalidate\r\n", "invalidate", false},
		{"*3\r\n$7\r\nmess", "", true}, {"*", "", true}, {"*3\r\n", "", true}, {"*3\r\n$7\r", "", true},
		{"*1\r\n:5\r\n", "", false}, {"*1\r\n$200\r\n" + strings.Repeat("x", 100), "", false},
	} {
		word, more := FirstWord([]byte(c.text))
		if string(word) != c.word || more != c.more {
			t.Errorf("%q: %q, %v", c.text, word, more)
		}
	}
}
