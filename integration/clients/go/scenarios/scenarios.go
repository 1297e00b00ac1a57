package scenarios

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

const (
	long  = 30 * time.Second // a TTL that no scenario outlives
	short = 3 * time.Second  // a TTL that a scenario waits for
	soon  = 20 * time.Second // within which what must happen happens, on a busy machine
)

var all = []struct {
	name string
	act  func(*run)
}{
	{"take", take}, {"refuse", refuse}, {"release", release}, {"stranger", stranger}, {"extend", extend},
	{"expiry", expiry}, {"wait", wait}, {"lost", lost}, {"no quorum", noQuorum}, {"minority", minority},
	{"re-entrance", absent}, {"watchdog", watchdog}, {"binary token", binaryToken}, {"reconnect", reconnect}, {"data", data},
}

// A run is one scenario of one library. What goes wrong panics with an error and ends it.
type run struct {
	library Library
	key     string
	clients []Client
	used    string // by data
}

func (r *run) do(act func(*run)) (err error) {
	defer func() {
		for _, c := range r.clients {
			c.Close()
		}
		if p := recover(); p != nil {
			var ok bool
			if err, ok = p.(error); !ok {
				panic(p)
			}
		}
	}()
	act(r)
	return nil
}

func (r *run) client() Client {
	c, err := r.library.Open()
	if err != nil {
		panic(err)
	}
	r.clients = append(r.clients, c)
	return c
}

// lock makes a lock of a client of its own.
func (r *run) lock(ttl time.Duration) Lock { return r.client().Lock(r.key, ttl, nil) }

func want(what string, expected, got bool, err error) {
	if err != nil || got != expected {
		panic(fmt.Errorf("%s: got %v, %v, want %v", what, got, err, expected))
	}
}

// acquire demands that the lock is granted, or refused.
func acquire(what string, l Lock, expected bool) {
	got, err := l.Acquire(0)
	want(what, expected, got, err)
}

func releaseIt(l Lock) {
	got, err := l.Release()
	want("release", true, got, err)
}

// fails demands that it is refused, by false or by an error.
func fails(what string, got bool, err error) {
	if got && err == nil {
		panic(fmt.Errorf("%s succeeded", what))
	}
}

// until polls; errors count as false, but the last one is told.
func until(what string, try func() (bool, error)) {
	var last error
	done, _ := Poll(soon, func() (bool, error) {
		var got bool
		got, last = try()
		return got && last == nil, nil
	})
	if !done {
		panic(fmt.Errorf("%s: not within %v: %v", what, soon, cmp.Or(last, errRefused)))
	}
}

func mustAsk(wish string) {
	if err := ask(wish); err != nil {
		panic(err)
	}
}

func absent(*run) { panic(errAbsent) }

func take(r *run) {
	lock := r.lock(long)
	acquire("take", lock, true)
	mustAsk("held")
	releaseIt(lock)
}

func refuse(r *run) {
	acquire("take", r.lock(long), true)
	other := r.lock(long)
	for range 3 {
		acquire("take it again", other, false)
	}
}

func release(r *run) {
	first, second := r.lock(long), r.lock(long)
	for _, l := range []Lock{first, second, first} {
		acquire("take", l, true)
		releaseIt(l)
		mustAsk("empty")
	}
}

func stranger(r *run) {
	late, holder := r.lock(short), r.lock(long)
	acquire("take", late, true)
	until("the next holder", func() (bool, error) { return holder.Acquire(0) })
	got, err := late.Release()
	fails("the release of a stranger", got && !r.library.Mute, err)
	acquire("take it from its holder", r.lock(long), false)
	releaseIt(holder)
}

func extend(r *run) {
	if !r.library.Extends {
		absent(r)
	}
	lock, start := r.lock(short), time.Now()
	acquire("take", lock, true)
	got, err := lock.Extend(long)
	want("extend", true, got, err)
	time.Sleep(time.Until(start.Add(short + 500*time.Millisecond)))
	acquire("take it after the first TTL", r.lock(long), false)
	releaseIt(lock)
}

func expiry(r *run) {
	first, other, start := r.lock(short), r.lock(long), time.Now()
	acquire("take", first, true)
	until("the next holder", func() (bool, error) { return other.Acquire(0) })
	want("granted before the TTL was over", false, time.Since(start) < short, nil)
	releaseIt(other)
}

func wait(r *run) {
	lock, other := r.lock(long), r.lock(long)
	acquire("take", lock, true)
	type outcome struct {
		granted bool
		err     error
		at      time.Time
	}
	waited := make(chan outcome, 1)
	go func() {
		granted, err := other.Acquire(long / 2)
		waited <- outcome{granted, err, time.Now()}
	}()
	time.Sleep(500 * time.Millisecond) // most probably it waits by now; if not, it is granted at once, rightly
	released := time.Now()
	releaseIt(lock)
	o := <-waited
	want("wait", true, o.granted, o.err)
	want("granted before the release", false, o.at.Before(released), nil)
	want("granted late", false, o.at.Sub(released) > soon, nil)
	releaseIt(other)
}

func lost(r *run) {
	lock := r.lock(long)
	acquire("take", lock, true)
	mustAsk("lose")
	if r.library.Extends {
		got, err := lock.Extend(long)
		fails("extending a lost lock", got, err)
	}
	got, err := lock.Release()
	fails("releasing a lost lock", got && !r.library.Mute, err)
	acquire("the next", r.lock(long), true)
}

func noQuorum(r *run) {
	held := r.lock(long)
	other, third := r.client().Lock(r.key+":other", long, nil), r.client().Lock(r.key+":third", long, nil)
	acquire("take", held, true)
	mustAsk("down 2")
	start := time.Now()
	got, err := other.Acquire(0)
	fails("taking without a quorum", got, err)
	want("refused late", false, time.Since(start) > soon, nil)
	got, err = held.Release()
	fails("releasing without a quorum", got && !r.library.Mute, err)
	mustAsk("up")
	until("taking with the quorum back", func() (bool, error) { return third.Acquire(0) })
}

func minority(r *run) {
	mustAsk("down 1")
	lock, other := r.lock(long), r.lock(long)
	acquire("take", lock, true)
	acquire("take it again", other, false)
	releaseIt(lock)
	acquire("the next", other, true)
	releaseIt(other)
}

func watchdog(r *run) {
	if r.library.Kept == 0 {
		absent(r)
	}
	lock := r.lock(long)
	acquire("take", lock, true)
	time.Sleep(r.library.Kept + r.library.Kept/2)
	mustAsk("held")
	acquire("take it after its TTL", r.lock(long), false)
	releaseIt(lock)
	mustAsk("empty")
}

func binaryToken(r *run) {
	if !r.library.Tokens {
		absent(r)
	}
	var bytes []byte
	for b := range 256 {
		bytes = append(bytes, byte(b))
	}
	for _, token := range [][]byte{append(bytes, "\r\n$-1\r\n"...), {}} {
		lock, other := r.client().Lock(r.key, long, token), r.client().Lock(r.key, long, []byte("other"))
		acquire("take", lock, true)
		acquire("take it again", other, false)
		got, err := other.Release()
		fails("release with another token", got, err)
		if r.library.Extends {
			got, err = lock.Extend(long)
			want("extend", true, got, err)
		}
		releaseIt(lock)
		mustAsk("empty")
	}
}

func data(r *run) {
	c := r.client()
	user, ok := c.(DataUser)
	if !ok {
		absent(r)
	}
	lock := c.Lock(r.key, long, nil)
	acquire("take", lock, true)
	used, err := user.UseData(strings.Replace(r.key, "lock:", "data:", 1), r.key+":piped")
	if err != nil {
		panic(err)
	}
	if used == "" {
		absent(r)
	}
	r.used = used
	mustAsk("held")
	mustAsk("apart")
	releaseIt(lock)
	mustAsk("empty")
}

func reconnect(r *run) {
	holder := r.client()
	lock, second, again := holder.Lock(r.key, long, nil), holder.Lock(r.key, long, nil), r.lock(long)
	acquire("take", lock, true)
	acquire("take it again", again, false)
	mustAsk("restart")
	for _, l := range []Lock{second, again} {
		until("an answer", func() (bool, error) {
			got, err := l.Acquire(0)
			return !got && err == nil, err
		})
	}
	until("release", lock.Release) // another connection of the client may have to find out first
	until("the next", func() (bool, error) {
		got, err := again.Acquire(0)
		if got { // what looked at the lock thereafter may have met one more broken connection
			err = nil
		}
		return got, err
	})
	until("release", again.Release)
}
