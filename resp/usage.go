package resp

import "strings"

// usages says how commands are written, in the notation of Redis's pages: [what may be left out], <one | of several>, … "..."
// for what may be repeated, and words in capitals as they are sent. From it comes what COMMAND DOCS says of arguments, which
// redis-cli shows while one types.
var usages = map[string]string{
	"lock": "key ttl-ms [TOKEN token] [WAIT ms] [HOLD]", "unlock": "key token", "extend": "key token ttl-ms",
	"fence": "key fence", "lockinfo": "key", "locks": "[MATCH pattern] [COUNT count]", "forceunlock": "key",

	"set":   "key value [NX | XX | IFEQ value | IFNE value] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
	"setnx": "key value", "setex": "key seconds value", "psetex": "key milliseconds value", "getset": "key value",
	"get": "key", "getrange": "key start end", "mget": "key ...", "getdel": "key", "strlen": "key",
	"getex":  "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
	"msetnx": "<key value> ...", "delex": "key [IFEQ value | IFNE value]", "delifeq": "key value",
	"hget": "key field", "hmget": "key field ...", "hgetall": "key", "hexists": "key field", "hlen": "key",
	"hstrlen": "key field", "hkeys": "key", "hvals": "key",
	"exists": "key ...", "del": "key ...", "unlink": "key ...", "type": "key", "persist": "key", "object|encoding": "key",
	"ttl": "key", "pttl": "key", "expiretime": "key", "pexpiretime": "key",
	"expire": "key seconds [NX | XX | GT | LT]", "pexpire": "key milliseconds [NX | XX | GT | LT]",
	"expireat":  "key unix-time-seconds [NX | XX | GT | LT]",
	"pexpireat": "key unix-time-milliseconds [NX | XX | GT | LT]",

	"eval": "script numkeys [key ...] [arg ...]", "evalsha": "sha1 numkeys [key ...] [arg ...]",
	"eval_ro": "script numkeys [key ...] [arg ...]", "evalsha_ro": "sha1 numkeys [key ...] [arg ...]",
	"script|load": "script", "script|exists": "sha1 ...", "script|flush": "[ASYNC | SYNC]",
	"watch": "key ...", "wait": "numreplicas timeout",
	"subscribe": "channel ...", "unsubscribe": "[channel ...]", "psubscribe": "pattern ...", "punsubscribe": "[pattern ...]",
	"ssubscribe": "shardchannel ...", "sunsubscribe": "[shardchannel ...]",
	"publish": "channel message", "spublish": "shardchannel message",
	"pubsub|channels": "[pattern]", "pubsub|numsub": "[channel ...]",
	"pubsub|shardchannels": "[pattern]", "pubsub|shardnumsub": "[shardchannel ...]",
	"hello": "[protover [AUTH username password] [SETNAME clientname]]", "auth": "[username] password",
	"select": "index", "ping": "[message]", "echo": "message",
	"client|setname": "connection-name", "client|setinfo": "<LIB-NAME libname | LIB-VER libver>",
	"client|no-evict": "<ON | OFF>", "client|no-touch": "<ON | OFF>", "client|reply": "<ON | OFF | SKIP>",
	"client|unblock": "client-id [TIMEOUT | ERROR]", "client|pause": "timeout [WRITE | ALL]", "client|caching": "<YES | NO>",
	"command|info": "[command-name ...]", "command|docs": "[command-name ...]",
	"command|list": "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
	"config|get":   "parameter ...", "config|set": "<parameter value> ...",
	"info": "[section ...]", "cluster|keyslot": "key",
}

// arguments is what COMMAND DOCS says of a command's arguments: in maps, one in another.
func (cmd *command) arguments() Array {
	words := usageWords{strings.Fields(strings.NewReplacer(
		"[", " [ ", "]", " ] ", "<", " < ", ">", " > ").Replace(usages[cmd.full]))}
	return words.alternatives("")[0]
}

// A usageWords is what is left to read of a usage.
type usageWords struct{ left []string }

// is takes the next word if it is that one.
func (w *usageWords) is(word string) bool {
	if len(w.left) == 0 || w.left[0] != word {
		return false
	}
	w.left = w.left[1:]
	return true
}

// alternatives reads up to the closing bracket, or to the end: what stands between bars.
func (w *usageWords) alternatives(closing string) []Array {
	all := []Array{{}}
	for len(w.left) > 0 && !w.is(closing) {
		if w.is("|") {
			all = append(all, Array{})
			continue
		}
		last := len(all) - 1
		all[last] = append(all[last], w.argument("", false))
	}
	return all
}

// argument reads one. The token is what is sent before it.
func (w *usageWords) argument(token string, optional bool) Map {
	word := w.left[0]
	w.left = w.left[1:]
	var of []Array
	switch {
	case word == "[":
		of, optional = w.alternatives("]"), true
	case word == "<":
		of = w.alternatives(">")
	case word == strings.ToUpper(word) && token == "":
		if len(w.left) == 0 || strings.Contains("[]>|", w.left[0]) {
			return argumentMap(lower(word), "pure-token", word, optional, false, nil)
		}
		return w.argument(word, optional)
	}
	many := w.is("...")
	switch {
	case of == nil:
		return argumentMap(word, argumentType(word), token, optional, many, nil)
	case len(of) == 1 && len(of[0]) == 1:
		return withFlag(of[0][0].(Map), "optional")
	case len(of) == 1:
		return argumentMap("arguments", "block", token, optional, many, of[0])
	}
	choices := Array{}
	for _, choice := range of {
		if len(choice) == 1 {
			choices = append(choices, choice[0])
		} else {
			choices = append(choices, argumentMap("arguments", "block", "", false, false, choice))
		}
	}
	return argumentMap("option", "oneof", token, optional, many, choices)
}

func argumentType(name string) string {
	switch name {
	case "key", "pattern":
		return name
	case "unix-time-seconds", "unix-time-milliseconds":
		return "unix-time"
	case "seconds", "milliseconds", "ttl-ms", "ms", "count", "fence", "start", "end", "numkeys", "numreplicas", "timeout",
		"protover", "index", "client-id":
		return "integer"
	}
	return "string"
}

func argumentMap(name, kind, token string, optional, many bool, of Array) Map {
	m := Map{Bulk("name"), Bulk(name), Bulk("type"), Bulk(kind)}
	if token != "" {
		m = append(m, Bulk("token"), Bulk(token))
	}
	if optional {
		m = withFlag(m, "optional")
	}
	if many {
		m = withFlag(m, "multiple")
	}
	if of != nil {
		m = append(m, Bulk("arguments"), of)
	}
	return m
}

// withFlag adds to an argument's flags.
func withFlag(m Map, flag string) Map {
	for i := 0; i < len(m); i += 2 {
		if m[i] == Bulk("flags") {
			m[i+1] = append(Set{Status(flag)}, m[i+1].(Set)...)
			return m
		}
	}
	return append(m, Bulk("flags"), Set{Status(flag)})
}
