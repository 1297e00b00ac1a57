package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"lockproxy/quorum"
)

// A Plan is a seed's world: the setup, the clients' work, and the faults.
type Plan struct {
	Seed    Seed
	Forgets bool   // a fault makes masters forget, or lets their clocks jump
	Spares  bool   // no more masters forget than a quorum can spare
	Aim     string // the class of the world; "" is any

	Masters, Proxies, Clients, Resources int
	Attempts                             int // of each client
	Config                               quorum.Config
	Own                                  []quorum.Config // of proxies with settings of their own, by number; the first proxy has Config

	Latency  time.Duration // one way, typically
	Lossy    float64       // how often a segment is late
	LateMost time.Duration
	Split    float64       // how often a batch comes in two segments
	Offset   time.Duration // of the masters' clocks, either way
	Rate     float64       // at most so far too fast or too slow
	Old      float64       // how many masters are of version 6
	Append   string        // appendfsync of the masters; "" is no append-only file
	Denied   []string      // commands that the masters do not permit

	TTLLeast, TTLMost  time.Duration
	Longs              float64       // how often a TTL is the longest possible: then a missing lock is not just expired
	Touches, Stretches float64       // how often a held lock is touched, and how often an extension is for the longest TTL
	Think, Hold        time.Duration // at most; a hold is also bounded by twice the TTL
	Takeovers          float64       // how often a client writes, removes or expires without holding
	Transactions       float64       // how often a client uses Exec in place of another command
	Fences             float64       // how often an attempt asks for a fence
	Walls              time.Duration // how often a wall clock of a proxy jumps then, on average
	Votes              float64       // how often a client uses a script in place of another command
	Constant           bool          // clients use constant tokens, each proxy its own
	Together           float64       // how often a client takes several locks at once
	Exchanges          float64       // how often a client exchanges a value
	Databases          bool          // locks are in two
	Moves              float64       // how often a client that holds a lock by vote moves it
	Beat               time.Duration // clients and faults meet at its multiples; 0 is never
	Focus              float64       // how often a fault strikes the same master, and the same proxy
	Roams              float64       // how often a client goes to another proxy
	Replaces           float64       // how often a client that holds a lock replaces its token
	Keeps              float64       // how often a client extends a lock again and again
	Thefts             float64       // how often a client takes a lock from another
	Rolls              bool          // masters forget one after the other
	Breaks             float64       // how often a client breaks a lock
	Adds               float64       // how often a speaking client adds to a lock that it holds
	Expires            float64       // how often a client that holds a lock extends it by EXPIRE

	Spoken        bool          // clients speak the protocol (front.go): the fields below are for them
	Calm          bool          // nothing goes wrong but clients
	Waits, Holds  float64       // how often an attempt waits for its lock, and how often it is for as long as the connection
	Batches       float64       // how often a client sends several commands at once
	Watches       float64       // how often it takes a lock by WATCH and EXEC
	Reads         float64       // how often it takes a lock that may be shared
	HangUps, Slow float64       // how often it is gone before the answer, and how many clients read late
	Write         time.Duration // how long a client may leave replies unread

	Faults []string // the kinds that occur
	Gap    time.Duration
	Brief  time.Duration // no fault lasts longer; 0 is any
	Paused bool          // a virtual machine is suspended, and its clocks do not tell
	Blunt  bool          // faults strike any master, even in an aimed world
	Shifts bool          // masters take turns in being away

	Away time.Duration // the longest way between a proxy and a master, one way: each is at a distance of its own; 0 if all are near

	Standing bool // masters have replicas all the time; otherwise a replica comes just before it takes over
	Writable bool // replicas accept writes
}

// planVersion names the way in which seeds become plans. A change of it gives every seed another world. Then the kept
// seeds (regressions.txt, mutants.txt) must be found anew.
const planVersion = "v3"

// NewPlan makes a plan of a seed.
func NewPlan(seed Seed) Plan {
	r := rand.New(rand.NewPCG(seed.Number, 0))
	p := Plan{Seed: seed}
	p.Masters = pick(r, 3, 3, 3, 5, 5, 4)
	p.Proxies = pick(r, 1, 2, 2, 2, 3)
	p.Clients = 3 + r.IntN(4)
	p.Resources = 1 + r.IntN(3)
	p.Attempts = 25 + r.IntN(30)

	p.Latency = pick(r, 100*time.Microsecond, 300*time.Microsecond, time.Millisecond)
	p.Lossy = pick(r, 0, 0.002, 0.01, 0.05)
	p.LateMost = pick(r, 20*time.Millisecond, 200*time.Millisecond, 2*time.Second)
	p.Split = pick(r, 0, 0, 0.05, 0.3)
	p.Offset = pick(r, 0, time.Millisecond, time.Hour)
	p.Old = pick(r, 0, 0, 0.3, 1)
	p.Append = pick(r, "", "everysec", "always", "always")

	p.config(r)
	p.behaviour(r)
	p.faults(r)
	if chance(r, 0.4) {
		p.aimAt(pick(r, aims...), r)
	}
	if seed.In(Fenced) {
		p.fences(rand.New(rand.NewPCG(seed.Number, 1)))
	}
	if seed.In(Voted) {
		p.votes(rand.New(rand.NewPCG(seed.Number, 3)))
	}
	if seed.In(Several) {
		p.several(rand.New(rand.NewPCG(seed.Number, 4)))
	}
	if seed.In(Moved) {
		p.moves(rand.New(rand.NewPCG(seed.Number, 5)))
	}
	if seed.In(Crowded) {
		p.crowd(rand.New(rand.NewPCG(seed.Number, 6)))
	}
	if seed.In(Spoken) {
		p.speak(rand.New(rand.NewPCG(seed.Number, 7)))
	}
	if seed.In(Spoken | Queued) {
		p.queue(rand.New(rand.NewPCG(seed.Number, 11)))
	}
	if seed.In(Mixed) {
		p.mix(rand.New(rand.NewPCG(seed.Number, 2)))
	}
	if seed.In(Operated) {
		p.operate(rand.New(rand.NewPCG(seed.Number, 9)))
	}
	if seed.In(Far) {
		p.far(rand.New(rand.NewPCG(seed.Number, 10)))
	}
	p.pipe()
	return p
}

// mix lets all proxies but the first be less strict about clocks, or shorter of memory, than the plan says.
func (p *Plan) mix(r *rand.Rand) {
	for range p.Proxies - 1 {
		c := p.Config
		c.Grace *= pick[time.Duration](r, 1, 4, 20)
		c.DriftFactor = min(c.DriftFactor*pick[float64](r, 1, 1, 4), 0.2)
		if shorter := max(c.TTLMax/4, p.TTLMost); r.IntN(3) == 0 && !p.startsAnew() {
			c.TTLMax = shorter
		}
		p.Own = append(p.Own, c)
	}
	if r.IntN(2) == 0 && len(p.Own) > 0 { // the strict proxy is not always there first
		p.Config, p.Own[0] = p.Own[0], p.Config
	}
}

// startsAnew says that a proxy may meet only masters that have forgotten.
func (p *Plan) startsAnew() bool {
	return slices.ContainsFunc(p.Faults, func(name string) bool { return kindOf(name).endsProxy }) ||
		slices.Contains(p.Faults, allRestarted)
}

// of returns the settings of a proxy.
func (p *Plan) of(proxy int) *quorum.Config {
	if proxy > 0 && len(p.Own) > 0 {
		return &p.Own[proxy-1]
	}
	return &p.Config
}

// strictest returns the least steps and drift of clocks that any proxy allows, and loosest the most. Both return the
// longest TTL.
func (p *Plan) strictest() quorum.Config {
	c := p.Config
	for _, o := range p.Own {
		c.Grace, c.DriftFactor, c.TTLMax = min(c.Grace, o.Grace), min(c.DriftFactor, o.DriftFactor), max(c.TTLMax, o.TTLMax)
	}
	return c
}

func (p *Plan) loosest() quorum.Config {
	c := p.Config
	for _, o := range p.Own {
		c.Grace, c.DriftFactor, c.TTLMax = max(c.Grace, o.Grace), max(c.DriftFactor, o.DriftFactor), max(c.TTLMax, o.TTLMax)
		c.InstanceTimeout, c.MasterDeadAfter = max(c.InstanceTimeout, o.InstanceTimeout), max(c.MasterDeadAfter, o.MasterDeadAfter)
	}
	return c
}

func (p *Plan) config(r *rand.Rand) {
	c := quorum.Config{Databases: databases}
	c.InstanceTimeout = pick(r, 10*time.Millisecond, 30*time.Millisecond, 100*time.Millisecond)
	c.DriftFactor = pick(r, 0.01, 0.01, 0.05)
	c.Grace = pick(r, 20*time.Millisecond, 50*time.Millisecond)
	c.TTLMax = pick(r, 2*time.Second, 5*time.Second)
	if chance(r, 0.3) {
		p.Longs, c.TTLMax = 0.2, 20*time.Second
	}
	c.MasterDeadAfter = pick(r, 200*time.Millisecond, time.Second)
	p.Config = c
	p.Rate = c.DriftFactor / 2 * pick(r, 0, 0.5, 0.95) // half is for the uncertainty about the clock
	p.TTLLeast = pick(r, 5*time.Millisecond, 30*time.Millisecond, 100*time.Millisecond, 300*time.Millisecond)
	p.TTLMost = min(p.TTLLeast*pick[time.Duration](r, 1, 2, 5, 20), c.TTLMax)
}

func (p *Plan) behaviour(r *rand.Rand) {
	p.Think = pick(r, 2*time.Millisecond, 10*time.Millisecond, 50*time.Millisecond)
	p.Hold = pick(r, 2*time.Millisecond, 10*time.Millisecond, 100*time.Millisecond)
	p.Takeovers = pick(r, 0, 0, 0.01, 0.05)
	p.Transactions = pick(r, 0, 0, 0.3, 1)
	p.Constant = chance(r, 0.2)
	p.Touches, p.Stretches = 0.3, pick(r, 0, 0.1)
	if chance(r, 0.1) && !p.Constant { // see client.go
		p.Denied = []string{"KILL"}
	}
}

func (p *Plan) faults(r *rand.Rand) {
	p.Gap = pick(r, 10*time.Millisecond, 30*time.Millisecond, 100*time.Millisecond, 400*time.Millisecond)
	often := pick(r, 0.05, 0.2, 0.6)
	for _, f := range faultKinds {
		if chance(r, often) && !(p.Constant && f.endsProxy) {
			p.Faults = append(p.Faults, f.name)
		}
	}
	p.Standing, p.Writable = chance(r, 0.5), chance(r, 0.3)
	p.Paused = chance(r, 0.5)
	if chance(r, 0.5) {
		return
	}
	for _, f := range forgetKinds {
		if chance(r, often) {
			p.Faults, p.Forgets = append(p.Faults, f.name), true
		}
	}
}
