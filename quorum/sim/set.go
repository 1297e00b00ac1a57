package sim

import (
	"math"
	"strconv"
	"strings"
)

// setOptions are the options of SET.
type setOptions struct {
	nx, xx, get, keep bool
	unit              int64 // of when, in ms; 0 if no expiry is given
	relative          bool
	when              string
}

func parseSet(words []string) (setOptions, bool) {
	o := setOptions{}
	for i := 0; i < len(words); i++ {
		switch word := strings.ToUpper(words[i]); {
		case word == "NX" && !o.xx:
			o.nx = true
		case word == "XX" && !o.nx:
			o.xx = true
		case word == "GET":
			o.get = true
		case word == "KEEPTTL" && o.unit == 0:
			o.keep = true
		case (word == "PX" || word == "EX" || word == "PXAT" || word == "EXAT") && o.unit == 0 && !o.keep && i+1 < len(words):
			o.unit, o.relative = 1, !strings.HasSuffix(word, "AT")
			if word[0] == 'E' {
				o.unit = 1000
			}
			i++
			o.when = words[i]
		default:
			return o, false
		}
	}
	return o, true
}

// expires returns when a key set now expires, in ms on the master's clock.
func (o *setOptions) expires(now int64) (int64, reply) {
	if o.unit == 0 {
		return 0, nil
	}
	n, err := strconv.ParseInt(o.when, 10, 64)
	if err != nil {
		return 0, errInteger
	}
	base := int64(0)
	if o.relative {
		base = now
	}
	if n <= 0 || n > math.MaxInt64/o.unit-base {
		return 0, fault("ERR invalid expire time in 'set' command")
	}
	if !o.relative {
		return n * o.unit, nil
	}
	return n*o.unit + now, nil
}

func cmdSet(s *server, c *session, args []string) reply {
	o, ok := parseSet(args[3:])
	if !ok {
		return errSyntax
	}
	now := s.clock.millis(s.now())
	expires, bad := o.expires(now)
	if bad != nil {
		return bad
	}
	old, had := s.get(c, args[1])
	if o.get && old.hash {
		return errWrongType
	}
	answer := reply(status("OK"))
	if o.get {
		answer = nil
		if had {
			answer = old.text
		}
	}
	if o.nx && had || o.xx && !had {
		if o.get {
			return answer
		}
		return nil
	}
	if o.keep && had {
		expires = old.expires
	}
	if expires != 0 && expires <= now { // an absolute time that has passed
		s.remove(c, args[1])
		return answer
	}
	s.put(c, args[1], item{text: args[2], expires: expires, by: c.life})
	return answer
}
