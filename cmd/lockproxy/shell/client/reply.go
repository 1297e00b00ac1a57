package client

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Refusal is an error reply of the proxy.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Code returns the first word, as NOQUORUM.
func (r Refusal) Code() string {
	code, _, _ := strings.Cut(string(r), " ")
	return code
}

// Bounds of a reply.
const (
	bulkMax  = 64 << 20
	itemsMax = 1 << 20
	depthMax = 16
	lineMax  = 64 << 10
)

var errReply = errors.New("answers as no lockproxy does")

// readReply reads one reply: nil, an int64, a string, a Refusal, or a []any of these. A map is a list of its keys and values.
func readReply(r *bufio.Reader, depth int) (any, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	if line == "" || depth > depthMax {
		return nil, errReply
	}
	switch kind, rest := line[0], line[1:]; kind {
	case '+', ',', '(':
		return rest, nil
	case '-':
		return Refusal(rest), nil
	case ':':
		return number(rest)
	case '_':
		return nil, nil
	case '#':
		return map[string]int64{"t": 1}[rest], nil
	case '$', '=', '!':
		return readBulk(r, kind, rest)
	case '*', '~', '>', '%':
		n, err := number(rest)
		switch {
		case err != nil || n > itemsMax || n < -1:
			return nil, errReply
		case n == -1:
			return nil, nil
		case kind == '%':
			n *= 2
		}
		return readList(r, n, depth)
	}
	return nil, errReply
}

func readList(r *bufio.Reader, n int64, depth int) (any, error) {
	list := []any{}
	for range n {
		item, err := readReply(r, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, nil
}

func readBulk(r *bufio.Reader, kind byte, size string) (any, error) {
	n, err := number(size)
	if err != nil || n > bulkMax || n < -1 {
		return nil, errReply
	}
	if n == -1 {
		return nil, nil
	}
	text, err := io.ReadAll(io.LimitReader(r, n+2)) // what is announced is not allocated before it arrives
	if err != nil {
		return nil, err
	}
	if int64(len(text)) < n+2 {
		return nil, io.ErrUnexpectedEOF
	}
	text = text[:n]
	switch kind {
	case '=':
		if len(text) > 4 { // "txt:"
			text = text[4:]
		}
	case '!':
		return Refusal(text), nil
	}
	return string(text), nil
}

func number(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, errReply
	}
	return n, nil
}

func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return strings.TrimSuffix(string(line[:len(line)-1]), "\r"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		case len(line) > lineMax:
			return "", errReply
		}
	}
}

// Fields makes a map of a reply that is one.
func Fields(reply any) map[string]any {
	list, _ := reply.([]any)
	fields := make(map[string]any, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		fields[fmt.Sprint(list[i])] = list[i+1]
	}
	return fields
}
