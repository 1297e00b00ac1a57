package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
	"lockproxy/script"
)

// A sent is a command as a library sends it. In it ME is the caller, KEYS the names of the locks that are taken together, TTL how long
// they are taken, SECONDS the same in seconds, UNTIL when that is over, NOW the time.
type sent struct {
	kind script.FamilyKind
	file string // of its text in testdata/locks, if it is a script
	keys string // of a script; KEYS if empty
	args string // of a script, or a command
	lone bool   // it is sent for one lock alone
	says string // deed.refuses
}

// lockLibraries are libraries with what their releases send.
var lockLibraries = []struct {
	name    string
	several bool // it takes several locks at once
	sends   []sent
}{
	{"node-redlock-4.0", true, redlocks("ME TTL", "ME")},
	{"node-redlock-4.2", true, redlocks("ME TTL", "ME")},
	{"node-redlock-5", true, redlocks("ME TTL", "ME")},
	{"sesamecare-redlock-1.4", true, redlocks("0 ME TTL", "0 ME")},
	{"redis-kit-lock-0.1", true, redlocks("ME TTL", "ME")},
	{"redlock-universal-0.8", true, []sent{
		{kind: script.Takes, args: "SET k ME NX PX TTL"},
		{kind: script.Takes, file: "acquire", args: "EACH TTL"},
		{kind: script.Extends, file: "extend", args: "ME TTL", lone: true},
		{kind: script.Extends, file: "extend-in-time", args: "ME 1000 TTL", lone: true, says: "*2\r\n:-1\r\n"},
		{kind: script.Releases, file: "release", args: "ME", lone: true},
		{kind: script.Asks, file: "ask", lone: true},
	}},
	{"redislock-0.10", true, []sent{
		{kind: script.Takes, file: "obtain", args: "ME 4 TTL"},
		{kind: script.Extends, file: "refresh", args: "ME TTL"},
		{kind: script.Releases, file: "release", args: "ME"},
		{kind: script.Asks, file: "pttl", args: "ME"},
	}},
	{"redislock-0.9.4", false, []sent{
		{kind: script.Takes, file: "acquire", args: "ME 4 TTL"},
		{kind: script.Extends, file: "extend", args: "ME TTL"},
		{kind: script.Releases, file: "release", args: "ME"},
		{kind: script.Asks, file: "ask", args: "ME"},
	}},
	{"spring-integration-5.5", false, []sent{
		{kind: script.Takes, file: "acquire", args: "ME TTL"},
		{kind: script.Releases, file: "release", args: "channel:{k}"},
		{kind: script.Releases, file: "release-del", args: "channel:{k}"},
	}},
	{"spring-integration-6.4", false, []sent{
		{kind: script.Takes, file: "acquire", args: "ME TTL"},
		{kind: script.Extends, file: "extend", args: "ME TTL"},
		{kind: script.Releases, file: "release", args: "ME channel:{k}"},
		{kind: script.Releases, file: "release-del", args: "ME channel:{k}"},
		{kind: script.Releases, file: "release-spin", args: "ME"},
		{kind: script.Releases, file: "release-del-spin", args: "ME"},
	}},
	{"symfony-lock-5.4", false, []sent{
		{kind: script.Takes, file: "acquire", args: "NOW ME TTL"},
		{kind: script.Takes, file: "acquire-read", args: "NOW ME TTL"},
		{kind: script.Extends, file: "extend", args: "NOW ME TTL"},
		{kind: script.Releases, file: "release", args: "ME"},
		{kind: script.Asks, file: "ask", args: "NOW ME"},
	}},
	{"redis-semaphore-5.8", false, []sent{
		{kind: script.Takes, args: "SET k ME PX TTL NX"},
		{kind: script.Extends, file: "extend", args: "ME TTL"},
		{kind: script.Releases, file: "release", args: "ME"},
	}},
	{"node-redis-warlock-1.0", false, []sent{
		{kind: script.Takes, args: "SET k ME PX TTL NX"},
		{kind: script.Extends, file: "extend", keys: "k TTL ME"},
		{kind: script.Releases, file: "release", args: "ME"},
	}},
	{"effect-distributed-lock-0.0.11", false, []sent{
		{kind: script.Takes, file: "acquire", args: "1 1 ME TTL NOW"},
		{kind: script.Extends, file: "extend", args: "1 1 ME TTL NOW"},
		{kind: script.Releases, file: "release", keys: "k k:released", args: "1 ME 1"},
		{kind: script.Asks, file: "ask", args: "TTL NOW"},
	}},
	{"medusa-2.21", false, []sent{
		{kind: script.Takes, file: "acquire", args: "ME SECONDS false"},
		{kind: script.Takes, file: "acquire", args: "ME SECONDS true"},
		{kind: script.Extends, file: "extend", args: "ME SECONDS"},
		{kind: script.Releases, file: "release", args: "ME"},
	}},
	{"rueidislock-1.0", false, []sent{
		{kind: script.Takes, file: "acquire", args: "ME TTL"},
		{kind: script.Takes, file: "acquire-until", args: "ME UNTIL"},
		{kind: script.Takes, file: "force", args: "ME TTL"},
		{kind: script.Takes, file: "force-until", args: "ME UNTIL"},
		{kind: script.Extends, file: "extend", args: "ME UNTIL"},
		{kind: script.Releases, file: "release", args: "ME"},
	}},
	{"node-redisson-1.0", false, []sent{
		{kind: script.Takes, file: "acquire", args: "TTL ME not twice"},
		{kind: script.Extends, file: "extend", args: "TTL ME"},
		{kind: script.Releases, file: "release", keys: "k channel:{k} latch:{k}:ME", args: "0 TTL ME TTL"},
		{kind: script.Releases, file: "force-release", keys: "k channel:{k}", args: "0"},
	}},
}

func redlocks(takes, releases string) []sent {
	return []sent{
		{kind: script.Takes, file: "acquire", args: takes},
		{kind: script.Extends, file: "extend", args: takes},
		{kind: script.Releases, file: "release", args: releases},
	}
}

// TestEveryStateOfOtherLocksIsAnsweredAsByOneRedis does the same for the locks of other libraries as is done for Redisson's.
func TestEveryStateOfOtherLocksIsAnsweredAsByOneRedis(t *testing.T) {
	requireRedis(t)
	now := time.Now().UnixMilli()
	const ttl = 600_000
	words := map[string]string{
		"TTL": strconv.Itoa(ttl), "SECONDS": strconv.Itoa(ttl / 1000),
		"NOW": strconv.FormatInt(now, 10), "UNTIL": strconv.FormatInt(now+ttl, 10),
	}
	var all []reachable
	for _, l := range lockLibraries {
		r := reachable{name: l.name, alike: permuted()[:2], holds: 2}
		sets := []string{"k"}
		if l.several {
			sets = []string{"k", "and{k}", "k and{k}"}
		}
		for _, s := range l.sends {
			for _, who := range []string{"aa:1", "aa:2", "bb:1"} {
				for _, keys := range sets {
					if s.lone && strings.Contains(keys, " ") || s.file == "" && keys != "k" {
						continue
					}
					words["ME"], words["KEYS"] = who, keys
					words["EACH"] = strings.Join(slices.Repeat([]string{who}, len(strings.Fields(keys))), " ")
					r.deeds = append(r.deeds, s.deed(t, l.name, words))
				}
				if !strings.Contains(s.args+s.keys, "ME") {
					break
				}
			}
		}
		for _, ask := range []string{"GET k", "EXISTS k", "PTTL k", "DEL k"} {
			d := sent{kind: script.Asks, args: ask}
			if ask == "DEL k" {
				d.kind = script.Releases
			}
			r.deeds = append(r.deeds, d.deed(t, l.name, words))
		}
		all = append(all, r)
	}
	newReachCheck(t).run(all)
}

// deed writes what is sent, with words for those in it.
func (s sent) deed(t *testing.T, library string, words map[string]string) deed {
	t.Helper()
	fill := func(text string) (out []string) {
		for _, word := range strings.Fields(text) {
			if with, is := words[word]; is {
				out = append(out, strings.Fields(with)...)
				continue
			}
			out = append(out, strings.ReplaceAll(word, "ME", words["ME"]))
		}
		return out
	}
	command, keys := fill(s.args), fill(s.keys)
	name := strings.Join(command, " ")
	if s.file != "" {
		text, err := os.ReadFile(filepath.Join("testdata", "locks", library, s.file+".lua"))
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 0 {
			keys = fill("KEYS")
		}
		name = s.file + " of " + strings.Join(keys, ", ") + " with " + name
		command = slices.Concat([]string{"EVAL", string(text), strconv.Itoa(len(keys))}, keys, command)
	}
	return deed{
		name: name, kind: s.kind, command: command, walks: s.kind == script.Takes || s.kind == script.Releases, refuses: s.says,
		grants: func(reply string) bool {
			n, is := harness.Int([]byte(reply))
			return is && n > 0 || strings.Contains(reply, "OK\r\n") || strings.HasPrefix(reply, "*2\r\n:1\r\n") ||
				library == "node-redisson-1.0" && reply == "$-1\r\n"
		},
	}
}
