package resp

import (
	"slices"
	"time"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
)

// The planners of commands on strings.

const errWrongType = Error("WRONGTYPE Operation against a key holding the wrong kind of value")

// onString makes a planner of do, for a command on one string. The planner refuses a key of another type.
func onString(do func(p *plan, k *planned, args []string) Reply) planner {
	return func(p *plan, args []string) Reply {
		k := p.key(args[1])
		if !k.isString() {
			return errWrongType
		}
		return do(p, k, args)
	}
}

func planGet(_ *plan, k *planned, _ []string) Reply { return k.value() }

func planStrlen(_ *plan, k *planned, _ []string) Reply { return Int(k.Length) }

func planGetRange(p *plan, args []string) Reply {
	start, end, refused := rangeOf(args)
	k := p.key(args[1])
	switch {
	case refused != nil:
		return refused
	case !k.isString():
		return errWrongType
	}
	k.told = k.told || k.Exists
	return Bulk(cut(k.Value, start, end))
}

// planMGet answers null for a key that is no string, as Redis does.
func planMGet(p *plan, args []string) Reply {
	all := make(Array, 0, len(args)-1)
	for _, name := range args[1:] {
		if k := p.key(name); k.isString() {
			all = append(all, k.value())
		} else {
			all = append(all, Null{})
		}
	}
	return all
}

// planSet is SET with all options. A Unix time in the past removes the key at once; with NX, SET is refused.
func planSet(p *plan, args []string) Reply {
	o, ok := parseSetOptions(args[3:])
	if !ok {
		return errSyntax
	}
	ttl, refused := o.ttl(p.cmd.full, p.ttlMax)
	if refused != nil {
		return refused
	}
	k := p.key(args[1])
	if !k.isString() && (o.get || o.compare != compareNone) {
		return errWrongType
	}
	var old Reply
	if o.get {
		old = k.value()
	}
	apply := o.applies(k)
	switch {
	case o.nx && ttl <= 0:
		if apply = false; o.get && !k.Exists {
			old = Bulk("") // as nullOrHolder
		}
	case apply && ttl <= 0:
		k.remove()
	case apply && o.keepTTL:
		k.rewrite(args[2], ttl)
	case apply:
		k.put(args[2], ttl)
	}
	switch {
	case o.get:
		return old
	case apply:
		return okReply
	}
	return Null{}
}

// applies says whether the conditions of a SET hold.
func (o *setOptions) applies(k *planned) bool {
	switch {
	case o.nx:
		return !k.Exists
	case o.xx:
		return k.Exists
	case o.compare == compareEqual:
		return k.Exists && k.Value == o.operand
	case o.compare == compareOther:
		return !k.Exists || k.Value != o.operand
	}
	return true
}

func planSetNX(p *plan, args []string) Reply { return p.setAll(args[1:3]) }

func planMSetNX(p *plan, args []string) Reply {
	if len(args)%2 == 0 {
		return errArity(p.cmd.full)
	}
	return p.setAll(args[1:])
}

// setAll takes names and values in turn, and sets all of them, or none if a name exists.
func (p *plan) setAll(pairs []string) Reply {
	for pair := range slices.Chunk(pairs, 2) {
		//mutant: MSETNX sets what is there
		if p.key(pair[0]).Exists {
			return Int(0)
		}
	}
	for pair := range slices.Chunk(pairs, 2) {
		p.key(pair[0]).put(pair[1], p.ttlMax)
	}
	return Int(1)
}

func planSetEX(e expiry) planner {
	return func(p *plan, args []string) Reply {
		ttl, refused := readTTL(p.cmd.full, p.ttlMax, e, args[2])
		if refused != nil {
			return refused
		}
		p.key(args[1]).put(args[3], ttl)
		return okReply
	}
}

func planGetSet(p *plan, k *planned, args []string) Reply {
	old := k.value()
	k.put(args[2], p.ttlMax)
	return old
}

func planGetDel(_ *plan, k *planned, _ []string) Reply {
	old := k.value()
	k.remove()
	return old
}

// planGetEX is GETEX; PERSIST sets the longest TTL, ttlMax. As in Redis, an option may be repeated but not contradicted,
// and the number is checked only if the key exists.
func planGetEX(p *plan, args []string) Reply {
	o, persist, ok := parseGetEXOptions(args[2:])
	if !ok {
		return errSyntax
	}
	k := p.key(args[1])
	switch {
	case !k.isString():
		return errWrongType
	case !k.Exists:
		return Null{}
	}
	value := k.value()
	ttl, refused := o.ttl(p.cmd.full, p.ttlMax)
	if refused != nil {
		return refused
	}
	if o.expires || persist {
		k.expire(ttl)
	}
	return value
}

func parseGetEXOptions(args []string) (o setOptions, persist, ok bool) {
	for i := 0; i < len(args); i++ {
		opt := cString(args[i])
		if wire.EqualFold(opt, "persist") && !o.expires {
			persist = true
			continue
		}
		if i++; persist || !o.expire(opt, args[i:]) {
			return o, false, false
		}
	}
	return o, persist, true
}

// planDelEX deletes a key of any type. With a condition, the key must be a string with a fitting value.
func planDelEX(p *plan, args []string) Reply {
	k := p.key(args[1])
	switch {
	case len(args) == 2:
		return k.removeIf(k.Exists)
	case len(args) != 4:
		return errArity(p.cmd.full)
	case !k.Exists:
		return Int(0)
	case k.Type != "string":
		return Error("ERR Key should be of string type if conditions are specified")
	case wire.EqualFold(args[2], "ifeq"):
		return k.removeIf(k.Value == args[3])
	case wire.EqualFold(args[2], "ifne"):
		return k.removeIf(k.Value != args[3])
	}
	return Error("ERR Invalid condition. Use IFEQ or IFNE")
}

func planDelIfEq(_ *plan, k *planned, args []string) Reply { return k.removeIf(k.holds(args[2])) }

func (k *planned) removeIf(holds bool) Reply {
	if holds {
		k.remove()
	}
	return Int(count(holds))
}

// The planners of commands on keys of any type.

func planExists(p *plan, args []string) Reply {
	n := 0
	for _, name := range args[1:] {
		n += count(p.key(name).Exists)
	}
	return Int(n)
}

func planType(p *plan, args []string) Reply { return Status(p.key(args[1]).Type) }

func planTTL(reply func(ms int64, asked time.Time) Int) planner {
	return func(p *plan, args []string) Reply {
		k := p.key(args[1])
		if !k.Exists {
			return noKey
		}
		return reply(k.TTL.Milliseconds(), time.Now())
	}
}

func planDel(p *plan, args []string) Reply {
	n := 0
	for _, name := range args[1:] {
		k := p.key(name)
		n += count(k.Exists)
		k.remove()
	}
	return Int(n)
}

func planExpire(e expiry) planner {
	return func(p *plan, args []string) Reply {
		ttl, condition, refused := readExpire(p.cmd.full, p.ttlMax, e, args)
		if refused != nil {
			return refused
		}
		return p.setRemaining(args[1], ttl, condition)
	}
}

func planPersist(p *plan, args []string) Reply { return p.setRemaining(args[1], p.ttlMax, 0) }

func (p *plan) setRemaining(name string, ttl time.Duration, condition quorum.ExpireCondition) Reply {
	k := p.key(name)
	if !k.Exists || !condition.Holds(ttl, k.TTLMost) {
		return Int(0)
	}
	k.expire(ttl)
	return Int(1)
}
