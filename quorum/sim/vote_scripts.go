package sim

import (
	"slices"
	"strconv"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/vote"
)

// A votedLock is a kind of lock for scripts that run by vote.
type votedLock struct {
	name                  string
	keys                  int
	counts                bool // held as often as taken, in a hash
	shared                bool // shared with other holders of the same kind
	take, extend, release votedScript
	rename, copy          votedScript // none if its script is nil
}

// A votedScript is a text with the rule by which its answers merge, as resp has for scripts that package script knows.
type votedScript struct {
	script  *quorum.Script
	rule    vote.Rule
	granted func(vote.Value) bool
	words   func(token, ttl string) []string
	channel bool                              // the key after the names is a channel
	beside  func(name, token string) []string // the keys after the channel
}

// takeHash, renewHash and freeHash are Redisson's.
const (
	takeHash = "if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then " +
		"redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; " +
		"return redis.call('pttl', KEYS[1]);"
	renewHash = "if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then redis.call('pexpire', KEYS[1], ARGV[1]); return 1; end; return 0;"
	freeHash  = "if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then return nil;end; " +
		"local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1); " +
		"if (counter > 0) then redis.call('pexpire', KEYS[1], ARGV[2]); return 0; " +
		"else redis.call('del', KEYS[1]); redis.call('publish', KEYS[2], ARGV[1]); return 1; end; return nil;"
)

// The texts of an unknown library: each tells more than success or failure.
const (
	takeText = "local holder = redis.call('get', KEYS[1]) if holder then return 'held by ' .. holder end " +
		"redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) return 'yours'"
	renewText = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 'not yours' end redis.call('pexpire', KEYS[1], ARGV[2]) return 'yours'"
	freeText  = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 'not yours' end redis.call('del', KEYS[1]) return 'yours'"
)

// The texts of node-redlock, for several keys.
const (
	takeAll = "for i, key in ipairs(KEYS) do if redis.call('exists', key) == 1 then return 0 end end " +
		"for i, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'PX', ARGV[2]) end return #KEYS"
	renewAll = "for i, key in ipairs(KEYS) do if redis.call('get', key) ~= ARGV[1] then return 0 end end " +
		"for i, key in ipairs(KEYS) do redis.call('pexpire', key, ARGV[2]) end return #KEYS"
	freeAll = "local count = 0 for i, key in ipairs(KEYS) do " +
		"if redis.call('get', key) == ARGV[1] then redis.pcall('del', key) count = count + 1 end end return count"
)

// scriptTexts are the texts of all these.
var scriptTexts = make(map[*quorum.Script]string)

func newScript(text string) *quorum.Script {
	s := quorum.NewScript(text)
	scriptTexts[s] = text
	return s
}

// moves returns a script that moves the lock KEYS[1] to KEYS[2] by a command, if KEYS[2] is free, and returns the TTL.
func moves(command, mine string) votedScript {
	return votedScript{
		script: newScript("if not (" + mine + ") then return " + strconv.Itoa(notMine) + " end " +
			"if redis.call('exists', KEYS[2]) == 1 then return 0 end " +
			"redis.call('" + command + "', KEYS[1], KEYS[2]) return redis.call('pttl', KEYS[2])"),
		granted: positive, words: func(token, _ string) []string { return []string{token} },
	}
}

// notMine is the reply of a moving script if its client does not hold the lock.
const notMine = -1

// Whether a lock is its client's.
const (
	hashIsMine = "redis.call('hexists', KEYS[1], ARGV[1]) == 1"
	textIsMine = "redis.call('get', KEYS[1]) == ARGV[1]"
)

var (
	hashLock = votedLock{
		name: "a hash", keys: 1, counts: true,
		take: votedScript{
			script: newScript(takeHash), granted: isNil, words: ttlFirst,
			rule: vote.Rule{Merge: vote.Taking, Late: vote.Value{Kind: vote.IntValue, Int: 1}},
		},
		extend: votedScript{
			script: newScript(renewHash), granted: positive, words: ttlFirst, rule: vote.Rule{Merge: vote.Extending},
		},
		release: votedScript{
			script: newScript(freeHash), granted: func(v vote.Value) bool { return !isNil(v) }, channel: true,
			words: func(token, ttl string) []string { return []string{"0", ttl, token} }, rule: vote.Rule{Merge: vote.Releasing},
		},
		rename: moves("rename", hashIsMine), copy: moves("copy", hashIsMine),
	}
	textLock = votedLock{
		name: "a text", keys: 1,
		take:    votedScript{script: newScript(takeText), granted: yours, words: tokenFirst},
		extend:  votedScript{script: newScript(renewText), granted: yours, words: tokenFirst},
		release: votedScript{script: newScript(freeText), granted: yours, words: tokenFirst},
		rename:  moves("rename", textIsMine), copy: moves("copy", textIsMine),
	}
	pairLock = votedLock{
		name: "a pair", keys: 2,
		take:    votedScript{script: newScript(takeAll), granted: both, words: tokenFirst, rule: vote.Rule{Merge: vote.Taking}},
		extend:  votedScript{script: newScript(renewAll), granted: both, words: tokenFirst, rule: vote.Rule{Merge: vote.Extending}},
		release: votedScript{script: newScript(freeAll), granted: positive, words: tokenFirst, rule: vote.Rule{Merge: vote.Releasing}},
	}
)

func isNil(v vote.Value) bool    { return v.Kind == vote.NilValue }
func positive(v vote.Value) bool { return v.Kind == vote.IntValue && v.Int > 0 }
func both(v vote.Value) bool     { return v.Kind == vote.IntValue && v.Int == 2 }
func yours(v vote.Value) bool    { return v.Kind == vote.BulkValue && v.Text == "yours" }

func ttlFirst(token, ttl string) []string   { return []string{ttl, token} }
func tokenFirst(token, ttl string) []string { return []string{token, ttl} }

// request returns the request to run the script on some resources.
func (s *votedScript) request(names []string, token string, ttl time.Duration) quorum.RunRequest {
	req := quorum.RunRequest{Script: s.script, Keys: names, Rule: s.rule, Args: s.words(token, strconv.FormatInt(ttl.Milliseconds(), 10))}
	req.Rule.Granted = s.granted
	if counted := s.rule.Merge == vote.Taking || s.rule.Merge == vote.Releasing && s.beside != nil; counted && len(names) == 1 {
		req.Rule.Field = token
	}
	req.Keys = slices.Clone(names)
	if s.channel {
		req.Keys = append(req.Keys, "channel:"+names[0])
	}
	if s.beside != nil {
		req.Keys = append(req.Keys, s.beside(names[0], token)...)
	}
	return req
}
