package integration

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"lockproxy/integration/harness"
)

// A replyPair is what the oracle and the proxy answered to one request.
type replyPair struct {
	request       []string
	oracle, proxy []byte
	slack         time.Duration // how far apart the two were asked, at most
}

// clockStep is what two honest clocks of 1 ms may differ by, rounding included, and clockWidth, and what they may drift apart
// while a busy machine keeps a master from telling its time for a second. Masters before Redis 7 keep a key for up to 10 ms
// more, so that its undo takes no other.
var clockStep = 5*time.Millisecond + clockWidth + time.Second/100

// clockWidth is how much longer than asked for a master may keep a key: it is told when by its own clock, and by the latest
// that this may show, which is known to 2/5 of grace and 2 ms. Of one that answers slowly, as on a busy machine, it is not known better.
const clockWidth = (50 + 2) * time.Millisecond * 2 / 5

func init() {
	if os.Getenv("LOCKPROXY_REDIS_SERVER") != "" {
		clockStep += 10 * time.Millisecond
	}
}

// failedScript is where an error says in which script it was raised.
var failedScript = regexp.MustCompile(` script: (?:[0-9a-f]{40}, )?on @user_script:\d+\.`)

// loosenings are the ways in which the proxy's reply may differ from the oracle's. Every use is named in a script.
var loosenings = map[string]func(replyPair) error{
	// A time in ms, or a Unix time in ms: time passes between the two questions.
	"ttl": func(p replyPair) error { return p.near(p.slack+clockStep, time.Millisecond) },
	// The same in seconds, where rounding may add one.
	"ttl_s": func(p replyPair) error { return p.near(p.slack+time.Second, time.Second) },
	// Unlike Redis: a key without TTL gets ttl_max, one hour.
	"ttl_max": func(p replyPair) error {
		seconds, ok := harness.Int(p.proxy)
		if strings.HasPrefix(strings.ToUpper(p.request[0]), "P") {
			seconds = (seconds + 999) / 1000
		}
		if !ok || string(p.oracle) != ":-1\r\n" || seconds > 3600 || seconds < 3600-10 {
			return p.differ("want -1 and the rest of one hour")
		}
		return nil
	},
	// Unlike Redis: no lock outlives ttl_max.
	"over_ttl_max": func(p replyPair) error {
		return p.proxyMatches(`^-ERR lock TTL .* exceeds ttl_max .*\r\n$`)
	},
	// Unlike Redis: EXPIRE … NX never applies, because every key has a TTL.
	"every_key_has_a_ttl": func(p replyPair) error {
		if string(p.oracle) != ":1\r\n" {
			return p.differ("the oracle was to apply it")
		}
		return p.proxyMatches(`^:0\r\n$`)
	},
	// Unlike Redis: +OK to a SET NX means that the lock is held, so it cannot be the answer if nothing was set.
	"never_ok_for_nothing": func(p replyPair) error {
		return p.proxyMatches(`^(\$-1|_|-ERR .*)\r\n$`)
	},
	"ttl_max_in_script": func(p replyPair) error {
		if string(p.oracle) != ":-1\r\n" {
			return p.differ("want -1")
		}
		return p.proxyMatches(`^:3(600000|5\d{5})\r\n$`)
	},
	// Unlike Redis: what cannot be run safely by vote is refused by name, and not as an unknown command.
	"script_refused": func(p replyPair) error {
		return p.proxyMatches(`^-ERR .*[0-9a-f]{40}.*\r\n$`)
	},
	// Unlike Redis: the script before was refused.
	"null": func(p replyPair) error { return p.proxyMatches(`^(\$-1|_)\r\n$`) },
	// A script that is understood fails as on Redis 7; one that runs by vote, as its masters word it.
	"wrong_type": func(p replyPair) error {
		if os.Getenv("LOCKPROXY_REDIS_SERVER") == "" {
			return p.same()
		}
		if !bytes.Contains(p.oracle, []byte("-WRONGTYPE ")) || !bytes.Contains(p.proxy, []byte("-WRONGTYPE ")) {
			return p.differ("want WRONGTYPE")
		}
		return nil
	},
	// Unlike Redis: what would have made the keys was refused.
	"nothing": func(p replyPair) error { return p.proxyMatches(`^:0\r\n$`) },
	// What masters of another version than the oracle's reply in a way of their own, or, if theirs differ, do not agree on.
	"version": func(p replyPair) error {
		if os.Getenv("LOCKPROXY_REDIS_SERVER") != "" {
			return nil
		}
		return p.same()
	},
	// Valkey names no digest where a script fails.
	"but_for_the_digest": func(p replyPair) error {
		p.proxy = bytes.Replace(p.proxy, failedScript.Find(p.proxy), failedScript.Find(p.oracle), 1)
		return p.same()
	},
	"both_errors": func(p replyPair) error {
		if p.oracle[0] != '-' || !bytes.HasPrefix(p.proxy, []byte("-ERR ")) {
			return p.differ("want two errors")
		}
		return nil
	},
	// The oracle is Redis 7.0.15. Clients send this and go on whatever the one reply is.
	"newer_than_the_oracle": func(p replyPair) error { return p.proxyMatches(`^(\+OK|-ERR .*)\r\n$`) },
	// A replica-only or cluster-only command: harmless where there is neither.
	"ok_or_error": func(p replyPair) error { return p.proxyMatches(`^(\+OK|-ERR .*)\r\n$`) },
	// Commands of Redis that this proxy does not have get the text of a command that Redis does not have.
	"unknown_here": func(p replyPair) error {
		return p.proxyMatches(`^-ERR unknown command '` + regexp.QuoteMeta(p.request[0]) + `', with args beginning with: .*\r\n$`)
	},
	// The same types in the same places; the contents are ids, times and numbers of this server.
	"type": func(p replyPair) error { return p.sameShape(1) },
	// HELLO: the same fields, with the same types, in the same order.
	"hello": func(p replyPair) error {
		fields := regexp.MustCompile(`\$\d+\r\n(server|version|proto|id|mode|role|modules)\r\n`)
		if fmt.Sprintf("%q", fields.FindAll(p.oracle, -1)) != fmt.Sprintf("%q", fields.FindAll(p.proxy, -1)) {
			return p.differ("want the same fields")
		}
		return p.sameShape(7)
	},
	"bulk_or_verbatim": func(p replyPair) error { return p.proxyMatches(`^[$=]\d+\r\n(?s:.*)\r\n$`) },
}

func (p replyPair) differ(why string) error {
	return fmt.Errorf("%s:\n  request %s\n  oracle  %s\n  proxy   %s", why, short(fmt.Sprintf("%q", p.request)),
		short(fmt.Sprintf("%q", p.oracle)), short(fmt.Sprintf("%q", p.proxy)))
}

func short(s string) string {
	if len(s) > 600 {
		return s[:500] + " … " + s[len(s)-60:]
	}
	return s
}

// compare returns an error unless the replies are the same bytes, or differ only as the loosening allows.
func (p replyPair) compare(loose string) error {
	if loose != "" {
		return loosenings[loose](p)
	}
	return p.same()
}

func (p replyPair) same() error {
	if !bytes.Equal(p.oracle, p.proxy) {
		return p.differ("the replies differ")
	}
	return nil
}

// near demands two integers of the given unit that are at most this far apart.
func (p replyPair) near(apart, unit time.Duration) error {
	a, isInt := harness.Int(p.oracle)
	b, isIntToo := harness.Int(p.proxy)
	if !isInt || !isIntToo || (a < 0) != (b < 0) || time.Duration(max(a-b, b-a))*unit > apart {
		return p.differ(fmt.Sprintf("want integers that differ by at most %v", apart))
	}
	return nil
}

func (p replyPair) proxyMatches(pattern string) error {
	if !regexp.MustCompile(pattern).Match(p.proxy) {
		return p.differ("want the proxy's to match " + pattern)
	}
	return nil
}

// sameShape demands the same reply types at the first lines that are headers, as many as are given.
func (p replyPair) sameShape(headers int) error {
	a, b := shape(p.oracle, headers), shape(p.proxy, headers)
	if a != b {
		return p.differ(fmt.Sprintf("want the same types, %s, not %s", a, b))
	}
	return nil
}

// shape returns the type bytes of the outermost reply and, of an aggregate, its header and the types of its members.
func shape(raw []byte, members int) string {
	if !strings.ContainsRune("*%~>", rune(raw[0])) {
		return string(raw[:1])
	}
	head, rest, _ := bytes.Cut(raw, []byte("\r\n"))
	s := string(head[:1])
	if members > 1 {
		s = string(head)
		for _, m := range regexp.MustCompile(`(?m)^[$:*%~_#,(][-\d]*\r$`).FindAll(rest, -1) {
			s += string(m[:1])
		}
	}
	return s
}
