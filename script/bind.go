package script

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// A Call is a Meaning with its arguments filled in.
type Call struct {
	Op    Op
	Key   string
	Token string        // meaningless if a Query does not compare
	TTL   time.Duration // Extend, Acquire, AcquireOrExtend: positive, or zero if Forever

	Add      bool // Extend: TTL is added to the remaining TTL
	Forever  bool // the script leaves the key without a TTL
	compares bool // Query: the key's value is compared with Token

	Alien Alien
}

// An Alien is how a script answers if its key holds something other than a string; the script does nothing else then. The zero
// Alien is no answer.
type Alien struct{ value *Value }

// Known says whether there is an answer.
func (a Alien) Known() bool { return a.value != nil }

// Fails says whether the answer is an error.
func (a Alien) Fails() bool { return a.Known() && a.value.Kind == Error }

// Answer returns the reply, for a key that still has ttl left. Mostly the reply is Redis's error, with the line of the
// script that raises the error.
func (a Alien) Answer(ttl time.Duration) Value { return a.value.fill("", ttl) }

// Result returns the result of a Query, given the key's value. Only a Query that compares can end with Done.
func (c Call) Result(exists bool, value string) Result {
	switch {
	case !exists:
		return Absent
	case c.compares && value == c.Token:
		return Done
	}
	return NotMine
}

// Bind fills in the arguments of a call. The error is a whole Redis error, its code word included. If Redis, too, would
// have refused the TTL, the error is in Redis's own words, and the Call still has Op, Key and Token: in an extension,
// Redis looks at the TTL only if the key holds the token.
//
// An extension to a TTL of zero or less becomes a Release: EXPIRE then deletes the key, with the same answer as for a
// new TTL.
func (m *Meaning) Bind(keys, args []string) (Call, error) {
	c, err := m.choose(keys, args)
	if err != nil {
		return Call{}, err
	}
	return m.fill(c, keys, args)
}

// Key returns the key of the Call by Bind, false if Bind fails.
func (m *Meaning) Key(keys, args []string) (string, bool) {
	c, err := m.choose(keys, args)
	if err != nil {
		return "", false
	}
	return c.key.in(keys, args), true
}

func (m *Meaning) choose(keys, args []string) (*choice, error) {
	if err := m.check(keys, args); err != nil {
		return nil, err
	}
	for i := range m.cases {
		if c := &m.cases[i]; c.applies(keys, args) {
			return c, nil
		}
	}
	return nil, fmt.Errorf("ERR script %s: no case fits the arguments", m.sha)
}

// Fits says whether the Meaning holds for these arguments. If not, Bind returns an error, and Redis might still have
// run the script.
func (m *Meaning) Fits(keys, args []string) bool { return m.check(keys, args) == nil }

// check makes sure that all keys and arguments of the text are there.
func (m *Meaning) check(keys, args []string) error {
	if len(keys) < m.keys || len(args) < m.args {
		return fmt.Errorf("ERR script %s needs %d keys and %d arguments, got %d and %d",
			m.sha, m.keys, m.args, len(keys), len(args))
	}
	if m.oneKey && len(keys) != 1 {
		return fmt.Errorf("ERR script %s was called with %d keys; it can be run by quorum with one key only",
			m.sha, len(keys))
	}
	for _, s := range m.numbers {
		if _, err := parseNumber(s.in(keys, args)); err != nil {
			return fmt.Errorf("ERR script %s: %v is not a number", m.sha, s)
		}
	}
	return nil
}

func (c *choice) applies(keys, args []string) bool {
	for _, condition := range c.when {
		if !condition.met(keys, args) {
			return false
		}
	}
	return true
}

func (m *Meaning) fill(c *choice, keys, args []string) (Call, error) {
	call := Call{Op: c.op, Key: c.key.in(keys, args), Token: c.token.in(keys, args), Alien: Alien{&c.alien}}
	if c.op == Query {
		call.compares = c.token.from != nowhere
	}
	if c.deletes(keys, args) {
		call.Op = Release
		return call, nil
	}
	for _, l := range c.ttls {
		if _, err := m.duration(l, keys, args); err != nil {
			return call, err
		}
	}
	if c.ttl.kind == limited {
		call.TTL, _ = m.duration(c.ttl, keys, args) // no error: ttl is also in c.ttls
	}
	call.Add = c.ttl.amount.added
	call.Forever = c.ttl.kind == forever
	return call, nil
}

// deletes reports whether an extension is to a TTL of zero or less, and nothing else in the script depends on the TTL.
func (c *choice) deletes(keys, args []string) bool {
	if c.op != Extend || c.ttl.kind != limited || c.ttl.amount.added || c.reread || len(c.ttls) > 1 ||
		c.ttl.command != "expire" && c.ttl.command != "pexpire" {
		return false
	}
	n, ok := c.ttl.count(keys, args)
	return ok && n <= 0 && !(c.ttl.seconds && n < math.MinInt64/1000) // Redis refuses an overflow in ms
}

// duration returns the TTL of a lifetime.
func (m *Meaning) duration(l lifetime, keys, args []string) (time.Duration, error) {
	n, ok := l.count(keys, args)
	if !ok {
		return 0, m.refuse("ERR value is not an integer or out of range", l)
	}
	unit := int64(1)
	if l.seconds {
		unit = 1000
	}
	// Redis adds its clock, less than 1<<42, and refuses an overflow.
	if n <= 0 || n > (math.MaxInt64-1<<42)/unit {
		return 0, m.refuse("ERR invalid expire time in '"+l.command+"' command", l)
	}
	// A time.Duration ends at 292 years.
	return time.Duration(min(n*unit, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond, nil
}

// count returns the amount of a limited lifetime, in its unit; false where Redis finds no integer.
func (l lifetime) count(keys, args []string) (int64, bool) {
	a := l.amount
	if a.source.from == nowhere {
		return int64(a.offset), true
	}
	s := a.source.in(keys, args)
	if !l.numeric {
		return parseInt(s, 64)
	}
	x, err := parseNumber(s)
	x = x*a.scale + a.offset
	if err != nil || x != math.Trunc(x) || math.Abs(x) >= exactMax {
		return 0, false
	}
	return int64(x), true
}

// parseInt reads a number of so many bits as Redis does: decimal digits only, no plus, no leading zero, no blank.
func parseInt(s string, bits int) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, bits)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}

// refuse returns an error in Redis's words for a command in a script.
func (m *Meaning) refuse(text string, l lifetime) error {
	return errors.New(located(text, m.sha, l.line))
}

// located says where an error was raised, as Redis 7 does.
func located(text, sha string, line int) string {
	return fmt.Sprintf("%s script: %s, on @user_script:%d.", text, sha, line)
}
