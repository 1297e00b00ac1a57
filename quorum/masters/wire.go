package masters

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// A wire carries RESP2 on a connection that is ready for commands. One goroutine may send while another receives.
//
// go-redis makes the connections. A lane's commands do not go through go-redis: there they take twice as long and make
// garbage. And if a batch breaks off in the middle, go-redis does not tell which commands were answered.
type wire struct {
	conn io.ReadWriter

	out    []byte
	outErr error // the error that ended sending

	in    *bufio.Reader
	held  hoard
	inErr error // the error that ended receiving: later replies would be out of step
}

const (
	wireBuffer = 16 << 10 // of either direction
	nestedMost = 128      // arrays in arrays; Redis itself nests the replies of scripts less deeply
	lineMost   = 1 << 20  // no line is that long: long texts come as bulk strings
)

// A replyError is an error reply of a master.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError marks replyError, for go-redis, as a master's error and not an error of the connection.
func (e replyError) RedisError() {}

var _ redis.Error = replyError("")

var errWire = errors.New("the master does not speak RESP")

// errFull is the error of a call whose answer was read, and not kept.
const errFull = replyError("more than max_memory has room for")

func newWire(conn io.ReadWriter, room *Room) *wire {
	return &wire{conn: conn, in: bufio.NewReaderSize(conn, wireBuffer), held: hoard{room: room}}
}

// exec is Conn's Exec.
func (w *wire) exec(calls []*Call) error {
	if w.inErr != nil {
		return w.inErr
	}
	if err := w.send(calls); err != nil {
		return err
	}
	return w.receive(calls)
}

// send is Conn's Send.
func (w *wire) send(calls []*Call) error {
	if w.outErr == nil {
		w.outErr = w.write(calls)
	}
	return w.outErr
}

// receive is Conn's Receive.
func (w *wire) receive(calls []*Call) error {
	if w.inErr == nil {
		w.inErr = w.read(calls)
		w.held.end()
	}
	return w.inErr
}

func (w *wire) write(calls []*Call) error {
	for _, c := range calls {
		w.out = appendCommand(w.out, c.Args)
		if len(w.out) >= wireBuffer {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return w.flush()
}

func (w *wire) read(calls []*Call) error {
	for _, c := range calls {
		w.held.begin()
		reply, err := w.reply(0)
		if err != nil {
			return err
		}
		if w.held.full {
			reply = errFull
		}
		c.Answered = true
		if c.Err, _ = reply.(error); c.Err == nil {
			c.Reply = reply
		}
	}
	return nil
}

func (w *wire) flush() error {
	_, err := w.conn.Write(w.out)
	if w.out = w.out[:0]; cap(w.out) > 4*wireBuffer {
		w.out = nil // one large value must not stay for good
	}
	return err
}

func appendCommand(b []byte, args []any) []byte {
	b = appendLen(b, '*', len(args))
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			b = appendBulk(b, v)
		case *string:
			b = appendBulk(b, *v)
		case int64:
			b = appendInt(b, v)
		case *int64:
			b = appendInt(b, *v)
		default:
			b = appendBulk(b, fmt.Sprint(v))
		}
	}
	return b
}

func appendLen(b []byte, kind byte, n int) []byte {
	b = strconv.AppendInt(append(b, kind), int64(n), 10)
	return append(b, '\r', '\n')
}

func appendBulk(b []byte, s string) []byte {
	b = append(appendLen(b, '$', len(s)), s...)
	return append(b, '\r', '\n')
}

func appendInt(b []byte, n int64) []byte {
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], n, 10)
	b = append(appendLen(b, '$', len(text)), text...)
	return append(b, '\r', '\n')
}

// reply reads one reply: nil, an int64, a string, a []any of these, or a replyError. An array with an error inside
// becomes the error.
func (w *wire) reply(depth int) (any, error) {
	line, err := w.line()
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], line[1:]
	switch {
	case kind == '+' && string(rest) == "OK":
		return "OK", nil
	case (kind == '+' || kind == '-') && !w.held.keep(len(rest)):
		return nil, nil
	case kind == '+':
		return string(rest), nil
	case kind == '-':
		return replyError(rest), nil
	}
	n, err := strconv.ParseInt(string(rest), 10, 64)
	switch {
	case err != nil:
		return nil, errWire
	case kind == ':':
		return n, nil
	case n == -1 && (kind == '$' || kind == '*'):
		return nil, nil
	case n < 0 || n > math.MaxInt32:
		return nil, errWire
	case kind == '$':
		return w.bulk(int(n))
	case kind == '*' && depth < nestedMost:
		return w.list(int(n), depth+1)
	}
	return nil, errWire
}

// line reads a line, and returns the line without its end. The line stays valid until the next read, and is not empty.
func (w *wire) line() ([]byte, error) {
	line, err := w.in.ReadSlice('\n')
	var head []byte
	for errors.Is(err, bufio.ErrBufferFull) { // an error's text may be that long
		if head = append(head, line...); len(head) > lineMost {
			return nil, errWire
		}
		line, err = w.in.ReadSlice('\n')
	}
	if err != nil {
		return nil, err
	}
	if head != nil {
		line = append(head, line...)
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, errWire
	}
	return line[:len(line)-2], nil
}

// bulk takes memory only for bytes that have come, and for which there is room.
func (w *wire) bulk(n int) (any, error) {
	size := n + len("\r\n")
	if !w.held.keep(n) {
		if _, err := w.in.Discard(n); err != nil {
			return nil, err
		}
		size = len("\r\n")
	}
	if size <= wireBuffer {
		b, err := w.in.Peek(size)
		if err != nil {
			return nil, err
		}
		defer func() { _, _ = w.in.Discard(size) }()
		return unended(b)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, w.in, int64(size)); err != nil {
		return nil, err
	}
	return unended(b.Bytes())
}

// unended returns a bulk string without its end.
func unended(b []byte) (any, error) {
	text, ended := bytes.CutSuffix(b, []byte("\r\n"))
	if !ended {
		return nil, errWire
	}
	return string(text), nil
}

func (w *wire) list(n, depth int) (any, error) {
	list := make([]any, 0, min(n, 1024))
	var failed any // a replyError
	for range n {
		item, err := w.reply(depth)
		if err != nil {
			return nil, err
		}
		if inner, ok := item.(replyError); ok && failed == nil {
			failed = inner
		}
		if w.held.keep(itemSize) {
			list = append(list, item)
		}
	}
	if failed != nil {
		return failed, nil
	}
	return list, nil
}
