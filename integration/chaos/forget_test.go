package chaos

import (
	"fmt"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// A subject is what is to keep a second holder out: lockproxy, or redsync as the control.
type subject struct {
	name    string
	client  func(*deployment) client
	proxies int
	// double says that a second holder is to be seen: else the fault does not bite, and its test shows nothing.
	double bool
	// late is a text in the request that asks a master to delete a key.
	late string
}

var subjects = []subject{
	{"lockproxy", func(d *deployment) client { return &plain{wire{addrs: []string{d.proxies[0].Addr}}} }, 1, false, "polled-token"},
	{"redsync", func(d *deployment) client { return newDirect(d.masterAddrs()) }, 0, true, "evalsha"},
}

// stepTTL is long enough for the steps of a test to be taken within it on a busy machine.
const stepTTL = 2500 * time.Millisecond

// alone are the numbers of two masters that are out of reach while the first lock is taken, and forgetful is the one of
// the three others that forgets it: with the two, it could make a quorum for the next one.
var alone = []int{3, 4}

const forgetful = 2

func TestAMasterThatForgetsLetsNobodyIn(t *testing.T) {
	t.Parallel()
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			d := deploy(t, s.proxies, proxyFlags(stepTTL)...)
			for n, f := range faults {
				if !f.forgets || f.name == "clock forwards" && d.shim == "" {
					continue
				}
				t.Run(f.name, func(t *testing.T) {
					s.demandOneHolder(t, func(try int) (time.Duration, int) {
						demandFullStrength(t, d)
						return forget(t, d, s, f, fmt.Sprintf("forgotten:%d:%d", n, try))
					})
				})
			}
		})
	}
}

func demandFullStrength(t *testing.T, d *deployment) {
	t.Helper()
	began := time.Now()
	if err := harness.Poll(readyMax, d.atFullStrength); err != nil {
		t.Fatal(err)
	}
	t.Logf("at full strength after %v", time.Since(began))
}

// forget lets a bare quorum grant a lock, one of it forget, and two others come back that never knew.
func forget(t *testing.T, d *deployment, s subject, f fault, resource string) (early time.Duration, attempts int) {
	first, second := s.client(d), s.client(d)
	defer first.close()
	defer second.close()
	do := func(step func(*deployment, int) error) {
		t.Helper()
		if step == nil {
			return
		}
		if err := step(d, forgetful); err != nil {
			t.Fatal(err)
		}
	}
	do(f.prepare)
	d.reach(false, alone...)
	defer d.reach(true, alone...)
	until := demandLock(t, first, resource, "first")
	do(f.hit)
	if f.heal != nil {
		time.Sleep(f.lasts)
		do(f.heal)
	}
	if err := harness.Poll(readyMax, func() error { return tell(d.masters[forgetful], ":0\r\n", "EXISTS", resource) }); err != nil {
		t.Fatalf("nothing was forgotten: %v", err)
	}
	d.reach(true, alone...)
	defer do(f.tidy)
	return secondHolder(t, second, resource, until)
}

// reach lets the links to some masters be, or takes them down.
func (d *deployment) reach(on bool, numbers ...int) {
	for _, i := range numbers {
		d.relays[i].Refuse(!on)
		if !on {
			d.relays[i].Cut()
		}
	}
}

// demandLock makes attempts until one is granted, and returns until when it is valid.
func demandLock(t *testing.T, c client, resource, token string) (until time.Time) {
	t.Helper()
	err := harness.Poll(readyMax, func() error {
		sent := time.Now()
		o, cause := c.acquire(resource, token, stepTTL)
		if until = validUntil(sent, stepTTL); o != done {
			return fmt.Errorf("%s %s", o, cause)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("the lock of %s: %v", token, err)
	}
	return until
}

// secondHolder makes attempts until the first holder's validity is over, and returns how long before that one was
// granted, 0 if none was, and how many they were. Then the next holder must be served.
func secondHolder(t *testing.T, second client, resource string, until time.Time) (early time.Duration, attempts int) {
	t.Helper()
	causes := map[string]int{}
	for time.Now().Before(until) {
		o, cause := second.acquire(resource, "second", stepTTL)
		attempts++
		causes[fmt.Sprint(o, " ", cause)]++
		if early = time.Until(until); o == done && early > 0 {
			t.Logf("a second holder at attempt %d, %v before the first one's validity is over", attempts, early)
			second.release(resource, "second")
			return early, attempts
		}
		time.Sleep(probePause)
	}
	t.Logf("%d attempts: %v", attempts, causes)
	over := time.Now()
	demandLock(t, second, resource, "third")
	t.Logf("the next holder came %v after the first one's validity", time.Since(over))
	second.release(resource, "third")
	return 0, attempts
}

// An experiment shows something if a second client was let in, or was kept out that often. On a busy machine the first
// holder's validity can be over before that.
const (
	attemptsMin = 5
	triesMax    = 4
)

// demandOneHolder judges what an experiment's secondHolder returned. One that shows nothing is done again.
func (s subject) demandOneHolder(t *testing.T, experiment func(try int) (early time.Duration, attempts int)) {
	t.Helper()
	for try := range triesMax {
		early, attempts := experiment(try)
		switch {
		case early > 0 && !s.double:
			t.Errorf("a second holder %v before the first one's validity is over", early)
			return
		case early > 0, attempts >= attemptsMin && !s.double:
			return
		}
		t.Logf("try %d shows nothing, with %d attempts", try, attempts)
	}
	t.Errorf("%s let no second holder in, or was hardly asked to: this fault shows nothing", s.name)
}

// A client polls with one token, and gives up a try that was refused. A packet of that is lost, and sent again when the
// client holds the lock at last: it must not take its vote. (Redsync polls so.)
func TestAReleaseThatComesLateTakesNoVote(t *testing.T) {
	t.Parallel()
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			d := deploy(t, s.proxies, proxyFlags(stepTTL)...)
			s.demandOneHolder(t, func(try int) (time.Duration, int) {
				demandFullStrength(t, d)
				return releaseLate(t, d, s, fmt.Sprintf("polled:%d", try), "polled-token")
			})
		})
	}
}

func releaseLate(t *testing.T, d *deployment, s subject, resource, token string) (early time.Duration, attempts int) {
	poller, other := s.client(d), s.client(d)
	defer poller.close()
	defer other.close()
	defer d.relays[forgetful].Deliver()

	until := demandLock(t, other, resource, "other")
	demandRefusal(t, poller, resource, token, until, func() { d.relays[forgetful].Catch(s.late) })
	if err := harness.Poll(stepTTL, d.relays[forgetful].Caught); err != nil {
		t.Log(err) // nor will it be
		return 0, 0
	}
	if o, cause := other.release(resource, "other"); o != done {
		t.Logf("release: %s %s", o, cause)
		return 0, 0
	}
	d.reach(false, alone...)
	until = demandLock(t, poller, resource, token)
	d.reach(true, alone...)
	d.relays[forgetful].Deliver()
	return secondHolder(t, other, resource, until)
}

// demandRefusal makes a try that is refused, and gives it up. The redsync client gives up by itself, within acquire.
// Another holds the lock until then.
func demandRefusal(t *testing.T, c client, resource, token string, until time.Time, between func()) {
	t.Helper()
	_, byItself := c.(*direct)
	if byItself {
		between()
	}
	if o, cause := c.acquire(resource, token, stepTTL); o == done && time.Now().Before(until) {
		t.Fatalf("a try was granted: %s", cause)
	}
	if !byItself {
		between()
		c.release(resource, token)
	}
}
