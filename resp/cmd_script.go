package resp

import (
	"lockproxy/quorum"
	"lockproxy/script"
)

func runEval(c *call) Reply {
	keys, args, refused := c.scriptArgs()
	if refused != nil {
		return refused
	}
	s, err := c.server.scripts.Load(c.args[1])
	if err != nil {
		return errorReply(err)
	}
	return c.runScript(s, keys, args)
}

// shaLen is the length of a SHA-1 in hex.
const shaLen = 40

func runEvalSHA(c *call) Reply {
	if len(c.args[1]) != shaLen {
		return errNoScript
	}
	keys, args, refused := c.scriptArgs()
	if refused != nil {
		return refused
	}
	s, ok := c.server.scripts.Lookup(c.args[1])
	if !ok {
		return errNoScript
	}
	return c.runScript(s, keys, args)
}

// scriptArgs splits what follows the script into KEYS and ARGV.
func (c *call) scriptArgs() (keys, args []string, refused Reply) {
	rest := c.args[3:]
	n, ok := parseInt(c.args[2])
	switch {
	case !ok:
		return nil, nil, errNotInt
	case n > int64(len(rest)):
		return nil, nil, errKeysMany
	case n < 0:
		return nil, nil, errKeysFew
	}
	return rest[:n], rest[n:], nil
}

// runScript turns a recognised script into the quorum operation that it means, and the outcome into the reply that its
// library expects. Any other runs by vote.
func (c *call) runScript(s *script.Script, keys, args []string) Reply {
	m := s.Meaning
	if m == nil || !m.Fits(keys, args) || c.cmd.flags&readOnly != 0 {
		return c.runByVote(s, keys, args)
	}
	op, err := m.Bind(keys, args)
	switch {
	case err != nil && op.Op == script.Extend: // only the holder is told so, and the masters know who that is
		return c.runByVote(s, keys, args)
	case err != nil:
		return errorReply(err)
	}
	ttl := op.TTL
	if op.Forever {
		ttl = c.server.cfg.TTLMax
	}
	if refused := c.checkTTLMax(ttl); refused != nil {
		return refused
	}
	key := c.key(op.Key)
	switch op.Op {
	case script.Release:
		return c.release(op.Key, op.Token, scriptAnswer(m, script.Absent))
	case script.Extend:
		return c.extend(quorum.ExtendRequest{Key: key, Token: op.Token, TTL: ttl, Add: op.Add},
			scriptAnswer(m, script.Absent))
	case script.Acquire, script.AcquireOrExtend:
		return c.acquireByScript(quorum.AcquireRequest{Key: key, Token: op.Token, TTL: ttl,
			Reentrant: op.Op == script.AcquireOrExtend}, m)
	case script.Query:
		return c.query(op, m)
	}
	return c.runByVote(s, keys, args)
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

// acquireByScript makes one attempt. That it was refused says that somebody holds the lock, as far as the script knows.
func (c *call) acquireByScript(req quorum.AcquireRequest, m *script.Meaning) Reply {
	sl := c.claim(oneRound, req.Key.Name, scriptAnswer(m, script.NotMine))
	if sl == nil {
		return wait
	}
	c.engine().Acquire(req, sl.acquired)
	return later
}

// query answers what a script asks about its key. The slot's outcome is read when all is known.
func (c *call) query(op script.Call, m *script.Meaning) Reply {
	sl := c.claim(oneRound, op.Key, func(o *outcome) Reply {
		if o.done > 0 && o.kind != "string" && m.Gets() {
			return errorReply(quorum.ErrWrongType)
		}
		return valueReply(m.Answer(script.Outcome{
			Result: op.Result(o.done > 0, o.text), Value: o.text, TTL: max(o.ttl, 0),
		}))
	})
	if sl == nil {
		return wait
	}
	c.engine().Read(c.key(op.Key), sl.viewed)
	return later
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
	s, err := c.server.scripts.Load(c.args[2])
	if err != nil {
		return errorReply(err)
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
	if len(c.args) > 3 || len(c.args) == 3 && !equalFold(c.args[2], "sync") && !equalFold(c.args[2], "async") {
		return errFlushOption
	}
	c.server.scripts.Flush()
	return okReply
}

// runScriptKill ends scripts that run by vote, and those of the upstream.
func runScriptKill(c *call) Reply {
	var l *link
	if c.server.cfg.Upstream != nil {
		var refused Reply
		if l, refused = c.connected(); refused == wait {
			return wait
		} // else, if there is no link, nothing can be killed there
	}
	var reply Reply
	there := ""
	sl := c.claimSlot(oneRound, "", nil, 1+count(l != nil), func(*outcome) Reply {
		if there == "+OK\r\n" {
			return okReply
		}
		return reply
	})
	if sl == nil {
		return wait
	}
	if l != nil {
		l.ask(expectation{n: 1, take: func(reply []byte) {
			there = string(reply)
			sl.resolve(outcome{})
		}}, "SCRIPT", "KILL")
	}
	c.engine().KillScripts(func(err error) {
		if reply = okReply; err != nil {
			reply = errorReply(err)
		}
		sl.resolve(outcome{})
	})
	return later
}
