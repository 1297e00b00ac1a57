package upstream

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"

	"lockproxy/resp/wire"
)

// Bounds of a reply to a question of our own: COMMAND has the largest, with about 200 KB.
const (
	replyDepthMax = 16
	replyItemsMax = 1 << 20
	replyBytesMax = 16 << 20
)

// A ReplyError is an error reply of the server.
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// Passing says whether the server may accept the same a while later.
func (e ReplyError) Passing() bool {
	code, rest, _ := strings.Cut(string(e), " ")
	return code == "LOADING" || code == "ERR" && rest == "max number of clients reached"
}

// Busy says whether the server refuses all commands while a script runs.
func (e ReplyError) Busy() bool { return strings.HasPrefix(string(e), "BUSY ") }

// WantsLogin says whether the server wants a login.
func (e ReplyError) WantsLogin() bool {
	code, _, _ := strings.Cut(string(e), " ")
	return code == "NOAUTH" || code == "WRONGPASS"
}

// A reader reads replies whole: strings and lines as string, integers as int64, aggregates as []any, nulls as nil, and
// errors as ReplyError.
type reader struct {
	*bufio.Reader
	items, bytes int // that may still come
}

func readReply(r *bufio.Reader) (any, error) {
	return (&reader{r, replyItemsMax, replyBytesMax}).value(replyDepthMax)
}

func (r *reader) value(depth int) (any, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, wire.ErrFraming
	case err != nil:
		return nil, err
	case len(line) < 3 || depth == 0 || r.items == 0:
		return nil, wire.ErrFraming
	}
	r.items--
	kind, text := line[0], string(line[1:len(line)-2])
	switch kind {
	case '+', '#', ',', '(':
		return text, nil
	case '-':
		return ReplyError(text), nil
	case '_':
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, wire.ErrFraming
	}
	switch kind {
	case ':':
		return n, nil
	case '$', '=', '!':
		return r.text(n)
	case '*', '~', '>':
		return r.list(n, depth)
	case '%':
		return r.list(2*n, depth)
	}
	return nil, wire.ErrFraming
}

func (r *reader) text(n int64) (any, error) {
	if n < 0 {
		return nil, nil
	}
	if n > int64(r.bytes) {
		return nil, wire.ErrFraming
	}
	r.bytes -= int(n)
	b := make([]byte, n+2)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	return string(b[:n]), nil
}

func (r *reader) list(n int64, depth int) (any, error) {
	if n < 0 {
		return nil, nil
	}
	if n > int64(r.items) {
		return nil, wire.ErrFraming
	}
	list := []any{}
	for range n {
		v, err := r.value(depth - 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}
