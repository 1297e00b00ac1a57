package sim

import (
	"slices"
	"strconv"
	"strings"
)

// Hashes, for locks such as Redisson's, and the commands with which a wrapper puts them back. The text of a hash is its
// fields in order, each with its value, and a zero byte after either.

const errWrongType = fault("WRONGTYPE Operation against a key holding the wrong kind of value")

// fieldsOf returns the fields of a hash and their values in turn.
func fieldsOf(it item) []string {
	words := strings.Split(it.text, "\x00")
	return words[:len(words)-1]
}

// field returns the value of a field.
func (it item) field(name string) (string, bool) {
	words := fieldsOf(it)
	for i := 0; i < len(words); i += 2 {
		if words[i] == name {
			return words[i+1], true
		}
	}
	return "", false
}

// holder returns the lock's holder: the value of a string, or the first field of a hash.
func (it item) holder() string {
	token, _, _ := strings.Cut(it.text, "\x00")
	return token
}

// heldBy says whether token holds the lock: as the value of a string, or as a field of a hash.
func (it item) heldBy(token string) bool {
	if !it.hash {
		return it.text == token
	}
	_, is := it.field(token)
	return is
}

// isShared says that several readers hold the lock: beside their fields there is the mode.
func (it item) isShared() bool {
	if !it.hash {
		return false
	}
	mode, _ := it.field("mode")
	return mode == "read" && len(fieldsOf(it)) > 4
}

// with returns the hash with another value of a field, or without the field if the value is empty.
func (it item) with(name, value string) item {
	words := fieldsOf(it)
	var pairs []string
	for i := 0; i < len(words); i += 2 {
		if words[i] != name {
			pairs = append(pairs, words[i]+"\x00"+words[i+1]+"\x00")
		}
	}
	if value != "" {
		pairs = append(pairs, name+"\x00"+value+"\x00")
	}
	slices.Sort(pairs)
	it.hash, it.text = true, strings.Join(pairs, "")
	return it
}

// hash returns a key that may only be a hash.
func (s *server) hash(c *session, key string) (item, fault) {
	it, ok := s.get(c, key)
	if ok && !it.hash {
		return it, errWrongType
	}
	return it, ""
}

func cmdHGet(s *server, c *session, args []string) reply {
	it, bad := s.hash(c, args[1])
	if bad != "" {
		return bad
	}
	if value, ok := it.field(args[2]); ok {
		return value
	}
	return nil
}

func cmdHExists(s *server, c *session, args []string) reply {
	it, bad := s.hash(c, args[1])
	if bad != "" {
		return bad
	}
	if _, ok := it.field(args[2]); ok {
		return int64(1)
	}
	return int64(0)
}

func cmdHGetAll(s *server, c *session, args []string) reply {
	it, bad := s.hash(c, args[1])
	if bad != "" {
		return bad
	}
	all := []any{}
	for _, word := range fieldsOf(it) {
		all = append(all, word)
	}
	return all
}

func cmdHIncrBy(s *server, c *session, args []string) reply {
	by, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return errInteger
	}
	it, bad := s.hash(c, args[1])
	if bad != "" {
		return bad
	}
	value, _ := it.field(args[2])
	n, _ := strconv.ParseInt(value, 10, 64)
	it = it.with(args[2], strconv.FormatInt(n+by, 10))
	it.by = c.life
	s.put(c, args[1], it)
	return n + by
}

func cmdHDel(s *server, c *session, args []string) reply {
	it, bad := s.hash(c, args[1])
	if bad != "" {
		return bad
	}
	n := int64(0)
	for _, name := range args[2:] {
		if _, ok := it.field(name); ok {
			it = it.with(name, "")
			n++
		}
	}
	switch {
	case n > 0 && it.text == "":
		s.remove(c, args[1])
	case n > 0:
		s.put(c, args[1], it)
	}
	return n
}

func cmdHSet(s *server, c *session, args []string) reply {
	it, bad := s.hash(c, args[1])
	if bad != "" {
		return bad
	}
	_, there := it.field(args[2])
	it = it.with(args[2], args[3])
	it.by = c.life
	s.put(c, args[1], it)
	if there {
		return int64(0)
	}
	return int64(1)
}

func cmdHLen(s *server, c *session, args []string) reply {
	it, bad := s.hash(c, args[1])
	if bad != "" {
		return bad
	}
	return int64(len(fieldsOf(it)) / 2)
}

func cmdHKeys(s *server, c *session, args []string) reply { return s.everyOther(c, args[1], 0) }

func cmdHVals(s *server, c *session, args []string) reply { return s.everyOther(c, args[1], 1) }

// everyOther returns the fields of a hash, or their values.
func (s *server) everyOther(c *session, key string, from int) reply {
	it, bad := s.hash(c, key)
	if bad != "" {
		return bad
	}
	all := []any{}
	for i, word := range fieldsOf(it) {
		if i%2 == from {
			all = append(all, word)
		}
	}
	return all
}

// dump is a value in a form of our own.
func dump(it item) string {
	if it.hash {
		return "h" + it.text
	}
	return "s" + it.text
}

func cmdDump(s *server, c *session, args []string) reply {
	if it, ok := s.get(c, args[1]); ok {
		return dump(it)
	}
	return nil
}

// cmdRestore takes REPLACE and ABSTTL only together, as our scripts send them.
func cmdRestore(s *server, c *session, args []string) reply {
	at, err := strconv.ParseInt(args[2], 10, 64)
	switch {
	case err != nil:
		return errInteger
	case len(args) != 6 || args[4] != "REPLACE" || args[5] != "ABSTTL" || args[3] == "":
		return errSyntax
	}
	if at != 0 && at <= s.clock.millis(s.now()) {
		s.remove(c, args[1])
		return status("OK")
	}
	s.put(c, args[1], item{text: args[3][1:], hash: args[3][0] == 'h', expires: at, by: c.life})
	return status("OK")
}
