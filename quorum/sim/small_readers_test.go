package sim

import (
	"lockproxy/quorum/vote"
)

// Redisson's RReadWriteLock, without holds within holds; see speaker_readers.go.
var (
	readLock = votedLock{
		name: "a read lock", keys: 1, shared: true,
		take: votedScript{
			script: newScript(readText), granted: isNil, beside: holdOf,
			words: func(token, ttl string) []string { return []string{ttl, token, token + ":write"} },
			rule:  vote.Rule{Merge: vote.Taking, Derived: true, Late: vote.Value{Kind: vote.IntValue, Int: 1}},
		},
		extend: votedScript{
			script: newScript(rereadText), granted: positive, beside: allHolds, words: ttlFirst,
			rule: vote.Rule{Merge: vote.Extending, Derived: true},
		},
		release: votedScript{
			script: newScript(unreadText), granted: isNotNil, channel: true, words: func(token, _ string) []string { return []string{"0", token} },
			beside: func(name, token string) []string { return append(holdOf(name, token), allHolds(name, token)...) },
			rule:   vote.Rule{Merge: vote.Releasing, Derived: true},
		},
	}
	writeLock = votedLock{
		name: "a write lock", keys: 1,
		take: votedScript{
			script: newScript(writeText), granted: isNil, words: ttlFirst,
			rule: vote.Rule{Merge: vote.Taking, Derived: true, Late: vote.Value{Kind: vote.IntValue, Int: 1}},
		},
		extend: votedScript{script: newScript(renewHash), granted: positive, words: ttlFirst, rule: vote.Rule{Merge: vote.Extending}},
		release: votedScript{
			script: newScript(unwriteText), granted: isNotNil, channel: true,
			words: func(token, ttl string) []string { return []string{"1", ttl, token} },
			rule:  vote.Rule{Merge: vote.Releasing, Derived: true},
		},
	}
)

func isNotNil(v vote.Value) bool { return !isNil(v) }

// holdOf and allHolds name the keys beside the lock: of a reader's hold, and what all of them begin with.
func holdOf(name, token string) []string {
	return []string{"{" + name + "}:" + token + ":rwlock_timeout"}
}

func allHolds(name, _ string) []string { return []string{"{" + name + "}"} }
