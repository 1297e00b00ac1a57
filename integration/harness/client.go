package harness

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// replyMax is how long a raw client waits for a reply before it calls the server stuck.
const replyMax = 30 * time.Second

// A Conn is a raw RESP client: it sends bytes and reads whole replies as bytes, so that two servers can be compared
// byte for byte. It is used by one goroutine at a time.
type Conn struct {
	net.Conn
	patience time.Duration // for each request and each reply
	r        *bufio.Reader
	buf      []byte // of the request being sent
}

// Dial connects to addr.
func Dial(addr string) (*Conn, error) { return DialPatiently(addr, replyMax) }

// DialPatiently connects to addr. The client waits for so long for the connection, and then for each reply.
func DialPatiently(addr string, patience time.Duration) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c, patience: patience, r: bufio.NewReader(c)}, nil
}

// Ping connects to addr and returns nil if it answers PING.
func Ping(addr string) error {
	c, err := Dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	reply, err := c.Do("PING")
	if err == nil && string(reply) != "+PONG\r\n" {
		err = fmt.Errorf("PING: %q", reply)
	}
	return err
}

// Encode appends the command to dst as an array of bulk strings.
func Encode(dst []byte, args ...string) []byte {
	dst = append(dst, '*')
	dst = strconv.AppendInt(dst, int64(len(args)), 10)
	dst = append(dst, "\r\n"...)
	for _, a := range args {
		dst = append(dst, '$')
		dst = strconv.AppendInt(dst, int64(len(a)), 10)
		dst = append(dst, "\r\n"...)
		dst = append(dst, a...)
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// Send writes raw bytes.
func (c *Conn) Send(raw []byte) error {
	if err := c.SetWriteDeadline(time.Now().Add(c.patience)); err != nil {
		return err
	}
	_, err := c.Write(raw)
	return err
}

// Do sends one command and returns its raw reply.
func (c *Conn) Do(args ...string) ([]byte, error) {
	c.buf = Encode(c.buf[:0], args...)
	if err := c.Send(c.buf); err != nil {
		return nil, err
	}
	return c.Reply()
}

// Reply reads one raw reply of RESP2 or RESP3.
func (c *Conn) Reply() ([]byte, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.patience)); err != nil {
		return nil, err
	}
	return appendReply(nil, c.r)
}

// Peek waits for the first byte of a reply, until the read deadline, and leaves it there.
func (c *Conn) Peek() ([]byte, error) { return c.r.Peek(1) }

// ExpectClosed returns nil if the server closes the connection and sends nothing more before that.
func (c *Conn) ExpectClosed() error {
	if err := c.SetReadDeadline(time.Now().Add(c.patience)); err != nil {
		return err
	}
	b, err := c.r.ReadByte()
	var timeout net.Error
	switch {
	case err == nil:
		return fmt.Errorf("the server sent one more byte, %q", b)
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("the server left the connection open")
	}
	return nil // end of file, or a reset because it did not read all we sent
}

// appendReply appends the next whole reply to dst.
func appendReply(dst []byte, r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("not a reply: %q", line)
	}
	dst = append(dst, line...)
	n, parts := 0, 1
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		return dst, nil
	case '$', '!', '=', '*', '~', '>', '%', '|':
		if n, err = strconv.Atoi(string(line[1 : len(line)-2])); err != nil {
			return nil, fmt.Errorf("not a reply: %q", line)
		}
	default:
		return nil, fmt.Errorf("not a reply: %q", line)
	}
	switch line[0] {
	case '$', '!', '=':
		return appendBulk(dst, r, n)
	case '%', '|':
		parts = 2
	}
	for range n * parts {
		if dst, err = appendReply(dst, r); err != nil {
			return nil, err
		}
	}
	if line[0] == '|' { // an attribute precedes the reply it belongs to
		return appendReply(dst, r)
	}
	return dst, nil
}

func appendBulk(dst []byte, r *bufio.Reader, n int) ([]byte, error) {
	if n < 0 {
		return dst, nil
	}
	start := len(dst)
	dst = append(dst, make([]byte, n+2)...)
	if _, err := io.ReadFull(r, dst[start:]); err != nil {
		return nil, err
	}
	if !bytes.HasSuffix(dst, []byte("\r\n")) {
		return nil, fmt.Errorf("a bulk string of %d bytes does not end there: %q", n, dst[start:])
	}
	return dst, nil
}

// Strings returns the bulk strings of a raw reply that is an array of them.
func Strings(raw []byte) ([]string, error) {
	r := bufio.NewReader(bytes.NewReader(raw))
	head, err := r.ReadString('\n')
	if err != nil || head[0] != '*' {
		return nil, fmt.Errorf("not an array: %q", raw)
	}
	var all []string
	for r.Buffered() > 0 {
		item, err := appendReply(nil, r)
		if err != nil {
			return nil, err
		}
		s, ok := Bulk(item)
		if !ok {
			return nil, fmt.Errorf("not a bulk string: %q", item)
		}
		all = append(all, s)
	}
	return all, nil
}

// Bulk returns the content of a raw bulk string; ok is false for a null and for anything else.
func Bulk(raw []byte) (s string, ok bool) {
	head, rest, found := bytes.Cut(raw, []byte("\r\n"))
	if !found || head[0] != '$' || head[1] == '-' {
		return "", false
	}
	return string(bytes.TrimSuffix(rest, []byte("\r\n"))), true
}

// Int returns the value of a raw integer reply.
func Int(raw []byte) (n int64, ok bool) {
	if len(raw) < 4 || raw[0] != ':' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(raw[1:len(raw)-2]), 10, 64)
	return n, err == nil
}
