package script

import (
	"slices"
	"strings"
)

// keyState is what a run has made of the key.
type keyState struct {
	exists bool
	mine   bool // it holds the token
	alien  bool // it holds no string
	ttl    lifetime
}

// The worlds that a script can find.
var (
	worldAbsent = keyState{}
	worldMine   = keyState{exists: true, mine: true}
	worldOther  = keyState{exists: true}
	worldAlien  = keyState{exists: true, alien: true}
)

// lifetimeKind says what became of a key's TTL.
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
	command string // for errors: the command that set it, lower case
	line    int    // for errors
}

// same reports whether two lifetimes are one, wherever in the text they stand.
func (l lifetime) same(m lifetime) bool {
	l.command, l.line, m.command, m.line = "", 0, "", 0
	return l == m
}

// A command is a row of the table of those that are understood.
type command struct {
	args int // how many there are after the key; -1: any number
	run  func(r *run, args []symbol, at place) (symbol, error)
}

// place says where in the text a command stands, for Redis's errors.
type place struct {
	command string
	line    int
	caught  bool // it is a pcall
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

// command carries out redis.call, and redis.pcall, which is the same but where the key has another type: what else that
// would catch, a bad TTL, is an error of Bind.
func (r *run) command(args []symbol, at place) (symbol, error) {
	if len(args) < 2 || args[0].kind != symString {
		return symbol{}, errNotUnderstood
	}
	name := lower(args[0].text)
	c, ok := commands[name]
	if !ok || c.args >= 0 && c.args != len(args)-2 {
		return symbol{}, errNotUnderstood
	}
	if err := r.path.bindKey(args[1]); err != nil {
		return symbol{}, err
	}
	r.path.reread = r.path.reread || r.key.ttl.kind == limited
	at.command = name
	return c.run(r, args[2:], at)
}

func (r *run) get(_ []symbol, at place) (symbol, error) {
	switch {
	case !r.key.exists:
		return boolean(false), nil
	case r.key.alien && at.caught:
		return symbol{kind: symErrorText, text: wrongType}, nil
	case r.key.alien:
		return symbol{}, raised{wrongType, at.line}
	}
	return symbol{kind: symHeld, mine: r.key.mine}, nil
}

// put makes the key hold the token.
func (r *run) put(value symbol, ttl lifetime) error {
	if err := r.path.bindToken(value); err != nil {
		return err
	}
	r.key = keyState{exists: true, mine: true, ttl: ttl}
	return nil
}

func (r *run) set(args []symbol, at place) (symbol, error) {
	if len(args) == 0 {
		return symbol{}, errNotUnderstood
	}
	ttl := lifetime{kind: forever}
	var ifAbsent, ifExists bool
	for i := 1; i < len(args); i++ {
		if args[i].kind != symString {
			return symbol{}, errNotUnderstood
		}
		switch option := strings.ToUpper(args[i].text); option {
		case "NX":
			ifAbsent = true
		case "XX":
			ifExists = true
		case "EX", "PX":
			i++
			if i == len(args) || ttl.kind == limited {
				return symbol{}, errNotUnderstood
			}
			var err error
			if ttl, err = r.lifetime(args[i], option == "EX", at); err != nil {
				return symbol{}, err
			}
		default:
			return symbol{}, errNotUnderstood
		}
	}
	if ifAbsent && ifExists {
		return symbol{}, errNotUnderstood
	}
	if ifAbsent && r.key.exists || ifExists && !r.key.exists {
		return boolean(false), r.path.bindToken(args[0])
	}
	return symbol{kind: symStatus, text: "OK"}, r.put(args[0], ttl)
}

func (r *run) setnx(args []symbol, _ place) (symbol, error) {
	if r.key.exists {
		return number(0), r.path.bindToken(args[0])
	}
	return number(1), r.put(args[0], lifetime{kind: forever})
}

func (r *run) setex(args []symbol, at place) (symbol, error) {
	ttl, err := r.lifetime(args[0], at.command == "setex", at)
	if err != nil {
		return symbol{}, err
	}
	return symbol{kind: symStatus, text: "OK"}, r.put(args[1], ttl)
}

func (r *run) expire(args []symbol, at place) (symbol, error) {
	ttl, err := r.lifetime(args[0], at.command == "expire", at)
	if err != nil {
		return symbol{}, err
	}
	if !r.key.exists {
		return number(0), nil
	}
	r.key.ttl = ttl
	return number(1), nil
}

func (r *run) persist([]symbol, place) (symbol, error) {
	if !r.key.exists || r.key.ttl.kind == forever {
		return number(0), nil
	}
	r.key.ttl = lifetime{kind: forever}
	return number(1), nil
}

func (r *run) del([]symbol, place) (symbol, error) {
	if !r.key.exists {
		return number(0), nil
	}
	r.key = worldAbsent
	return number(1), nil
}

func (r *run) exists([]symbol, place) (symbol, error) {
	if r.key.exists {
		return number(1), nil
	}
	return number(0), nil
}

// remaining answers TTL and PTTL. The key had a TTL when the script began; lockproxy gives one to every key.
func (r *run) remaining(_ []symbol, at place) (symbol, error) {
	switch {
	case !r.key.exists:
		return number(-2), nil
	case r.key.ttl.kind == forever:
		return number(-1), nil
	case r.key.ttl.kind == limited:
		return symbol{}, errNotUnderstood
	case at.command == "ttl":
		return symbol{kind: symSeconds}, nil
	}
	return symbol{kind: symLinear, linear: linear{added: true}}, nil
}

// lifetime reads the argument of a command that sets a TTL.
func (r *run) lifetime(s symbol, seconds bool, at place) (lifetime, error) {
	l := lifetime{kind: limited, seconds: seconds, command: at.command, line: at.line, numeric: s.kind == symLinear}
	if s.kind == symString {
		if _, ok := parseInt(s.text, 32); !ok {
			return lifetime{}, errNotUnderstood
		}
	}
	var err error
	if l.amount, err = s.asLinear(); err != nil {
		return lifetime{}, err
	}
	switch {
	case l.amount.constant() && (l.amount.offset < 1 || l.amount.offset != float64(int64(l.amount.offset))):
		return lifetime{}, errNotUnderstood
	case l.amount.added && (seconds || l.amount.source.from == nowhere):
		return lifetime{}, errNotUnderstood
	}
	if !slices.Contains(r.path.ttls, l) {
		r.path.ttls = append(r.path.ttls, l)
	}
	return l, nil
}
