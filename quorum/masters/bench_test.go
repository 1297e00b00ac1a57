package masters

import (
	"bufio"
	"net"
	"testing"
)

// BenchmarkExec measures batches of 64 SETs over loopback to a server that does nothing but answer.
func BenchmarkExec(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go answerOK(l)
	m, err := NewRedis(l.Addr().String(), RedisOptions{})
	if err != nil {
		b.Fatal(err)
	}
	c, err := m.Dial(b.Context(), 0)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	args := []any{"SET", "job:7", "token", "NX", "PX", int64(30000)}
	calls := make([]*Call, 64)
	for i := range calls {
		calls[i] = &Call{Args: args}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Exec(calls); err != nil {
			b.Fatal(err)
		}
	}
}

// answerOK refuses the first command, which is HELLO, and answers every other with OK.
func answerOK(l net.Listener) {
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	r, w := bufio.NewReader(c), bufio.NewWriter(c)
	reply := "-ERR unknown command\r\n"
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return
		}
		if line[0] == '*' {
			_, _ = w.WriteString(reply)
			reply = "+OK\r\n"
		}
		if r.Buffered() == 0 {
			_ = w.Flush()
		}
	}
}
