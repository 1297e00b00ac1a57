package resp

import (
	"errors"
	"strings"

	"lockproxy/quorum"
	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
	"lockproxy/script"
)

// runEval is for all of EVAL and EVALSHA.
func runEval(c *call) Reply {
	find, keys, args, refused := scriptWords(c)
	if refused != nil {
		return refused
	}
	s, refused, _ := find(c, c.args[1])
	if refused != nil {
		return refused
	}
	return runScript(c, s, keys, args)
}

// loadScript returns the script with the given text. If nobody has checked yet whether the text is Lua, loadScript asks the masters, and
// the reader waits. If no quorum of masters answers, decided is false: the text may be a script.
func loadScript(c *call, text string) (s *script.Script, refused Reply, decided bool) {
	s, err := c.server.scripts.Load(text)
	if err != nil {
		return nil, errorReply(err), true
	}
	return compiled(c, s)
}

// lookUpScript is loadScript with the SHA-1 of the text.
func lookUpScript(c *call, sha string) (s *script.Script, refused Reply, decided bool) {
	s, ok := c.server.scripts.Lookup(sha)
	if !ok {
		return nil, errNoScript, true
	}
	return compiled(c, s)
}

func compiled(c *call, s *script.Script) (known *script.Script, refused Reply, decided bool) {
	if s.Compiles {
		return s, nil, true
	}
	replies := &c.session.replies
	var answer *quorum.Compiled // guarded by replies.mu
	c.server.engine.Compile(c.session.identity.db, s.Text, func(a quorum.Compiled) {
		replies.mu.Lock()
		answer = &a
		replies.waker.wake()
		replies.mu.Unlock()
	})
	answered := func() bool {
		replies.mu.Lock()
		defer replies.mu.Unlock()
		return answer != nil
	}
	switch {
	case !c.session.reader.await(answered):
		return nil, errEnding, false
	case answer.Err != nil:
		return nil, errorReply(answer.Err), false
	case answer.Refusal != "":
		return nil, Error(answer.Refusal), true
	}
	return c.server.scripts.KeepCompiled(s), nil, true
}

// A scriptFinder is loadScript or lookUpScript.
type scriptFinder func(c *call, named string) (s *script.Script, refused Reply, decided bool)

// shaLen is the length of a SHA-1 in hex.
const shaLen = 40

// scriptWords returns the finder for the script in args[1], the KEYS and the ARGV.
func scriptWords(c *call) (find scriptFinder, keys, args []string, refused Reply) {
	find = loadScript
	if strings.HasPrefix(c.cmd.name, "evalsha") {
		find = lookUpScript
		if len(c.args[1]) != shaLen {
			return nil, nil, nil, errNoScript
		}
	}
	rest := c.args[3:]
	n, ok := wire.ParseInt(c.args[2])
	switch {
	case !ok:
		return nil, nil, nil, errNotInt
	case n > int64(len(rest)):
		return nil, nil, nil, errKeysMany
	case n < 0:
		return nil, nil, nil, errKeysFew
	}
	return find, rest[:n], rest[n:], nil
}

// runScript turns a recognised script into the quorum operation of the same meaning, and the outcome into the reply that the
// library expects. Any other script runs by vote.
func runScript(c *call, s *script.Script, keys, args []string) Reply {
	if s.Writes() && c.cmd.flags&readOnly != 0 {
		return errMayWrite
	}
	m := s.Meaning
	if m == nil || !m.Fits(keys, args) || c.cmd.flags&readOnly != 0 {
		return runByVote(c, s, keys, args)
	}
	op, err := m.Bind(keys, args)
	if err != nil { // only the masters know the script's reply then
		return runByVote(c, s, keys, args)
	}
	if quorum.Reserved(op.Key) { // op.Key need not be in KEYS
		return errReserved(op.Key)
	}
	ttl := op.TTL
	if op.Forever {
		ttl = c.server.cfg.TTLMax
	}
	if refused := checkTTLMax(ttl, c.server.cfg.TTLMax); refused != nil {
		return refused
	}
	key := c.key(op.Key)
	switch op.Op {
	case script.Release:
		return release(c, op.Key, op.Token, op.Alien, scriptAnswer(m, script.Absent))
	case script.Extend:
		return extend(c, quorum.ExtendRequest{Key: key, Token: op.Token, TTL: ttl, Add: op.Add}, op.Alien,
			scriptAnswer(m, script.Absent))
	case script.Acquire, script.AcquireOrExtend:
		return acquireByScript(c, quorum.AcquireRequest{Key: key, Token: op.Token, TTL: ttl,
			Reentrant: op.Op == script.AcquireOrExtend, WantHolder: op.Alien.Fails()}, m, op.Alien)
	case script.Query:
		return query(c, op, m)
	}
	return runByVote(c, s, keys, args)
}

// scriptAnswer answers in the script's dialect.
func scriptAnswer(m *script.Meaning, absent script.Result) func(*outcome) Reply {
	return func(o *outcome) Reply {
		result := script.NotMine
		switch {
		case o.done > 0 && o.held:
			result = script.Extended
		case o.done > 0:
			result = script.Done
		case o.absent:
			result = absent
		}
		return valueReply(m.Answer(script.Outcome{Result: result}))
	}
}

// acquireByScript makes an attempt. A refusal is answered as the script does when somebody holds the lock. Some scripts fail on a
// key of another type than string. Then the attempt also asks the masters for the holder, because the answer tells the type.
func acquireByScript(c *call, req quorum.AcquireRequest, m *script.Meaning, alien script.Alien) Reply {
	o := overlapAny
	if req.Reentrant {
		o = overlapLater
	}
	return c.begin(o, req.Key.Name, scriptAnswer(m, script.NotMine), func(sl *slot) {
		sl.alien, sl.token, req.Insist = alien, req.Token, sl.insist
		done := sl.acquired
		if s := c.session; req.Reentrant {
			done = func(a quorum.Acquired) {
				if a.Lock != nil {
					s.holds.setTTL(req.Key, req.TTL)
				}
				sl.acquired(a)
			}
		}
		c.server.engine.Acquire(req, done)
	})
}

// query answers a script that only reads a key. The reply is made from the slot's outcome.
func query(c *call, op script.Call, m *script.Meaning) Reply {
	return c.begin(overlapAny, op.Key, func(o *outcome) Reply {
		if o.done > 0 && o.kind != "string" {
			return valueReply(op.Alien.Answer(max(o.ttl, 0)))
		}
		return valueReply(m.Answer(script.Outcome{
			Result: op.Result(o.done > 0, o.text), Value: o.text, TTL: max(o.ttl, 0),
		}))
	}, func(sl *slot) { c.server.engine.Read(sl.key, sl.viewed) })
}

// valueReply puts a script's value into the client's protocol.
func valueReply(v script.Value) Reply {
	switch v.Kind {
	case script.Int:
		return Int(v.Int)
	case script.Status:
		if v.Text == "OK" {
			return okReply
		}
		return Status(v.Text)
	case script.Bulk:
		return Bulk(v.Text)
	case script.Error:
		return Error(v.Text)
	case script.Array:
		items := make(Array, len(v.Items))
		for i, item := range v.Items {
			items[i] = valueReply(item)
		}
		return items
	}
	return Null{}
}

func runScriptLoad(c *call) Reply {
	s, refused, _ := loadScript(c, c.args[2])
	if refused != nil {
		return refused
	}
	return Bulk(s.SHA)
}

func runScriptExists(c *call) Reply {
	known := make(Array, 0, len(c.args)-2)
	for _, sha := range c.args[2:] {
		known = append(known, Int(count(c.server.scripts.Exists(sha))))
	}
	return known
}

func runScriptFlush(c *call) Reply {
	if len(c.args) > 3 || len(c.args) == 3 && !wire.EqualFold(c.args[2], "sync") && !wire.EqualFold(c.args[2], "async") {
		return errFlushOption
	}
	c.server.scripts.Flush()
	return okReply
}

// runScriptKill ends the scripts that run by vote, and the upstream's script.
func runScriptKill(c *call) Reply {
	return c.beginKeyless(made, func(sl *slot) {
		up := c.server.cfg.Upstream
		var there error
		if up != nil {
			there = up.KillScript()
		}
		c.server.engine.KillScripts(func(err error) {
			refused, _ := errors.AsType[upstream.ReplyError](there)
			switch {
			case err == nil, up != nil && there == nil:
				sl.resolve(outcome{reply: okReply})
			case refused != "" && !strings.HasPrefix(string(refused), "NOTBUSY "):
				sl.resolve(outcome{reply: Error(refused)})
			default: // if the upstream cannot be asked, nothing can be killed there
				sl.resolve(outcome{err: err})
			}
		})
	})
}
