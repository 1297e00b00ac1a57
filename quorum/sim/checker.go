package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockproxy/quorum"
)

// A Finding is something that must never be.
type Finding struct {
	Rule string
	At   time.Duration
	Text string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s at %.6f: %s", f.Rule, f.At.Seconds(), f.Text)
}

// The rules. No two clients rely on one resource at the same time, on what they were told or on their own count of the
// TTL; a lock that was promised is held by a quorum for as long as that, which is not nothing; a key ends; what failed leaves
// nothing behind on a master that can be reached; every attempt ends; when no more than a minority of the masters is
// broken any more, what is free can be locked; nothing is remembered of what is done.
const (
	twoHolders = "two holders"
	lostLock   = "a promised lock is gone"
	forEver    = "a key outlives its TTL"
	tooLate    = "granted with no validity left"
	minority   = "a lock without a quorum"
	afterEnd   = "sent after its attempt had ended"
	orphan     = "an orphan"
	noEnd      = "an attempt without end"
	oldFence   = "a fence that has not grown"
	noFence    = "a lock without a fence"
	staleFence = "a fence that is not the newest"
	notFree    = "a free resource cannot be locked"
	leak       = "memory is not given back"
	heldOn     = "a lock is held on after its last release"
	toldTwice  = "a value that two were told"
	notTold    = "a value that was not told"
	heldAgain  = "a lock that was taken away is held again"
	zombie     = "a lock that is over is set again"
	blindTaker = "a vote is taken by a command that does not name it"
)

// A checker watches what clients are told and what masters hold. All is guarded by the world's mu.
type checker struct {
	world     *World
	findings  []Finding
	promises  map[string][]*promise // by resource: those that may not be over
	doubtful  map[string]time.Duration
	attempts  map[string]*fate    // by token, of those used once; and by resource and token, of moves
	prolonged map[string]bool     // by resource: somebody who did not hold it gave it another TTL
	stakes    map[string][]*stake // by resource
	voted     map[string]bool     // tokens of attempts by vote
	astray    map[string]bool     // of which something was not granted, and may have been done all the same
	lost      map[string]bool     // by master and token: an answer was not heard
	exchanges []*exchange
	thefts    map[string]int           // by resource: how many try to take it from its holder
	stolen    map[string]time.Duration // by token: when somebody was told it who had taken the lock away
	returned  map[string]bool          // by token: it was stolen, and its holder has extended it since
	bygone    map[string]time.Duration // by token: when its client was told that it has given back or replaced it, or somebody that he has taken it
	shaken    map[string]bool          // tokens of locks that somebody may have taken away
	holds     map[string][]*heldOpen   // by resource: those that may not be over
	keptMost  time.Duration
	fences    fenceBook
	broken    map[string]time.Duration // by resource: when somebody had broken it last
	renewals  map[string]int           // by resource: how often one that is shared was renewed
	counts    Counts
}

// Counts are what happened in a world.
type Counts struct {
	Attempts, Granted, Refused, NoQuorum, Lost int

	Fenced, Unfounded, Voted int // of those granted
}

// Add adds the counts of another world.
func (c *Counts) Add(d Counts) {
	c.Attempts += d.Attempts
	c.Granted += d.Granted
	c.Refused += d.Refused
	c.NoQuorum += d.NoQuorum
	c.Lost += d.Lost
	c.Fenced += d.Fenced
	c.Unfounded += d.Unfounded
	c.Voted += d.Voted
}

// answered counts what an attempt came to.
func (c *Counts) answered(failed, granted bool) {
	switch {
	case failed:
		c.NoQuorum++
	case granted:
		c.Granted++
	default:
		c.Refused++
	}
}

// A promise is a lock that a client relies on.
type promise struct {
	resource, token string
	fence           int64 // 0 if it has none, or its record may end before it
	client          *client
	began           time.Duration // when it was asked for; 0 if it may have been at any time
	until           time.Duration // true time, as that
	lacks           time.Duration // since when a master has nothing of it; 0 if all have it
	extended        bool          // with its fence
	shared          bool          // with others for whom it is, too
	over            bool
	doubtful        bool   // somebody took it away, or may have
	contested       bool   // somebody tries to take it away, who will say whether he has
	stake           *stake // of a shared token
}

// A fate is what became of an attempt with a token of its own.
type fate struct {
	life   *life
	failed bool
	left   bool // its client had gone, or it came to a no: it may still be sent to slow masters
}

func (k *checker) init(w *World) {
	*k = checker{
		world: w, promises: make(map[string][]*promise), doubtful: make(map[string]time.Duration),
		attempts: make(map[string]*fate), prolonged: make(map[string]bool), stakes: make(map[string][]*stake),
		thefts: make(map[string]int), stolen: make(map[string]time.Duration), returned: make(map[string]bool), shaken: make(map[string]bool), bygone: make(map[string]time.Duration),
		voted: make(map[string]bool), astray: make(map[string]bool), lost: make(map[string]bool), holds: make(map[string][]*heldOpen),
		renewals: make(map[string]int), broken: make(map[string]time.Duration),
		fences: fenceBook{of: make(map[string]int64), given: make(map[string][]int64)},
	}
	c := w.plan.loosest()
	// A key expires at an instant that is reckoned by what is known of the master's clock, which is little after a slow
	// answer, or half a second ago; and a few milliseconds more, so that no two are alike.
	inexact := c.InstanceTimeout + time.Duration(c.DriftFactor*float64(500*time.Millisecond)) + 300*time.Millisecond
	if w.plan.Old > 0 { // these are told apart less exactly
		inexact += 300 * time.Millisecond
	}
	k.keptMost = c.TTLMax + quorum.Drift(c.TTLMax, c.DriftFactor) + max(c.Grace, 0) + inexact
}

func (k *checker) report(rule, format string, args ...any) {
	f := Finding{rule, k.world.now(), fmt.Sprintf(format, args...)}
	k.world.logf("FINDING", "%s: %s", f.Rule, f.Text)
	k.findings = append(k.findings, f)
}

// granted notes that a client may rely on a resource from now on, or for longer than it could.
func (k *checker) granted(p *promise) {
	now := k.world.now()
	_, p.over = k.stolen[p.token]
	p.doubtful = p.doubtful || now < k.doubtful[p.resource] || p.began < k.broken[p.resource] || k.shaken[p.token] || k.world.initialising
	p.contested = p.contested || k.thefts[p.resource] > 0
	live := k.promises[p.resource][:0]
	for _, other := range k.promises[p.resource] {
		if other == p || other.over || other.until <= now {
			continue
		}
		live = append(live, other)
		unclear := other.contested && k.thefts[p.resource] > 0 // who tries to take it may not say yet that he could not
		if other.client != p.client && !(other.shared && p.shared) && !other.doubtful && !p.doubtful && !p.over && !unclear {
			k.report(twoHolders, "%s: %s (%s) got it, while %s (%s) may rely on it for %v",
				p.resource, p.client.name, p.token, other.client.name, other.token, other.until-now)
		}
	}
	k.promises[p.resource] = append(live, p)
	if !k.world.plan.Rolls { // else a master may have forgotten it just now, and the others have it soon
		k.held(p, p.until)
	}
	until := p.until
	k.world.after(until-now-1, func() {
		if p.until == until {
			k.held(p, until)
		}
	})
}

// held checks that a quorum of the masters holds a promised lock, and will until a true time.
func (k *checker) held(p *promise, until time.Duration) {
	if !k.stands(p) || k.world.plan.forgets() {
		return
	}
	n := 0
	for _, s := range k.world.servers {
		it, ok := s.lock(p.resource)
		if ok && it.heldBy(p.token) && it.expires >= s.clock.millis(until) {
			n++
		}
	}
	if n <= len(k.world.servers)/2 {
		k.report(minority, "%s of %s (%s): %d masters hold it until %.6f", p.resource, p.client.name, p.token, n, until.Seconds())
	}
}

// sent checks a command on its way to a master: an attempt that has failed sends nothing more.
func (k *checker) sent(words []string) {
	k.votedSent(words)
	if words[0] != "SET" || len(words) < 4 || words[3] != "NX" {
		return
	}
	if f := k.attempts[words[2]]; f != nil && f.failed && !f.left {
		k.report(afterEnd, "%v", words)
	}
}

// doubt says that somebody takes a resource from its holder, now or until a true time: nothing is promised until then,
// and nothing that was promised holds.
func (k *checker) doubt(resource string, until time.Duration) {
	k.doubtful[resource] = max(k.doubtful[resource], until)
	for _, p := range k.promises[resource] {
		p.doubtful = true
	}
	for _, h := range k.holds[resource] { // which last for longer than was promised
		h.promise.doubtful = true
	}
}

// slept moves the ends of all promises: while the proxies stood still, everybody else went on.
func (k *checker) slept(by time.Duration) {
	for _, list := range k.promises {
		for _, p := range list {
			p.until -= by
		}
	}
	for _, x := range k.exchanges {
		x.until -= by
	}
}

// stands says that a promise holds now, so that whoever asks must find the lock there.
func (k *checker) stands(p *promise) bool {
	return !p.over && !p.doubtful && !p.contested && k.world.now() < p.until
}

// gone is called when a client was told that it does not hold its lock.
func (k *checker) gone(p *promise, by string) {
	if k.stands(p) && (!k.world.plan.forgets() || k.world.plan.Spares) { // else a quorum may have forgotten it
		k.report(lostLock, "%s of %s (%s) is gone, says %s, %v early",
			p.resource, p.client.name, p.token, by, p.until-k.world.now())
	}
}

// wrote checks a key that a master has set, for a connection.
func (k *checker) wrote(s *server, c *session, key string, it item) {
	if strings.HasPrefix(key, "lockproxy:") || s.twofold { // of two servers behind one address, a proxy may go by the other's clock
		return
	}
	left := time.Duration(it.expires-s.clock.millis(s.now())) * time.Millisecond
	// Who chose the instant did not know yet that the clock was set back, or stood still, since the batch before: the proof
	// of this one will tell. That vote does not count, and is undone.
	most := k.keptMost + s.clock.setBack(c.knew, s.now())
	if k.world.plan.Spoken && strings.HasPrefix(key, "w") { // a lock of readers: who leaves gives it what is left of another's key, which may be from before the clock was set back
		loosest := k.world.plan.loosest()
		most = k.keptMost + s.clock.setBack(lead{}, s.now())
		most += quorum.Drift(most, loosest.DriftFactor) + loosest.Grace
	}
	if k.world.plan.Paused { // until a proxy has heard of it, it takes what it slept for the master's
		most += k.world.asleep()
	}
	if it.expires == 0 || left > most && !s.store.expired(key, it.expires) {
		k.report(forEver, "%s: %s expires in %v", s.addr, key, left)
	}
}

// takesVote checks a command that replaces or removes a key: it names the token that it found there, or its digest or DUMP and when
// it expires. Scripts that run by vote compare in their text, and who takes a lock over by SET does not compare.
func (k *checker) takesVote(s *server, c *session, key, next string) {
	p := &k.world.plan
	if key[0] != 'r' || s.running == nil || p.Votes > 0 || p.Takeovers > 0 || p.Breaks > 0 {
		return
	}
	was, ok := s.get(c, key)
	if ok && was.text != next && !slices.Contains(s.running, was.text) && !namesWithExpiry(s.running, was) {
		k.report(blindTaker, "%s: %s of %s, for %q, by %s", s.addr, was.text, key, next, brief(s.running))
	}
}

// revives checks a command that sets a key: none sets a lock that is over, but one that was sent soon after, or that puts back what a
// client has taken away in vain, or that fills a gap, which is undone (rule 11).
func (k *checker) revives(s *server, c *session, key, token string) {
	at, over := k.bygone[token]
	if !over || key[0] != 'r' || s.running == nil || k.world.plan.Votes > 0 {
		return
	}
	putsBack := len(s.running) == 8 && s.running[6] == token // in the place of what an Exec has put in vain
	if putsBack || k.shaken[token] || k.thefts[key] > 0 || slices.Contains(s.running, "lockproxy:canary") {
		return
	}
	if was, _ := s.get(c, key); was.text != token && s.sent > at+3*k.world.plan.loosest().InstanceTimeout {
		k.report(zombie, "%s: %s of %s, %v after, by %s", s.addr, token, key, s.sent-at, brief(s.running))
	}
}

// namesWithExpiry says that a key's digest or DUMP is in a command, and behind it when the key expires, as exactly as masters tell.
func namesWithExpiry(words []string, it item) bool {
	const slack = 4 // ms
	for i := 1; i < len(words); i++ {
		at, err := strconv.ParseInt(words[i], 10, 64)
		named := words[i-1] == sha1hex(it.text) || words[i-1] == dump(it)
		if err == nil && named && max(at-it.expires, it.expires-at) <= slack {
			return true
		}
	}
	return false
}

// ended checks how long an attempt took: the round may take one InstanceTimeout, and so may its undo.
func (k *checker) ended(took time.Duration, what string) { k.endedIn(2, took, what) }

// endedIn is ended for what may take so many InstanceTimeouts.
func (k *checker) endedIn(timeouts int, took time.Duration, what string) {
	const slack = 50 * time.Millisecond // the patience of the engine counts in ticks
	if most := time.Duration(timeouts)*k.world.plan.loosest().InstanceTimeout + slack; took > most {
		k.report(noEnd, "%s took %v", what, took)
	}
}

// attempt notes what became of an attempt whose token is used once.
func (k *checker) attempt(token string, f fate) { k.attempts[token] = &f }

// orphans looks for keys of attempts that have failed. Attempts of proxies that are gone are left to their TTL, and so
// is what a connection that may not be killed can still have set, and what somebody else wants to live for another time: an
// undo takes what its attempt set, and nothing else. So is what somebody took away in vain: he may put it back when it was undone. And
// what a reader's attempt has left in a lock that others hold goes with that, as on one Redis what a reader does who lets its hold end.
func (k *checker) orphans() {
	p := &k.world.plan
	// A transaction that lost puts back what it has replaced, even if that has been undone meanwhile.
	if len(p.Denied) > 0 || p.Forgets || p.Takeovers > 0 && p.Transactions > 0 {
		return
	}
	for _, s := range k.world.servers {
		now := s.clock.millis(s.now())
		for key, it := range s.store.all() {
			f := k.attempts[it.holder()]
			if m := k.attempts[key+" "+it.holder()]; m != nil { // it was to be moved there
				f = m
			}
			if f != nil && f.failed && !k.prolonged[key] && !k.shaken[it.holder()] && k.renewals[key] == 0 && !it.isShared() && !k.lost[s.addr+" "+it.holder()] && !f.life.dead && f.life.proxy.life == f.life && now <= it.expires {
				k.report(orphan, "%s: %s still holds %s for %d ms", s.addr, key, it.holder(), it.expires-now)
			}
		}
	}
}
