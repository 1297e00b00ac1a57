package script

import (
	"slices"
	"strings"
)

// keyState is the state of the key during a run.
type keyState struct {
	exists bool
	mine   bool // the key holds the token
	alien  bool // the key holds no string
	ttl    lifetime
}

// The possible worlds before a script.
var (
	worldAbsent = keyState{}
	worldMine   = keyState{exists: true, mine: true}
	worldOther  = keyState{exists: true}
	worldAlien  = keyState{exists: true, alien: true}
)

// lifetimeKind says how a key's TTL has changed.
type lifetimeKind uint8

const (
	unchanged lifetimeKind = iota
	forever
	limited
)

// A lifetime is the TTL that a script gives to the key.
type lifetime struct {
	kind    lifetimeKind
	seconds bool   // the amount counts seconds, not milliseconds
	numeric bool   // the argument is read as Lua's tonumber does, not as an integer
	amount  linear // limited
	command string // for errors: the command that set the TTL, lower case
	line    int    // for errors
}

// same reports whether two lifetimes are equal, wherever they stand in the text.
func (l lifetime) same(m lifetime) bool {
	l.command, l.line, m.command, m.line = "", 0, "", 0
	return l == m
}

// A command is a row of the table of understood commands.
type command struct {
	args int // number of arguments after the key; -1: any number
	run  func(r *run, args []symbol, at place) symbol
}

// place says where in the text a command stands, for Redis's errors.
type place struct {
	command string
	line    int
	caught  bool // the command is in a pcall
}

// commands is the table, by name in lower case.
var commands = map[string]command{
	"get":     {0, (*run).get},
	"set":     {-1, (*run).set},
	"setnx":   {1, (*run).setnx},
	"setex":   {2, (*run).setex},
	"psetex":  {2, (*run).setex},
	"expire":  {1, (*run).expire},
	"pexpire": {1, (*run).expire},
	"persist": {0, (*run).persist},
	"del":     {0, (*run).del},
	"unlink":  {0, (*run).del},
	"exists":  {0, (*run).exists},
	"ttl":     {0, (*run).remaining},
	"pttl":    {0, (*run).remaining},
}

// command carries out redis.call and redis.pcall. They differ only if the key has another type. The other error that
// pcall would catch, a bad TTL, is an error of Bind.
func (r *run) command(args []symbol, at place) symbol {
	if len(args) < 2 || args[0].kind != symString {
		panic(notUnderstood)
	}
	name := lower(args[0].text)
	c, ok := commands[name]
	if !ok || c.args >= 0 && c.args != len(args)-2 {
		panic(notUnderstood)
	}
	r.path.bindKey(args[1])
	r.path.reread = r.path.reread || r.key.ttl.kind == limited
	at.command = name
	return c.run(r, args[2:], at)
}

func (r *run) get(_ []symbol, at place) symbol {
	switch {
	case !r.key.exists:
		return boolean(false)
	case r.key.alien && at.caught:
		return symbol{kind: symErrorText, text: wrongType}
	case r.key.alien:
		panic(halted{raised{wrongType, at.line}})
	}
	return symbol{kind: symHeld, mine: r.key.mine}
}

// put makes the key hold the token.
func (r *run) put(value symbol, ttl lifetime) {
	r.path.bindToken(value)
	r.key = keyState{exists: true, mine: true, ttl: ttl}
}

func (r *run) set(args []symbol, at place) symbol {
	if len(args) == 0 {
		panic(notUnderstood)
	}
	ttl := lifetime{kind: forever}
	var ifAbsent, ifExists bool
	for i := 1; i < len(args); i++ {
		if args[i].kind != symString {
			panic(notUnderstood)
		}
		switch option := strings.ToUpper(args[i].text); option {
		case "NX":
			ifAbsent = true
		case "XX":
			ifExists = true
		case "EX", "PX":
			i++
			if i == len(args) || ttl.kind == limited {
				panic(notUnderstood)
			}
			ttl = r.lifetime(args[i], option == "EX", at)
		default:
			panic(notUnderstood)
		}
	}
	if ifAbsent && ifExists {
		panic(notUnderstood)
	}
	if ifAbsent && r.key.exists || ifExists && !r.key.exists {
		r.path.bindToken(args[0])
		return boolean(false)
	}
	r.put(args[0], ttl)
	return symbol{kind: symStatus, text: "OK"}
}

func (r *run) setnx(args []symbol, _ place) symbol {
	if r.key.exists {
		r.path.bindToken(args[0])
		return number(0)
	}
	r.put(args[0], lifetime{kind: forever})
	return number(1)
}

func (r *run) setex(args []symbol, at place) symbol {
	r.put(args[1], r.lifetime(args[0], at.command == "setex", at))
	return symbol{kind: symStatus, text: "OK"}
}

func (r *run) expire(args []symbol, at place) symbol {
	ttl := r.lifetime(args[0], at.command == "expire", at)
	if !r.key.exists {
		return number(0)
	}
	r.key.ttl = ttl
	return number(1)
}

func (r *run) persist([]symbol, place) symbol {
	if !r.key.exists || r.key.ttl.kind == forever {
		return number(0)
	}
	r.key.ttl = lifetime{kind: forever}
	return number(1)
}

func (r *run) del([]symbol, place) symbol {
	if !r.key.exists {
		return number(0)
	}
	r.key = worldAbsent
	return number(1)
}

func (r *run) exists([]symbol, place) symbol {
	if r.key.exists {
		return number(1)
	}
	return number(0)
}

// remaining answers TTL and PTTL. The key had a TTL when the script began; lockproxy gives every key a TTL.
func (r *run) remaining(_ []symbol, at place) symbol {
	switch {
	case !r.key.exists:
		return number(-2)
	case r.key.ttl.kind == forever:
		return number(-1)
	case r.key.ttl.kind == limited:
		panic(notUnderstood)
	case at.command == "ttl":
		return symbol{kind: symSeconds}
	}
	return symbol{kind: symLinear, linear: linear{added: true}}
}

// lifetime reads the argument of a command that sets a TTL.
func (r *run) lifetime(s symbol, seconds bool, at place) lifetime {
	l := lifetime{kind: limited, seconds: seconds, command: at.command, line: at.line, numeric: s.kind == symLinear}
	if s.kind == symString {
		if _, ok := parseInt(s.text, 32); !ok {
			panic(notUnderstood)
		}
	}
	l.amount = s.asLinear()
	switch {
	case l.amount.constant() && (l.amount.offset < 1 || l.amount.offset != float64(int64(l.amount.offset))),
		l.amount.added && (seconds || l.amount.source.from == nowhere):
		panic(notUnderstood)
	}
	if !slices.Contains(r.path.ttls, l) {
		r.path.ttls = append(r.path.ttls, l)
	}
	return l
}
