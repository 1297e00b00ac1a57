package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"lockproxy/integration/harness"
)

// pairs measures addr with clients that lock and unlock. As in redis-benchmark, one thread serves all their connections,
// because what the load costs is taken from the others here.
func pairs(addr string) func(load) (result, error) { return pairsBy(addr, plainPair) }

// lockPairs is pairs with LOCK and UNLOCK.
func lockPairs(addr string) func(load) (result, error) { return pairsBy(addr, ownPair) }

func pairsBy(addr string, words pairWords) func(load) (result, error) {
	return func(l load) (result, error) {
		p, err := newPairLoop(addr, l.clients, words)
		if err != nil {
			return result{}, err
		}
		defer p.close()
		return p.run(l.duration)
	}
}

// pairWords are the commands of a pair. sha is that of the release script.
type pairWords struct {
	take, give func(key, sha string) []string
	taken      func(reply string) (whole, ok bool)
}

var (
	pairTTL   = strconv.FormatInt(ttl.Milliseconds(), 10)
	plainPair = pairWords{
		take:  func(key, _ string) []string { return []string{"SET", key, "tok", "NX", "PX", pairTTL} },
		give:  func(key, sha string) []string { return []string{"EVALSHA", sha, "1", key, "tok"} },
		taken: func(reply string) (whole, ok bool) { return true, reply == "+OK\r\n" },
	}
	ownPair = pairWords{
		take: func(key, _ string) []string { return []string{"LOCK", key, pairTTL, "TOKEN", "tok"} },
		give: func(key, _ string) []string { return []string{"UNLOCK", key, "tok"} },
		taken: func(reply string) (whole, ok bool) {
			array := strings.HasPrefix(reply, "*6\r\n")
			return !array || strings.Contains(reply, "validity\r\n:"), array
		},
	}
)

// A pairLoop is the clients and what they wait with.
type pairLoop struct {
	words     pairWords
	poll      int // descriptor
	clients   []pairClient
	sha       string // of the release
	deadline  time.Time
	latencies []time.Duration
	buf       []byte
}

// A pairClient is one connection, which has asked for a lock or for its release.
type pairClient struct {
	fd        int
	key       string
	began     time.Time // of the pair
	releasing bool
	reply     []byte // as far as it has come
}

// patience is how long the loop waits for any reply.
const patience = 10 * time.Second

func newPairLoop(addr string, clients int, words pairWords) (*pairLoop, error) {
	sha, err := loadRelease(addr)
	if err != nil {
		return nil, err
	}
	p := &pairLoop{words: words, sha: sha}
	if p.poll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	for i := range clients {
		fd, err := connect(addr)
		if err == nil {
			p.clients = append(p.clients, pairClient{fd: fd})
			err = syscall.EpollCtl(p.poll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(i)})
		}
		if err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

func loadRelease(addr string) (sha string, err error) {
	c, err := harness.Dial(addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	reply, err := c.Do("SCRIPT", "LOAD", release)
	sha, ok := harness.Bulk(reply)
	if err == nil && !ok {
		err = fmt.Errorf("SCRIPT LOAD: %q", reply)
	}
	return sha, err
}

// connect returns the descriptor of a connection that does not block.
func connect(addr string) (int, error) {
	tcp, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return 0, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(tcp.IP.To4())}); err == nil {
		if err = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1); err == nil {
			err = syscall.SetNonblock(fd, true)
		}
	}
	if err != nil {
		_ = syscall.Close(fd)
		return 0, fmt.Errorf("connect %s: %w", addr, err)
	}
	return fd, nil
}

func (p *pairLoop) close() {
	for i := range p.clients {
		_ = syscall.Close(p.clients[i].fd)
	}
	_ = syscall.Close(p.poll)
}

// run makes pairs until the duration is over, and waits for those under way.
func (p *pairLoop) run(d time.Duration) (result, error) {
	start := time.Now()
	p.deadline = start.Add(d)
	for i := range p.clients {
		if err := p.begin(&p.clients[i], start); err != nil {
			return result{}, err
		}
	}
	events := make([]syscall.EpollEvent, len(p.clients))
	for busy := len(p.clients); busy > 0; {
		n, errno := p.wait(events)
		if errno != 0 && errno != syscall.EINTR {
			return result{}, errno
		}
		if n == 0 && errno == 0 {
			return result{}, fmt.Errorf("no reply for %v", patience)
		}
		for _, e := range events[:n] {
			over, err := p.ready(&p.clients[e.Fd])
			if err != nil {
				return result{}, err
			}
			if over {
				busy--
			}
		}
	}
	took := time.Since(start)
	slices.Sort(p.latencies)
	return result{
		count:     len(p.latencies),
		perSecond: float64(len(p.latencies)) / took.Seconds(),
		p50:       p.latencies[len(p.latencies)/2],
		p99:       p.latencies[len(p.latencies)*99/100],
	}, nil
}

// wait, and what else the loop calls all the time, is not told to Go's scheduler, whose thread would then look after it.
func (p *pairLoop) wait(events []syscall.EpollEvent) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p.poll), uintptr(unsafe.Pointer(&events[0])),
		uintptr(len(events)), uintptr(patience.Milliseconds()), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// transfer reads or writes.
func (c *pairClient) transfer(trap uintptr, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(trap, uintptr(c.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func (p *pairLoop) begin(c *pairClient, now time.Time) error {
	c.key, c.began, c.releasing = "pair:"+strconv.FormatUint(rand.Uint64(), 36), now, false
	return p.send(c, p.words.take(c.key, p.sha))
}

func (p *pairLoop) send(c *pairClient, words []string) error {
	p.buf = harness.Encode(p.buf[:0], words...)
	if n, err := c.transfer(syscall.SYS_WRITE, p.buf); n != len(p.buf) {
		return fmt.Errorf("%s: %d of %d bytes were written: %w", words[0], n, len(p.buf), err)
	}
	return nil
}

// ready reads what has come, and asks for what is next; over says that nothing is.
func (p *pairLoop) ready(c *pairClient) (over bool, err error) {
	var buf [512]byte
	n, err := c.transfer(syscall.SYS_READ, buf[:])
	if n == 0 && err == nil {
		err = io.EOF
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", c.key, err)
	}
	if c.reply = append(c.reply, buf[:n]...); !bytes.HasSuffix(c.reply, []byte("\r\n")) {
		return false, nil
	}
	reply := string(c.reply)
	whole, taken := p.words.taken(reply)
	if !c.releasing && !whole {
		return false, nil
	}
	c.reply = c.reply[:0]
	switch {
	case !c.releasing && taken:
		c.releasing = true
		return false, p.send(c, p.words.give(c.key, p.sha))
	case c.releasing && reply == ":1\r\n":
		now := time.Now()
		p.latencies = append(p.latencies, now.Sub(c.began))
		if now.After(p.deadline) {
			return true, nil
		}
		return false, p.begin(c, now)
	}
	return false, fmt.Errorf("%s: %q", c.key, reply)
}
