package quorum

import (
	"time"

	"lockproxy/quorum/rules"
)

// A releaseRound deletes a lock's key where the token holds it.
type releaseRound struct {
	round
	key   Key
	token string
	done  func(Released)
}

func (r *releaseRound) ask(e *Engine) {
	r.releases = &signature{name: r.key.Name, token: r.token}
	begin(e, r, r.key, r.runs(luaRelease, []string{r.key.Name}, r.token))
}

// askNamed is ask with a bell that has a name. The script is sent with its text: if a master had forgotten the script, the attempt
// behind the release would overtake the release (see sendAgain).
func (r *releaseRound) askNamed(e *Engine, bell string) {
	r.releases = &signature{name: r.key.Name, token: r.token}
	begin(e, r, r.key, luaHandOver.whole([]string{r.key.Name}, r.token, bell))
}

func (r *releaseRound) read(en *entry) ballot { return comparison(en) }

func (r *releaseRound) decide(t rules.Tally) rules.Decision { return rules.DecideRelease(t) }

func (r *releaseRound) ended(d rules.Decision) {
	switch {
	case d == rules.Won:
		r.engine.stats.released.Add(1)
		r.done(Released{Held: true})
	case d == rules.Unanswered:
		r.done(Released{Err: r.failure()})
	case r.wrongType():
		r.done(Released{Err: ErrWrongType})
	default:
		r.done(Released{Absent: r.absent()})
	}
}

// absent says that a quorum had no such key.
func (r *round) absent() bool { return r.answers(absent) >= rules.Quorum(len(r.entries)) }

// answers counts the masters that refused with the integer n.
func (r *round) answers(n int64) int {
	return r.number(rules.Refused, func(en *entry) bool { return en.Reply == n })
}

// Holds says whether a TTL applies to a key that has current left.
func (c ExpireCondition) Holds(ttl, current time.Duration) bool {
	switch {
	case c&IfNoTTL != 0,
		c&IfGreater != 0 && ttl <= current,
		c&IfLess != 0 && ttl >= current:
		return false
	}
	return true
}

// Remove and Expire change the quorum's key, whoever has set the key: a first round reads the key (seek), a second round makes the
// change on each master where the key is still the same.

// A removeRound is the second round of a Remove: a script that compares before it deletes.
type removeRound struct {
	round
	token string // for Changed.Token
	done  func(Changed)
}

// ask deletes the key where the key is still as the quorum's.
func (c *removeRound) ask(e *Engine, key Key, was *View) {
	c.releases = &signature{name: key.Name, token: was.Value}
	kind, content := was.content()
	if was.Type == "string" && len(was.Value) <= shortMax {
		c.token = was.Value
	}
	begin(e, c, key, c.runs(luaDeleteSeen, []string{key.Name}, kind, content))
}

func (c *removeRound) read(en *entry) ballot { return comparison(en) }

func (c *removeRound) decide(t rules.Tally) rules.Decision { return rules.DecideRelease(t) }

func (c *removeRound) ended(d rules.Decision) {
	is := c.changed(d)
	if is.Applied {
		is.Token = c.token
	}
	c.done(is)
}

// changed is the outcome of a change that was decided.
func (r *round) changed(d rules.Decision) Changed {
	if d == rules.Unanswered {
		return Changed{Err: r.failure()}
	}
	return Changed{Applied: d == rules.Won}
}

// An expireRound is the second round of an Expire: an extension of any present key. An expireRound promises nobody any validity.
type expireRound struct {
	extendRound
	kind string // of the key, as View.content tells
	done func(Changed)
}

// ask extends the key where the key is still as the quorum's.
func (x *expireRound) ask(e *Engine, req ExpireRequest, was *View) {
	kind, content := was.content()
	x.kind, x.req = kind, ExtendRequest{Key: req.Key, Token: content, TTL: req.TTL}
	x.keeps = e.cfg.kept(req.TTL)
	begin(e, x, req.Key, x.runs(luaExpireSeen, []string{req.Key.Name}, kind, content, x.keeps.Milliseconds()))
}

func (x *expireRound) ended(d rules.Decision) {
	if d == rules.Won {
		x.fill()
	}
	x.done(x.changed(d))
}

func (x *expireRound) lacking(en *entry) []*gap {
	if x.kind != "string" {
		return nil
	}
	return x.extendRound.lacking(en)
}

// luaBreak KEYS[1]=resource ARGV[1]=the last moment ARGV[2]=the longest token to tell: delete whatever is there, and return the token: the
// value of a string, or the only field of a hash. Where the master does not permit to read, the key is deleted all the same.
var luaBreak = newLua(luaInTime + `
local kind, token = redis.call('TYPE', KEYS[1]).ok, ''
if kind == 'none' then return -1 end
if kind == 'string' then token = redis.pcall('GETRANGE', KEYS[1], 0, ARGV[2])
elseif kind == 'hash' and redis.pcall('HLEN', KEYS[1]) == 1 then token = redis.pcall('HKEYS', KEYS[1])[1] end
if type(token) ~= 'string' or #token > tonumber(ARGV[2]) then token = '' end
redis.pcall('PUBLISH', '` + BellPrefix + `' .. KEYS[1], '')
redis.call('DEL', KEYS[1])
return {token}`)

// A breakRound is the round of a Break.
type breakRound struct {
	removeRound
	key Key
}

// ask makes the round; compose names the last moment to each master.
func (b *breakRound) ask(e *Engine) {
	b.blind = true
	begin(e, b, b.key, nil)
}

func (b *breakRound) compose(en *entry, _ int64) {
	en.Args = luaBreak.whole([]string{b.key.Name}, en.lastMoment(), shortMax)
}

// read takes an absent key for an answer, also of a master in quarantine: an absent key need not be deleted.
func (b *breakRound) read(en *entry) ballot {
	if en.Err != nil {
		return readError(en.Err)
	}
	switch told := en.Reply.(type) {
	case []any:
		return granted
	case int64:
		if told == absent {
			return refused
		}
	}
	return unexpected
}

func (b *breakRound) ended(d rules.Decision) {
	b.token = b.told()
	b.removeRound.ended(d)
}

// told returns the token that most masters told: a token of a few may be an attempt's that lost.
func (b *breakRound) told() (token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := map[string]int{}
	for en := range b.who(rules.Granted) {
		told, _ := en.Reply.([]any)
		for _, t := range told {
			if t, ok := t.(string); ok {
				if counts[t]++; counts[t] > counts[token] {
					token = t
				}
			}
		}
	}
	return token
}

// decide waits for every master. One success is enough.
func (b *breakRound) decide(t rules.Tally) rules.Decision {
	switch {
	case t.Pending() > 0:
		return rules.Undecided
	case t.Answered() < rules.Quorum(t.Masters):
		return rules.Unanswered
	case t.Granted > 0:
		return rules.Won
	}
	return rules.Lost
}

// Some commands take a lock from any holder, and compare nothing: Break, and scripts that are unconditional. Such a command must not
// take a lock that was granted after the command's client had been answered. But a command that was sent may be long on its way, or
// wait in front of a master that stands still. So the command names the last moment, by the master's clock, at which it may run: a
// moment before the end of its round, as far as the clock is known. If the clock is set back meanwhile, the command may run late all
// the same. Where the connection broke before the answer, the round waits until its end: the command may still arrive, and run.

// luaInTime ARGV[1]=the latest time that the master's clock may show, in ms.
const luaInTime = `
local t = redis.call('TIME')
--mutant: FORCEUNLOCK runs late
if t[1] * 1000 + math.floor(t[2] / 1000) > tonumber(ARGV[1]) then return redis.error_reply('` + lateError + `') end`

// lateError is the answer of a master that was reached too late.
const lateError = "LATE its client had been answered before it came"

// lastMoment returns the earliest time, in ms, that the master's clock may show when the round ends at its deadline. The call comes
// just before the entry is written.
func (en *entry) lastMoment() int64 {
	clock := &en.lane.clock
	return clock.earliest(clock.gathered + en.round.deadline.since(en.round.engine.waited()))
}
