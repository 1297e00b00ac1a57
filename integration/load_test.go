package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

const (
	// loadTTL is far longer than any round, so that a key found afterwards was left behind and did not just live on.
	loadTTL = 60 * time.Second
	// cleanMax is how long what a failed attempt set may stay: far below loadTTL.
	cleanMax = 25 * time.Second
	// progressMax is how long a number of locks may take on a busy machine before service counts as lost.
	progressMax = time.Minute
)

// A load is a number of clients that lock and unlock. Every lock guards a counter that is read when it is obtained
// and written before it is given back, so that two holders at once lose an update, besides being seen as two.
type load struct {
	name  string
	addrs []string
	stop  chan struct{}
	done  sync.WaitGroup

	mu         sync.Mutex // guards all below
	holder     map[string]string
	counter    map[string]int
	tally      tally
	violations []string
	causes     map[string]int    // the words of errors, without addresses
	fates      map[string]string // of each token: what became of its last request
}

// Fates of locks that were given back.
const (
	released      = "released with :1"
	releasedAgain = "released, asked for more than once"
)

// A tally counts the outcomes of acquires.
type tally struct{ granted, refused, failed int }

// startLoad starts clients, spread over the proxies. The contended resources are few, the others are new each time.
func startLoad(t testing.TB, clients int, addrs ...string) *load {
	l := &load{
		name: fmt.Sprintf("%s:%d", t.Name(), rand.Uint32()), addrs: addrs, stop: make(chan struct{}),
		holder: map[string]string{}, counter: map[string]int{}, causes: map[string]int{}, fates: map[string]string{},
	}
	for i := range clients {
		l.done.Go(func() { l.client(i) })
	}
	t.Cleanup(l.end)
	return l
}

// end stops the clients after they gave back what they hold.
func (l *load) end() {
	l.mu.Lock()
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.mu.Unlock()
	l.done.Wait()
}

func (l *load) ended() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

func (l *load) now() tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tally
}

// progress waits until n more locks were granted, and returns what else came meanwhile.
func (l *load) progress(t testing.TB, n int) tally {
	t.Helper()
	before := l.now()
	eventually(t, progressMax, fmt.Sprintf("%d more locks", n), func() error {
		if got := l.now().granted - before.granted; got < n {
			return fmt.Errorf("only %d; errors so far: %v", got, l.errors())
		}
		return nil
	})
	after := l.now()
	return tally{after.granted - before.granted, after.refused - before.refused, after.failed - before.failed}
}

func (l *load) errors() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.causes)
}

// finish ends the load, demands that every success was exclusive, and that no server holds a key afterwards.
func (l *load) finish(t testing.TB, servers ...*harness.Redis) {
	t.Helper()
	l.end()
	l.mu.Lock()
	for _, v := range l.violations {
		t.Errorf("two holders at once: %s", v)
	}
	l.mu.Unlock()
	err := harness.Poll(cleanMax, func() error { return l.attemptsLeft(servers) })
	if err != nil {
		t.Errorf("no failed attempt is to leave a key behind: %v", err)
	}
}

// attemptsLeft is an error if a key is left that is not of a lock that was released. Where a master could not be
// reached at the moment of a release, it keeps the key until its TTL: a release is not sent after its time.
func (l *load) attemptsLeft(servers []*harness.Redis) error {
	fates := l.fatesOfKeysLeft(servers)
	for fate := range fates {
		if fate != released && fate != releasedAgain {
			return fmt.Errorf("keys left by the fates of their tokens: %v", fates)
		}
	}
	return nil
}

// fatesOfKeysLeft says what became of the requests whose keys are left: whether a failed attempt or a release left them.
func (l *load) fatesOfKeysLeft(servers []*harness.Redis) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	fates := map[string]int{}
	for _, r := range servers {
		keys, _ := r.LockKeys()
		for _, k := range keys {
			if !strings.HasPrefix(k, l.name) {
				continue
			}
			reply, _ := r.Do(0, "GET", k)
			token, _ := harness.Bulk(reply)
			fates[l.fates[token]]++
		}
	}
	return fates
}

func (l *load) fate(token, what string) {
	l.mu.Lock()
	l.fates[token] = what
	l.mu.Unlock()
}

// client locks and unlocks until the load ends. A connection that breaks is replaced.
func (l *load) client(i int) {
	var c *harness.Conn
	defer func() {
		if c != nil {
			_ = c.Close()
		}
	}()
	for n := 0; !l.ended(); n++ {
		if c == nil {
			var err error
			if c, err = harness.Dial(l.addrs[i%len(l.addrs)]); err != nil {
				l.fail("dial: " + err.Error())
				continue
			}
		}
		resource := fmt.Sprintf("%s:hot:%d", l.name, rand.IntN(3))
		if n%2 == 0 {
			resource = fmt.Sprintf("%s:%d:%d", l.name, i, n)
		}
		if err := l.lockOnce(c, resource, fmt.Sprintf("%s:%d:%d", l.name, i, n)); err != nil {
			l.fail(err.Error())
			_ = c.Close()
			c = nil
		}
	}
}

// lockOnce makes one attempt and, if it is granted, works and releases. An error means that the connection is broken.
func (l *load) lockOnce(c *harness.Conn, resource, token string) error {
	reply, err := c.Do("SET", resource, token, "NX", "PX", fmt.Sprint(loadTTL.Milliseconds()))
	if err != nil {
		return err
	}
	switch {
	case string(reply) == "+OK\r\n":
		l.fate(token, "granted")
		l.work(resource, token)
		return l.release(c, resource, token)
	case string(reply) == "$-1\r\n":
		l.fate(token, "refused")
		l.mu.Lock()
		l.tally.refused++
		l.mu.Unlock()
	default:
		l.fate(token, "failed")
		l.fail(string(reply))
	}
	return nil
}

func (l *load) work(resource, token string) {
	l.mu.Lock()
	l.tally.granted++
	if other := l.holder[resource]; other != "" {
		l.violations = append(l.violations, fmt.Sprintf("%s: %s while %s", resource, token, other))
	}
	l.holder[resource] = token
	read := l.counter[resource]
	l.mu.Unlock()

	time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond) // the work

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counter[resource] != read {
		l.violations = append(l.violations, fmt.Sprintf("%s: %s lost an update", resource, token))
	}
	l.counter[resource] = read + 1
	delete(l.holder, resource)
}

// release repeats until it is answered, so that what is left afterwards was left by the proxy and not by us.
func (l *load) release(c *harness.Conn, resource, token string) error {
	for end, tries := time.Now().Add(progressMax), 1; ; tries++ {
		reply, err := c.Do("EVAL", compareAndDelete, "1", resource, token)
		if err != nil {
			return err
		}
		switch {
		case reply[0] == ':' && tries > 1: // it may be 0: the first has released what there was, and its answers came too late
			l.fate(token, releasedAgain)
			return nil
		case reply[0] == ':':
			l.fate(token, "released with "+strings.TrimSpace(string(reply)))
			return nil
		}
		l.fail("release: " + string(reply))
		if time.Now().After(end) {
			return fmt.Errorf("release: %q", reply)
		}
	}
}

// fail counts an error. The client waits a little, as clients do: an error can come at once, thousands in a second.
func (l *load) fail(what string) {
	defer time.Sleep(2 * time.Millisecond)
	if i := strings.Index(what, " needed"); i > 0 {
		what = what[:i] // the addresses and causes follow
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.failed++
	l.causes[strings.TrimSpace(what)]++
}
