package masters

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
)

// A tape is a connection to a master that has said everything already, and says it in pieces.
type tape struct {
	written bytes.Buffer
	says    []byte
	piece   int
}

func (t *tape) Write(b []byte) (int, error) { return t.written.Write(b) }

func (t *tape) Read(b []byte) (int, error) {
	if len(t.says) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), t.piece)], t.says)
	t.says = t.says[n:]
	return n, nil
}

func TestCommandsOnTheWire(t *testing.T) {
	token, at := "t\r\n\x00", int64(-1<<63)
	c := &tape{says: []byte("+OK\r\n+OK\r\n"), piece: 1}
	err := newWire(c, nil).exec([]*Call{call("SET", "k", &token, &at, int64(0)), call("")})
	if err != nil {
		t.Fatal(err)
	}
	want := "*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\nt\r\n\x00\r\n$20\r\n-9223372036854775808\r\n$1\r\n0\r\n*1\r\n$0\r\n\r\n"
	if got := c.written.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRepliesOnTheWire(t *testing.T) {
	long := strings.Repeat("x", 3*wireBuffer)
	for _, x := range []struct {
		says  string
		reply any
		err   string // of the call
	}{
		{says: "+OK\r\n", reply: "OK"},
		{says: "+PONG\r\n", reply: "PONG"},
		{says: "+\r\n", reply: ""},
		{says: ":-9223372036854775808\r\n", reply: int64(-1 << 63)},
		{says: "$-1\r\n"},
		{says: "*-1\r\n"},
		{says: "$0\r\n\r\n", reply: ""},
		{says: "$4\r\na\r\nb\r\n", reply: "a\r\nb"},
		{says: fmt.Sprintf("$%d\r\n%s\r\n", len(long), long), reply: long},
		{says: "*0\r\n", reply: []any{}},
		{says: "*3\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n+b\r\n", reply: []any{"a", []any{int64(1), nil}, "b"}},
		{says: "-WRONGTYPE x\r\n", err: "WRONGTYPE x"},
		{says: "-" + long + "\r\n", err: long},
		{says: "*2\r\n*2\r\n-A\r\n-B\r\n:1\r\n", err: "A"},
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			c := call("X")
			last := call("Y")
			err := newWire(&tape{says: []byte(x.says + ":7\r\n"), piece: piece}, nil).exec([]*Call{c, last})
			switch {
			case err != nil || !c.Answered || !last.Answered || last.Reply != int64(7):
				t.Errorf("%.40q in pieces of %d: %v, answered %v, and then %v", x.says, piece, err, c.Answered, last.Reply)
			case !reflect.DeepEqual(c.Reply, x.reply):
				t.Errorf("%.40q: got %.40q, want %.40q", x.says, c.Reply, x.reply)
			case (c.Err == nil) != (x.err == "") || c.Err != nil && c.Err.Error() != x.err:
				t.Errorf("%.40q: the error is %.40v", x.says, c.Err)
			}
		}
	}
}

func TestWhatIsNotRESPEndsTheConnection(t *testing.T) {
	for _, says := range []string{
		"", "\r\n", "\n", "+OK\n", "x\r\n", "HTTP/1.1 400 Bad Request\r\n", ":\r\n", ":1x\r\n", ":9223372036854775808\r\n",
		"$-2\r\n", "*-2\r\n", "$1\r\nab\r\n", "$1\r\na", "$2147483648\r\n", "*2147483648\r\n", "*2\r\n:1\r\n", "%1\r\n:1\r\n:1\r\n",
		strings.Repeat("*1\r\n", nestedMost+1) + ":1\r\n", "-" + strings.Repeat("x", 2*lineMost) + "\r\n",
	} {
		c, later := call("X"), call("Y")
		w := newWire(&tape{says: []byte(says), piece: 1 << 20}, nil)
		if err := w.exec([]*Call{c}); err == nil || c.Answered {
			t.Errorf("%.40q: %v, answered %v", says, err, c.Answered)
		}
		w.conn.(*tape).says = []byte("+OK\r\n")
		if err := w.exec([]*Call{later}); err == nil || later.Answered {
			t.Errorf("%.40q: goes on afterwards", says)
		}
	}
}

func TestALargeValueLeavesNoLargeBuffer(t *testing.T) {
	c := &tape{says: []byte("+OK\r\n"), piece: 1 << 20}
	w := newWire(c, nil)
	value := strings.Repeat("v", 1<<20)
	if err := w.exec([]*Call{call("SET", "k", value)}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(c.written.String(), value) || cap(w.out) > 4*wireBuffer {
		t.Errorf("wrote %d bytes, keeps %d", c.written.Len(), cap(w.out))
	}
}

// Many large replies at once are read, and not kept: what they ask for is a few bytes. Small ones are, whatever else there is.
func TestThereIsRoomForSoMuchOfWhatMastersAnswer(t *testing.T) {
	large := fmt.Sprintf("$%d\r\n%s\r\n", 1<<20, strings.Repeat("x", 1<<20))
	wide := "*100000\r\n" + strings.Repeat(":1\r\n", 100000)
	for _, piece := range []int{7 << 10, 1 << 22} {
		room := NewRoom(3 << 20)
		says := strings.Repeat(large, 4) + "$5\r\nsmall\r\n" + wide + "*2\r\n" + large + large + ":7\r\n"
		calls := make([]*Call, 8)
		for i := range calls {
			calls[i] = call("X")
		}
		w := newWire(&tape{says: []byte(says), piece: piece}, room)
		if err := w.exec(calls); err != nil {
			t.Fatal(err)
		}
		for i, full := range []bool{false, false, false, true, false, true, true, false} {
			if !calls[i].Answered || errors.Is(calls[i].Err, errFull) != full {
				t.Errorf("in pieces of %d, reply %d: answered %v, %v", piece, i, calls[i].Answered, calls[i].Err)
			}
		}
		if calls[4].Reply != "small" || calls[7].Reply != int64(7) {
			t.Errorf("small replies are %v and %v", calls[4].Reply, calls[7].Reply)
		}
		if used := room.used.Load(); used != 0 {
			t.Errorf("%d bytes stay taken", used)
		}
		again := call("X")
		w.conn.(*tape).says = []byte(large)
		if err := w.exec([]*Call{again}); err != nil || again.Err != nil {
			t.Errorf("afterwards: %v, %v", err, again.Err)
		}
	}
}

// FuzzWire lets a master say anything: no panic, and the answers are those of whoever reads it in other pieces.
func FuzzWire(f *testing.F) {
	f.Add([]byte("+OK\r\n$1\r\na\r\n*2\r\n:1\r\n-E\r\n:3\r\n"), uint8(3))
	f.Add([]byte("*2147483647\r\n*2147483647\r\n$2147483647\r\n"), uint8(0))
	f.Fuzz(func(t *testing.T, says []byte, piece uint8) {
		read := func(piece int) ([]Call, error) {
			calls := make([]Call, 4)
			err := newWire(&tape{says: says, piece: piece}, nil).exec([]*Call{&calls[0], &calls[1], &calls[2], &calls[3]})
			return calls, err
		}
		a, errA := read(1 << 20)
		b, errB := read(int(piece) + 1)
		if !reflect.DeepEqual(a, b) || (errA == nil) != (errB == nil) {
			t.Errorf("%q: %v, %v; in pieces %v, %v", says, a, errA, b, errB)
		}
		for i, c := range a {
			if !c.Answered && errA == nil || c.Answered && errors.Is(errA, errWire) && i == len(a)-1 {
				t.Errorf("%q: answered %v, %v", says, c.Answered, errA)
			}
		}
	})
}
