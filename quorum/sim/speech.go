package sim

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// A request is a command on a wire, and its outcome. The world's mu guards it.
type request struct {
	words      []string
	end        int           // its end in the stream to the proxy, in bytes
	sent       time.Duration // true time, as all times below
	slept      time.Duration // how long all proxies had stood still then
	came       time.Duration // when the proxy had all of it; 0 if never
	told       time.Duration // when the proxy had written the reply; 0 if it has not
	upTo       int           // the reply's end in the stream to the client
	reply      reply
	begun      time.Duration // when the reply's Write had begun
	begunSlept time.Duration // how long all proxies had stood still then
	held       bool          // the Write had to wait before
	alone      bool          // no other request was under way, nor came before the reply
	punctual   bool          // nothing but itself decides when it begins
	most       int           // the InstanceTimeouts that it takes at most, if alone; 0 is any
	lock       *wanted
	on         func() // called when the reply has been written, if the client's end was open
}

// A push is a reply without a request.
type push []any

// encode appends a command as clients send it.
func encode(b []byte, words []string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(words))
	for _, word := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b
}

// decode takes a whole reply from the front of b, and returns its length: 0 if the reply is not whole, and -1 if there
// is none.
func decode(b []byte) (reply, int) {
	line, _, whole := bytes.Cut(b, []byte("\r\n"))
	if !whole || len(line) == 0 {
		return nil, 0
	}
	text, size := string(line[1:]), len(line)+2
	n, err := strconv.Atoi(text)
	switch line[0] {
	case '+':
		return status(text), size
	case '-':
		return fault(text), size
	case '_':
		return nil, size
	case ':':
		return int64(n), size
	case '$':
		if err != nil || n < 0 {
			return nil, size
		}
		if len(b) < size+n+2 {
			return nil, 0
		}
		return string(b[size : size+n]), size + n + 2
	case '%':
		n *= 2
	case '*', '>':
	default:
		return nil, -1
	}
	return decodeAll(b, size, n, line[0])
}

func decodeAll(b []byte, size, n int, kind byte) (reply, int) {
	if n < 0 {
		return nil, size
	}
	list := make([]any, n)
	for i := range list {
		item, k := decode(b[size:])
		if k <= 0 {
			return nil, k
		}
		list[i], size = item, size+k
	}
	if kind == '>' {
		return push(list), size
	}
	return list, size
}

// say sends commands in one go. mu is held. A command is alone if nothing is under way and no other is sent with it.
func (c *wire) say(all ...*request) {
	var b []byte
	alone := len(all) == 1 && len(c.asked) == 0
	for _, other := range c.asked {
		other.alone = false
	}
	for _, q := range all {
		b = encode(b, q.words)
		q.end, q.sent, q.slept, q.alone = c.written+len(b), c.world.now(), c.world.asleep(), alone
		c.asked = append(c.asked, q)
	}
	c.world.logf(c.name, "says %s", sayings(all))
	c.send(b, nil)
}

// until returns how long the client may rely on the lock whose reply has been written. The client counts the TTL from
// its own send, or goes by the told validity, from when the reply was written. The proxies' sleep since then counts for
// everybody else.
func (q *request) until(w *World, ttl, valid time.Duration) time.Duration {
	now := w.asleep()
	return max(q.sent+ttl-(now-q.slept), q.begun+valid-w.unnoticed(q.begunSlept-q.slept)-(now-q.begunSlept))
}

// sayPart sends a part of commands: the client will be gone before the last is whole.
func (c *wire) sayPart(all []*request) {
	var b []byte
	for _, q := range all {
		b = encode(b, q.words)
		q.end, q.sent, q.slept = c.written+len(b), c.world.now(), c.world.asleep()
		c.asked = append(c.asked, q)
	}
	b = b[:c.rng.IntN(len(b))]
	c.world.logf(c.name, "says %d bytes of %s", len(b), sayings(all))
	c.send(b, nil)
}

func sayings(all []*request) string {
	var b []byte
	for _, q := range all {
		b = fmt.Appendf(b, "%s; ", brief(q.words))
	}
	return string(b)
}

// arrive notes which commands have come.
func (c *wire) arrive() {
	for _, q := range c.asked {
		if q.came == 0 && q.end <= c.came && c.ended == nil {
			q.came = c.world.now()
		}
	}
}

// hear finds the replies in the proxy's bytes. mu is held.
func (c *wire) hear(b []byte) {
	c.partial = append(c.partial, b...)
	for {
		r, n := decode(c.partial)
		if n == 0 {
			return
		}
		if n < 0 {
			c.world.checker.report(garbled, "%s: %.40q", c.name, c.partial)
			c.partial = nil
			return
		}
		c.partial = c.partial[n:]
		if p, is := r.(push); is {
			c.world.logf(c.name, "is pushed %v", p)
			c.pushed(p)
			continue
		}
		if len(c.asked) == 0 {
			c.world.checker.report(garbled, "%s was told %v, which it had not asked for", c.name, r)
			continue
		}
		q := c.asked[0]
		c.asked = c.asked[1:]
		q.reply, q.told, q.upTo, q.begun, q.begunSlept, q.held = r, c.world.now(), c.accepted-len(c.partial), c.begun, c.begunSlept, c.stuck
		c.world.logf(c.name, "is told %v, to %s%s", r, brief(q.words), map[bool]string{true: " (it has hung up)"}[c.hungUp])
		c.world.checker.answered(c, q)
	}
}

// await waits until the client has read a reply, and returns the reply; false if the connection ended before, or the
// client hung up.
func (c *wire) await(q *request) (reply, bool) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	const most = time.Minute // no proxy takes so long
	timer := time.AfterFunc(most, func() {
		c.world.mu.Lock()
		defer c.world.mu.Unlock()
		if q.told == 0 && c.lost == nil && !c.hungUp {
			c.world.checker.report(noEnd, "%s waits for %s for %v", c.name, brief(q.words), most)
			c.breaks(os.ErrDeadlineExceeded)
		}
	})
	defer timer.Stop()
	for {
		switch {
		case c.hungUp:
			return nil, false
		case q.told != 0 && c.arrived >= q.upTo:
			c.read = max(c.read, q.upTo)
			c.changed.Broadcast()
			return q.reply, true
		case c.lost != nil:
			return nil, false
		case c.arrived > c.read: // of earlier replies
			c.read = c.arrived
			c.changed.Broadcast()
		}
		c.changed.Wait()
	}
}
