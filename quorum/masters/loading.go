package masters

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
)

// A Loading says which data a server that writes everything to disk may leave out when it loads its file.
type Loading struct {
	Lacks  []string // commands that its default user may not run on all keys: the server skips them in transactions
	Untold bool     // the server does not tell the permissions of its default user
	Cut    bool     // the server starts on a file whose end is missing (aof-load-truncated)
}

// LoadsAsDefault says that the server, loading a transaction, leaves out commands for which its default user lacks
// permission: Redis from version 7 until 8.6, and Valkey before 9.1.2.
func (i *Info) LoadsAsDefault() bool {
	since, until := []int{7}, []int{8, 6}
	if i.Server == "valkey" {
		since, until = nil, []int{9, 1, 2}
	}
	var version []int
	for part := range strings.SplitSeq(i.Version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return true // nobody knows
		}
		version = append(version, n)
	}
	return slices.Compare(version, since) >= 0 && slices.Compare(version, until) < 0
}

// written has commands as append-only files have them; $ is a key.
var written = []string{
	"SET $ 1", "DEL $", "UNLINK $", "PEXPIREAT $ 1", "PERSIST $", "RESTORE $ 0 x", "INCRBY $ 1", "DECRBY $ 1", "APPEND $ 1", "SELECT 0",
	"HSET $ f 1", "HSETNX $ f 1", "HINCRBY $ f 1", "HINCRBYFLOAT $ f 1", "HDEL $ f", "SADD $ 1", "SREM $ 1", "RPUSH $ 1", "LPUSH $ 1",
	"RPOP $", "LPOP $", "LREM $ 0 1", "LSET $ 0 1", "LTRIM $ 0 1", "ZADD $ 1 1", "ZINCRBY $ 1 1", "ZREM $ 1", "ZREMRANGEBYSCORE $ 0 1",
	"RENAME $ $", "SETRANGE $ 0 1",
}

// ProbeLoading asks a server which data may be left out when the file is loaded. ProbeLoading changes nothing.
func (m *Redis) ProbeLoading(ctx context.Context, info *Info) (l Loading, err error) {
	err = With(ctx, m, func(conn Conn) error {
		truncated := &Call{Args: []any{"CONFIG", "GET", "aof-load-truncated"}}
		if err := conn.Exec([]*Call{truncated}); err != nil {
			return err
		}
		list, _ := truncated.Reply.([]any)
		l.Cut = len(list) == 2 && text(list[1]) == "yes"
		if info.LoadsAsDefault() {
			return l.ask(conn)
		}
		return nil
	})
	return l, err
}

// ask asks for the permissions of the default user: by ACL DRYRUN, or, where that is not permitted, by the user's
// rules.
func (l *Loading) ask(conn Conn) error {
	var calls []*Call
	key := rand.Text() // a name that hardly any pattern matches
	for _, command := range written {
		args := []any{"ACL", "DRYRUN", "default"}
		for word := range strings.FieldsSeq(command) {
			args = append(args, strings.Replace(word, "$", key, 1))
		}
		calls = append(calls, &Call{Args: args})
	}
	if err := conn.Exec(calls); err != nil {
		return err
	}
	if calls[0].Err != nil {
		return l.askRules(conn)
	}
	for i, c := range calls {
		name, _, _ := strings.Cut(written[i], " ")
		if reply := text(c.Reply); c.Err == nil && reply != "OK" {
			l.Lacks = append(l.Lacks, name)
		}
	}
	return nil
}

// askRules asks for the rules of the default user.
func (l *Loading) askRules(conn Conn) error {
	user, all := &Call{Args: []any{"ACL", "GETUSER", "default"}}, &Call{Args: []any{"ACL", "LIST"}}
	if err := conn.Exec([]*Call{user, all}); err != nil {
		return err
	}
	if list, ok := user.Reply.([]any); ok && user.Err == nil {
		var rules []string
		for ; len(list) >= 2; list = list[2:] {
			if field := text(list[0]); field == "commands" || field == "keys" {
				rules = append(rules, strings.Fields(told(list[1]))...)
			}
		}
		l.judge(rules)
		return nil
	}
	lines, _ := all.Reply.([]any)
	for _, line := range lines {
		if rules, ok := strings.CutPrefix(text(line), "user default "); ok {
			l.judge(strings.Fields(rules))
			return nil
		}
	}
	l.Untold = true
	return nil
}

// told is the text of a field. Before version 7, keys were a list.
func told(field any) string {
	list, ok := field.([]any)
	if !ok {
		return text(field)
	}
	var all []string
	for _, part := range list {
		all = append(all, "~"+strings.TrimPrefix(text(part), "~"))
	}
	return strings.Join(all, " ")
}

// judge notes the commands and keys that the rules leave out.
func (l *Loading) judge(rules []string) {
	if !slices.Contains(rules, "+@all") || slices.ContainsFunc(rules, func(r string) bool { return strings.HasPrefix(r, "-") }) {
		l.Lacks = append(l.Lacks, "some commands")
	}
	if !slices.Contains(rules, "~*") {
		l.Lacks = append(l.Lacks, "commands on some keys")
	}
}
