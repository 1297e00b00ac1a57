package sim

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
)

// A reply is nil, int64, string, status, []any of replies, or an error of type fault.
type reply = any

// A status is a simple string. Scripts tell a status from a bulk string.
type status string

// A fault is an error reply.
type fault string

func (f fault) Error() string { return string(f) }

const (
	errSyntax  = fault("ERR syntax error")
	errInteger = fault("ERR value is not an integer or out of range")
	errNoSHA   = fault("NOSCRIPT No matching script. Please use EVAL.")
)

// A command is a row of the table.
type command struct {
	arity  int // as in COMMAND: the number of words, or if negative the least
	writes bool
	run    func(s *server, c *session, args []string) reply
}

var commands map[string]command

func init() {
	commands = map[string]command{
		"PING":        {-1, false, func(*server, *session, []string) reply { return status("PONG") }},
		"SELECT":      {2, false, cmdSelect},
		"SET":         {-3, true, cmdSet},
		"GET":         {2, false, cmdGet},
		"MGET":        {-2, false, cmdMGet},
		"DEL":         {-2, true, cmdDel},
		"EXISTS":      {-2, false, cmdExists},
		"TYPE":        {2, false, cmdType},
		"PTTL":        {2, false, func(s *server, c *session, a []string) reply { return s.ttl(c, a[1], true) }},
		"PEXPIRETIME": {2, false, func(s *server, c *session, a []string) reply { return s.ttl(c, a[1], false) }},
		"PEXPIRE":     {-3, true, func(s *server, c *session, a []string) reply { return s.expire(c, a, true) }},
		"PEXPIREAT":   {-3, true, func(s *server, c *session, a []string) reply { return s.expire(c, a, false) }},
		"TIME":        {1, false, cmdTime},
		"DBSIZE":      {1, false, cmdDBSize},
		"FLUSHDB":     {-1, true, cmdFlushDB},
		"FLUSHALL":    {-1, true, cmdFlushAll},
		"CLIENT":      {-2, false, cmdClient},
		"INFO":        {-1, false, cmdInfo},
		"ROLE":        {1, false, cmdRole},
		"CONFIG":      {-2, false, cmdConfig},
		"SCRIPT":      {-2, false, cmdScript},
		"EVAL":        {-3, false, cmdEval},
		"EVALSHA":     {-3, false, cmdEvalSHA},
		"HGET":        {3, false, cmdHGet},
		"HEXISTS":     {3, false, cmdHExists},
		"HGETALL":     {2, false, cmdHGetAll},
		"HINCRBY":     {4, true, cmdHIncrBy},
		"HDEL":        {-3, true, cmdHDel},
		"HSET":        {4, true, cmdHSet},
		"HLEN":        {2, false, cmdHLen},
		"HKEYS":       {2, false, cmdHKeys},
		"HVALS":       {2, false, cmdHVals},
		"DUMP":        {2, false, cmdDump},
		"RESTORE":     {-4, true, cmdRestore},
		"RENAME":      {3, true, cmdRename},
		"COPY":        {3, true, cmdCopy},
		"PUBLISH":     {3, false, cmdPublish},
	}
}

// notInScripts are the commands that Redis keeps from scripts.
var notInScripts = map[string]bool{"CLIENT": true, "CONFIG": true, "SCRIPT": true, "EVAL": true, "EVALSHA": true, "ROLE": true}

// since7 are the commands that a master of version 6 lacks.
var since7 = map[string]bool{"PEXPIRETIME": true}

// do runs one command as Redis would.
func (s *server) do(c *session, args []string) reply {
	name := strings.ToUpper(args[0])
	cmd, ok := commands[name]
	if !ok || since7[name] && s.old {
		return unknown(args)
	}
	switch {
	case cmd.arity > 0 && len(args) != cmd.arity, cmd.arity < 0 && len(args) < -cmd.arity:
		return fault("ERR wrong number of arguments for '" + strings.ToLower(args[0]) + "' command")
	case s.hogged:
		return fault("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
	case s.denied[name]:
		return fault("NOPERM this user has no permissions to run the '" + strings.ToLower(name) + "' command")
	case c.script && notInScripts[name]:
		return fault("ERR This Redis command is not allowed from script")
	case cmd.writes && s.replica && !s.world.plan.Writable:
		return fault("READONLY You can't write against a read only replica.")
	case cmd.writes && s.refusal(c, name) != "":
		return s.refusal(c, name)
	}
	c.wrote = c.wrote || cmd.writes && c.script
	return cmd.run(s, c, args)
}

func unknown(args []string) fault {
	text := "ERR unknown command '" + args[0] + "', with args beginning with: "
	for _, a := range args[1:] {
		text += "'" + a + "' "
	}
	return fault(text)
}

func (s *server) get(c *session, key string) (item, bool) {
	return s.store.get(c.db, key, s.clock.millis(s.now()))
}

func (s *server) put(c *session, key string, it item) {
	s.world.checker.takesVote(s, c, key, it.text)
	s.world.checker.revives(s, c, key, it.text)
	s.store.do(mutation{at: s.now(), db: c.db, kind: put, key: key, item: it})
	s.touched = append(s.touched, place{c.db, key})
}

func (s *server) remove(c *session, key string) {
	s.world.checker.takesVote(s, c, key, "")
	s.store.do(mutation{at: s.now(), db: c.db, kind: removed, key: key})
	if key == "lockproxy:quarantine" {
		s.cleared(c)
	}
}

func cmdSelect(_ *server, c *session, args []string) reply {
	n, err := strconv.Atoi(args[1])
	switch {
	case err != nil:
		return errInteger
	case n < 0 || n >= databases:
		return fault("ERR DB index is out of range")
	}
	c.db = n
	return status("OK")
}

func cmdGet(s *server, c *session, args []string) reply {
	switch it, ok := s.get(c, args[1]); {
	case it.hash:
		return errWrongType
	case ok:
		return it.text
	}
	return nil
}

func cmdMGet(s *server, c *session, args []string) reply {
	var all []any
	for _, key := range args[1:] {
		if it, ok := s.get(c, key); ok && !it.hash {
			all = append(all, it.text)
		} else {
			all = append(all, nil)
		}
	}
	return all
}

func cmdDel(s *server, c *session, args []string) reply {
	n := int64(0)
	for _, key := range args[1:] {
		if _, ok := s.get(c, key); ok {
			s.remove(c, key)
			n++
		}
	}
	return n
}

func cmdExists(s *server, c *session, args []string) reply {
	n := int64(0)
	for _, key := range args[1:] {
		if _, ok := s.get(c, key); ok {
			n++
		}
	}
	return n
}

func cmdType(s *server, c *session, args []string) reply {
	switch it, ok := s.get(c, args[1]); {
	case it.hash:
		return status("hash")
	case ok:
		return status("string")
	}
	return status("none")
}

// ttl answers the two commands that tell when a key expires.
func (s *server) ttl(c *session, key string, relative bool) reply {
	it, ok := s.get(c, key)
	switch {
	case !ok:
		return int64(-2)
	case it.expires == 0:
		return int64(-1)
	case !relative:
		return it.expires
	}
	return max(it.expires-s.clock.millis(s.now()), 0)
}

// expire answers the two commands that set when a key expires.
func (s *server) expire(c *session, args []string, relative bool) reply {
	if len(args) > 3 {
		return fault("ERR Unsupported option " + args[3])
	}
	when, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return errInteger
	}
	now := s.clock.millis(s.now())
	base := int64(0)
	if relative {
		base = now
	}
	if when > math.MaxInt64-base {
		return fault("ERR invalid expire time in '" + strings.ToLower(args[0]) + "' command")
	}
	when += base
	it, ok := s.get(c, args[1])
	if !ok {
		return int64(0)
	}
	if when <= now {
		s.remove(c, args[1])
		return int64(1)
	}
	it.expires, it.by = when, c.life
	s.put(c, args[1], it)
	return int64(1)
}

func cmdTime(s *server, _ *session, _ []string) reply {
	us := s.clock.micros(s.now())
	return []any{strconv.FormatInt(us/1e6, 10), strconv.FormatInt(us%1e6, 10)}
}

func cmdDBSize(s *server, c *session, _ []string) reply {
	n := int64(0)
	for key := range s.store.dbs[c.db] {
		if _, ok := s.get(c, key); ok {
			n++
		}
	}
	return n
}

func cmdFlushDB(s *server, c *session, _ []string) reply {
	s.store.do(mutation{at: s.now(), db: c.db, kind: flushed})
	return status("OK")
}

func cmdFlushAll(s *server, _ *session, _ []string) reply {
	for db := range databases {
		s.store.do(mutation{at: s.now(), db: db, kind: flushed})
	}
	return status("OK")
}

func cmdInfo(s *server, _ *session, _ []string) reply {
	most, aof, role := 0, 0, "master"
	if s.policy != "" {
		most = 1 << 20
	}
	if s.append != "" {
		aof = 1
	}
	if s.replica {
		role = "slave"
	}
	return fmt.Sprintf("# Server\r\nredis_version:%s\r\nrun_id:%s\r\nuptime_in_seconds:%d\r\n"+
		"# Memory\r\nmaxmemory:%d\r\nmaxmemory_policy:%s\r\n# Persistence\r\naof_enabled:%d\r\naof_rewrites:%d\r\n%s"+
		"# Replication\r\nrole:%s\r\nconnected_slaves:%d\r\nmaster_replid2:%s\r\n"+
		"# Stats\r\nevicted_keys:%d\r\nunexpected_error_replies:%d\r\nsync_full:%d\r\n",
		s.version(), s.runID(), int64((s.now() - s.born).Seconds()), most, s.setting("maxmemory-policy"), aof, s.rewrites, s.files.info(),
		role, s.replicas, s.lineage, s.evicted, s.refused, s.files.copies)
}

func cmdRole(s *server, _ *session, _ []string) reply {
	if s.replica {
		return []any{"slave", "127.0.0.1", int64(6379), "connected", int64(0)}
	}
	return []any{"master", int64(0), []any{}}
}

func cmdConfig(s *server, _ *session, args []string) reply {
	if !strings.EqualFold(args[1], "GET") || len(args) < 3 || s.old && len(args) > 3 {
		return fault("ERR Unknown subcommand or wrong number of arguments for '" + args[1] + "'. Try CONFIG HELP.")
	}
	var found []any
	for _, name := range []string{
		"appendfsync", "appendonly", "appendfilename", "databases", "dir", "io-threads", "lua-time-limit", "maxmemory", "maxmemory-policy",
	} {
		for _, pattern := range args[2:] {
			if ok, _ := path.Match(strings.ToLower(pattern), name); ok {
				found = append(found, name, s.setting(name))
				break
			}
		}
	}
	return found
}

func cmdScript(s *server, _ *session, args []string) reply {
	switch sub := strings.ToUpper(args[1]); {
	case sub == "LOAD" && len(args) == 3:
		sha := sha1hex(args[2])
		if err := compile(args[2]); err != nil {
			return err
		}
		s.scripts[sha] = args[2]
		return sha
	case sub == "EXISTS" && len(args) > 2:
		var found []any
		for _, sha := range args[2:] {
			n := int64(0)
			if _, ok := s.scripts[strings.ToLower(sha)]; ok {
				n = 1
			}
			found = append(found, n)
		}
		return found
	case sub == "FLUSH":
		clear(s.scripts)
		return status("OK")
	}
	return fault("ERR unknown subcommand or wrong number of arguments for '" + args[1] + "'. Try SCRIPT HELP.")
}

func cmdEval(s *server, c *session, args []string) reply {
	if err := compile(args[1]); err != nil {
		return err
	}
	s.scripts[sha1hex(args[1])] = args[1]
	return s.eval(c, args[1], args[2:])
}

func cmdEvalSHA(s *server, c *session, args []string) reply {
	text, ok := s.scripts[strings.ToLower(args[1])]
	if !ok {
		return errNoSHA
	}
	return s.eval(c, text, args[2:])
}
