package resp

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"lockproxy/resp/wire"
	"lockproxy/script"
)

var fuzzSeeds = []string{
	"WATCH k j\r\nMULTI\r\nSETNX k v\r\nEXPIRE k 9\r\nMGET k j\r\nPING\r\nEXEC\r\nMULTI\r\nSET\r\nEXEC a\r\nDISCARD\r\nUNWATCH\r\n",
	"GETSET k v\r\nGETEX k PX 5\r\nGETDEL k\r\nMSETNX k v j w\r\nSET k v IFEQ w\r\nDELEX k IFNE x\r\nMULTI\r\nRESET\r\nHGETALL k\r\n",
	"PING\r\n", "*1\r\n$4\r\nPING\r\n", words("SET k v NX PX 1000") + words("GET k"), "SET \"a\\x41\" 'b'\r\n",
	"*2\r\n$9223372036854775807\r\n", "*2147483647\r\n", "*-1\r\n*0\r\n\r\n", words("HELLO 3") + words("COMMAND"),
	words("SUBSCRIBE a b a") + words("PUBLISH a x") + words("PING") + words("GET x") + words("UNSUBSCRIBE"),
	words("HELLO 3") + words("PSUBSCRIBE [*") + words("GET k") + words("PUBLISH [ x") + words("RESET") + words("PUBSUB NUMSUB a"),
	words("LOCK k 9 TOKEN t WAIT 3 HOLD") + words("LOCK k 9 WAIT 2") + words("UNLOCK k t") + words("RESET") + words("LOCK k 9 HOLD"),
	words("EVAL return 1 1 k") + words("CLIENT REPLY SKIP") + words("QUIT"), words("DEL k k j") + words("EXPIRE k 1 GT"),
	words("LOCK k 1000") + words("FENCE k 1125899906842624") + words("FENCE k x") + words("CLIENT LIST") + words("INFO"), words("SELECT 3") + words("RESET") + words("EXISTS a b c"),
	words("MULTI") + words("GET k") + words("PUBLISH a b") + words("TIME") + words("EXEC") + words("GET k"),
	words("CLIENT UNBLOCK 1 ERROR") + words("CLIENT CACHING YES") + words("SET k v"),
	words("COMMAND GETKEYS EVAL x 1 a b") + words("CONFIG GET *") + words("COMMAND LIST FILTERBY PATTERN [a-"),
}

// chunks cuts b into pieces whose sizes are the bytes of cuts, over and over.
func chunks(b, cuts []byte) [][]byte {
	var pieces [][]byte
	for i := 0; len(b) > 0; i++ {
		n := len(b)
		if len(cuts) > 0 {
			n = min(n, 1+int(cuts[i%len(cuts)]))
		}
		pieces = append(pieces, b[:n])
		b = b[n:]
	}
	return pieces
}

// A fuzzConn is a connection whose input is given and whose output is kept. It ends its input, and hangs up after some
// bytes of output.
type fuzzConn struct {
	pieces [][]byte
	out    bytes.Buffer
	left   int
	kicked chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (c *fuzzConn) Read(b []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	case <-c.kicked:
		return 0, os.ErrDeadlineExceeded
	default:
	}
	if len(c.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.pieces[0])
	if c.pieces[0] = c.pieces[0][n:]; len(c.pieces[0]) == 0 {
		c.pieces = c.pieces[1:]
	}
	return n, nil
}

func (c *fuzzConn) SetReadDeadline(t time.Time) error {
	select {
	case <-c.kicked:
	default:
	}
	if !t.IsZero() {
		c.kicked <- struct{}{}
	}
	return nil
}

func (c *fuzzConn) Write(b []byte) (int, error) {
	n := min(len(b), c.left)
	c.left -= n
	c.out.Write(b[:n])
	if n < len(b) {
		return n, io.ErrClosedPipe
	}
	return n, nil
}

func (c *fuzzConn) Close() error                     { c.once.Do(func() { close(c.closed) }); return nil }
func (c *fuzzConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *fuzzConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *fuzzConn) SetDeadline(time.Time) error      { return nil }
func (c *fuzzConn) SetWriteDeadline(time.Time) error { return nil }

// A panicLog fails the test if a session logs an error: the only one is a panic that was caught.
type panicLog struct{ t *testing.T }

func (l panicLog) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "level=ERROR") {
		l.t.Error(string(b))
	}
	return len(b), nil
}

// Whatever arrives in whatever pieces, the session ends, without a panic, all that it reserved is given back, no lock
// stays that nobody was told of, and what was written are whole replies.
func FuzzSession(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add([]byte(seed), []byte{0}, uint16(60000), false)
		f.Add([]byte(seed), []byte{5, 40}, uint16(20), true)
		f.Add([]byte(seed), []byte{90}, uint16(0), true)
	}
	f.Fuzz(func(t *testing.T, b, cuts []byte, output uint16, async bool) {
		engine := newFakeEngine()
		engine.async = async
		srv := newServer(Config{Limits: Limits{Pipeline: 3, Args: 64, Bulk: 4096, Command: 8192, Memory: 1 << 20},
			Logger: slog.New(slog.NewTextHandler(panicLog{t}, nil))}, engine, script.NewCache(10), engine.fakeMessages)
		srv.lockOf = engine.lockOf
		conn := &fuzzConn{pieces: chunks(b, cuts), left: int(output), kicked: make(chan struct{}, 1), closed: make(chan struct{})}
		s := newSession(srv, conn, 1)
		s.run()
		srv.gates.Close() // waits for those that wait for a lock
		engine.running.Wait()
		if used := srv.relief.memory.used(); used != 0 {
			t.Errorf("%d bytes are still reserved", used)
		}
		if s.replies.backlog.outBytes.Load() != 0 || s.replies.backlog.depth.Load() != 0 || s.replies.backlog.inBytes.Load() != 0 {
			t.Errorf("counts are off: out %d, depth %d, in %d", s.replies.backlog.outBytes.Load(), s.replies.backlog.depth.Load(), s.replies.backlog.inBytes.Load())
		}
		if conn.out.Len() < len(":1\r\n") && !strings.Contains(wire.Lower(string(b)), "reply") {
			for _, l := range engine.locks {
				<-l.abandoned
			}
		}
		checkReplies(t, conn.out.Bytes(), int(output))
	})
}

// checkReplies demands whole replies, except for the last one where the output was cut.
func checkReplies(t *testing.T, out []byte, limit int) {
	for len(out) > 0 {
		n, ok := skipReply(out, 0)
		if !ok {
			t.Fatalf("no reply: %q", out)
		}
		if n == 0 {
			if limit > 0 && len(out) < 1<<16 {
				return // cut
			}
			t.Fatalf("half a reply: %q", out)
		}
		out = out[n:]
	}
}

// skipReply returns the length of the reply at the beginning, 0 if it is cut.
func skipReply(b []byte, depth int) (int, bool) {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 0 {
		return 0, true
	}
	n, ok := wire.ParseInt(string(b[1:end]))
	switch b[0] {
	case '+', '-', '_':
		return end + 2, true
	case ':':
		return end + 2, ok
	case '$', '=':
		if n < 0 {
			return end + 2, ok
		}
		if len(b) < end+2+int(n)+2 {
			return 0, ok
		}
		return end + 2 + int(n) + 2, ok && string(b[end+2+int(n):end+4+int(n)]) == "\r\n"
	case '%':
		n *= 2
	case '*', '~', '>':
	default:
		return 0, false
	}
	at := end + 2
	for range n {
		size, ok := skipReply(b[at:], depth+1)
		if !ok || size == 0 {
			return 0, ok
		}
		at += size
	}
	return at, ok
}
