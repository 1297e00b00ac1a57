package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/rules"
)

// Several: in worlds of the class Several, clients also take several locks by one EXEC, as MSETNX does, and hand values
// to each other by GETSET, SET with GET, and GETDEL. Locks may be in two databases, masters may refuse to write for a
// while, and there may be 1 to 6 masters. All random draws for this are from streams of their own.

func (p *Plan) several(r *rand.Rand) {
	p.Together, p.Exchanges, p.Databases = pick(r, 0.1, 0.5, 1), pick(r, 0, 0.3, 0.6), chance(r, 0.5) && p.Fences == 0 // each has fences of its own
	p.Resources = 2 + r.IntN(4)
	for _, f := range refusalKinds {
		if chance(r, 0.3) {
			p.Faults = append(p.Faults, f.name)
		}
	}
	if p.Aim == "" {
		p.Masters = pick(r, 1, 2, 3, 3, 4, 5, 6)
	}
	if p.Masters == 1 { // one master is a quorum of clocks: assumption 3
		p.Faults = slices.DeleteFunc(p.Faults, func(name string) bool { return kindOf(name).setsClock })
	}
}

// refusalKinds are faults after which a master answers writes with errors.
var refusalKinds = []faultKind{
	{name: "memory full", strike: refuse("OOM command not allowed when used memory > 'maxmemory'.")},
	{name: "cannot save", strike: refuse("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.")},
}

func refuse(with fault) func(*World, *rand.Rand) func() {
	return func(w *World, r *rand.Rand) func() {
		s := w.anyServer(r)
		w.logf("fault", "%s: %v", s.addr, with)
		s.refuses = with
		return func() { s.refuses = "" }
	}
}

// refusal is the error for a writing command, if there is one now. Only some commands need memory, and a script that
// has written may go on.
func (s *server) refusal(c *session, name string) fault {
	if s.refuses == "" || s.refuses[0] == 'O' && (!denyOOM[name] || c.wrote) {
		return ""
	}
	return s.refuses
}

// denyOOM are the commands that need memory.
var denyOOM = map[string]bool{"SET": true, "HINCRBY": true, "RESTORE": true, "COPY": true}

// key returns where a resource is.
func (p *Plan) key(name string) quorum.Key {
	if !p.Databases {
		return quorum.Key{Name: name}
	}
	return quorum.Key{DB: int(name[len(name)-1]) % databases, Name: name}
}

// used returns how many databases locks are in.
func (p *Plan) used() int {
	if p.Databases {
		return databases
	}
	return 1
}

// lock returns a master's key of a resource.
func (s *server) lock(resource string) (item, bool) {
	return s.store.get(s.world.plan.key(resource).DB, resource, s.clock.millis(s.now()))
}

// takeTogether takes several locks by one EXEC, or none, holds the locks for a while, and gives the locks back.
func (c *client) takeTogether(resource string, ttl time.Duration) {
	w, k := c.world, &c.world.checker
	names := []string{resource}
	for i := range w.plan.Resources {
		if name := resourceName(i); name != resource && w.plan.key(name).DB == w.plan.key(resource).DB && chance(c.severally, 0.6) {
			names = append(names, name)
		}
	}
	c.tries++
	token := fmt.Sprintf("%s-t%d", c.name, c.tries)
	var held []*promise
	leaves := chance(c.severally, 0.04)
	began, slept := w.now(), w.asleep()
	x, ok := c.exec(names, func(now []quorum.View) []quorum.Edit {
		if slices.ContainsFunc(now, func(v quorum.View) bool { return v.Exists }) {
			return nil
		}
		return slices.Repeat([]quorum.Edit{{Kind: quorum.Put, Value: token, TTL: ttl}}, len(names))
	}, func(l *life, x quorum.Executed) {
		w.logf(c.name, "via %s: %v together for %v, token %s: granted %v, %v", l.name, names, ttl, token, x.Lock != nil, x.Err)
		k.attempt(token, fate{life: l, failed: x.Lock == nil || leaves, left: leaves})
		if x.Lock == nil || leaves {
			return
		}
		until := w.until(x.Lock.Until(), began, ttl, slept)
		for _, name := range names {
			p := &promise{resource: name, token: token, client: c, until: until}
			held = append(held, p)
			k.granted(p)
		}
	})
	w.do(func() {
		k.counts.Attempts++
		if ok {
			k.counts.answered(x.Err != nil, x.Lock != nil)
		} else {
			k.counts.Lost++
		}
	})
	if leaves && x.Lock != nil { // the client has gone before the answer
		x.Lock.Abandon()
	}
	if len(held) == 0 {
		return
	}
	c.pause(between(c.severally, 0, min(w.plan.Hold, 2*ttl)))
	if chance(c.severally, 0.3) && !c.extend(held[0], quorum.ExtendRequest{TTL: ttl}) {
		held = held[1:]
	}
	if chance(c.severally, 0.5) {
		c.giveTogether(held, token)
		return
	}
	for _, p := range held {
		c.release(p)
	}
}

// giveTogether gives locks back by one EXEC.
func (c *client) giveTogether(held []*promise, token string) {
	w, k := c.world, &c.world.checker
	var names []string
	var stood []promise
	w.do(func() {
		for _, p := range held {
			names, stood = append(names, p.resource), append(stood, *p)
			p.over = true
		}
	})
	if len(names) == 0 {
		return
	}
	var now []quorum.View
	_, _ = c.exec(names, func(seen []quorum.View) []quorum.Edit {
		edits := make([]quorum.Edit, len(seen))
		now = seen
		for i, v := range seen {
			if v.Value == token {
				edits[i].Kind = quorum.Delete
			}
		}
		return edits
	}, func(_ *life, x quorum.Executed) {
		for i := range stood {
			if stood[i].doubtful = held[i].doubtful; x.Err == nil && now[i].Value != token {
				k.gone(&stood[i], "an EXEC")
			}
		}
	})
}

// exec makes an EXEC on keys of one database.
func (c *client) exec(names []string, plan quorum.Plan, heard func(*life, quorum.Executed)) (quorum.Executed, bool) {
	w, began := c.world, c.world.now()
	req := quorum.ExecRequest{DB: w.plan.key(names[0]).DB, Keys: names, Plan: plan}
	return ask(c.proxy, func(l *life, x quorum.Executed) {
		w.checker.endedIn(patience*(1+w.plan.Clients), w.now()-began, "an EXEC of "+c.name)
		heard(l, x)
	}, func(e *quorum.Engine, done func(quorum.Executed)) { e.Exec(req, done) })
}

// An exchange is a client's change of a value. The client put a value, or deleted the value, and was told the former
// value, or that there was none.
type exchange struct {
	client       *client
	key, put     string
	began, ended time.Duration // true time
	until        time.Duration // until then the put value is there, if nobody takes it
	done         bool          // otherwise nobody knows the outcome, or there was nothing to do
	told         string        // "" if nothing was there
}

// exchange puts a value in the place of another, or takes a value away, and is told the former value.
func (c *client) exchange() {
	w, k := c.world, &c.world.checker
	c.tries++
	ttl := w.plan.TTLMost
	x := &exchange{client: c, key: fmt.Sprintf("v%d", 1+c.severally.IntN(2)), put: fmt.Sprintf("%s-x%d", c.name, c.tries), began: w.now()}
	slept := w.asleep()
	key, kind := w.plan.key(x.key), c.severally.IntN(4)
	heard := func(err error, told string) {
		x.done, x.told, x.ended = err == nil, told, w.now()
		x.until = x.began + rules.Validity(ttl, 0, w.plan.loosest().DriftFactor) - (w.asleep() - slept)
		w.logf(c.name, "put %q into %s: told %q, %v", x.put, x.key, told, err)
	}
	w.do(func() { k.exchanges = append(k.exchanges, x) })
	if kind > 1 {
		req := quorum.WriteRequest{Key: key, Value: x.put, TTL: ttl, WantOld: true}
		if kind == 3 {
			req.IfExists = true
		}
		_, _ = ask(c.proxy, func(_ *life, o quorum.Written) {
			heard(o.Err, o.Old)
			if !o.Done && o.Err == nil {
				x.put = ""
			}
		}, func(e *quorum.Engine, done func(quorum.Written)) { e.Write(req, done) })
		return
	}
	edit, was := quorum.Edit{Kind: quorum.Put, Value: x.put, TTL: ttl}, quorum.View{}
	if kind == 0 {
		x.put, edit = "", quorum.Edit{Kind: quorum.Claim}
	}
	_, _ = c.exec([]string{x.key}, func(now []quorum.View) []quorum.Edit {
		if was = now[0]; kind == 0 && !was.Exists {
			return nil
		}
		return []quorum.Edit{edit}
	}, func(_ *life, o quorum.Executed) { heard(o.Err, was.Value) })
}

// exchanged checks the clients that were told the value which they replaced or took away. No two clients may be told
// the same value. No client may be told that there was no value while there was a value that nobody has been told of
// since, nor can have taken. Clients that delete at the same moment, without a quorum for any, put the value back. For
// a moment the value seems gone (docs/safety.md).
func (k *checker) exchanged() {
	told := make(map[string]*exchange)
	for _, x := range k.exchanges {
		if !x.done || x.told == "" {
			continue
		}
		if other := told[x.told]; other != nil {
			k.report(toldTwice, "%s: %s in %s, and %s until %v", x.told, other.client.name, x.key, x.client.name, x.ended)
		}
		told[x.told] = x
	}
	for _, null := range k.exchanges {
		if !null.done || null.told != "" {
			continue
		}
		for _, x := range k.exchanges {
			if x.key != null.key || !x.done || x.put == "" || told[x.put] != nil || x.ended > null.began || x.until < null.ended {
				continue
			}
			if !slices.ContainsFunc(k.exchanges, func(o *exchange) bool {
				return o.key == x.key && (!o.done || o.put == "") && o.began < null.ended && (o.ended == 0 || o.ended > x.began)
			}) {
				k.report(notTold, "%s: %s was told at %v that nothing was there, not %s", null.key, null.client.name, null.ended, x.put)
			}
		}
	}
}
