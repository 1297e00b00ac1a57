package integration

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// asked returns a reply of each.
func asked(t *testing.T, o, p *harness.Conn, args ...string) (oracle, proxy string) {
	t.Helper()
	var replies [2]string
	for i, c := range []*harness.Conn{o, p} {
		reply, err := c.Do(args...)
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		replies[i] = string(reply)
	}
	return replies[0], replies[1]
}

// COMMAND is the upstream's: it tells of the upstream's commands, and of no other.
func TestCommandTellsOfTheUpstreamsCommands(t *testing.T) {
	f := startFront(t)
	for _, proto := range []string{"2", "3"} {
		o, p := dial(t, f.oracle.Addr), dial(t, f.proxy.Addr)
		asked(t, o, p, "HELLO", proto)
		for _, request := range []string{"COMMAND", "COMMAND COUNT", "COMMAND INFO", "COMMAND LIST", "COMMAND DOCS", "COMMAND INFO get lock", "COMMAND GETKEYS LOCK k 1000"} {
			oracle, proxy := asked(t, o, p, strings.Fields(request)...)
			if !sameButOrder(proxy, oracle) {
				t.Errorf("%s: %s", request, short(proxy))
			}
		}
		_, _ = o.Close(), p.Close()
	}
}

// sameButOrder says whether got is want, but for the order of tables: each server makes its own.
func sameButOrder(got, want string) bool {
	head, rest, _ := strings.Cut(want, "\r\n")
	gotHead, gotRest, _ := strings.Cut(got, "\r\n")
	if head != gotHead || len(gotRest) != len(rest) {
		return false
	}
	var counts [256]int
	for _, b := range []byte(rest) {
		counts[b]++
	}
	for _, b := range []byte(gotRest) {
		counts[b]--
	}
	return counts == [256]int{}
}

func sha1Hex(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// A text that was sent with EVAL exists, as on one Redis, whichever side ran it last and if that side is the masters'.
func TestScriptsThatOnlyTheProxyKnowsExist(t *testing.T) {
	f := startFront(t)
	o, p := dial(t, f.oracle.Addr), dial(t, f.proxy.Addr)
	const text = "return redis.call('get', KEYS[1]) -- of a lock"
	for _, request := range [][]string{{"EVAL", text, "1", "lock:1"}, {"SCRIPT", "EXISTS", sha1Hex(text), strings.Repeat("0", 40)}, {"EVALSHA", sha1Hex(text), "1", "data"}} {
		if oracle, proxy := asked(t, o, p, request...); oracle != proxy {
			t.Errorf("%q: got %q, want %q", request, proxy, oracle)
		}
	}
	// What only the upstream knows, an EVALSHA on a lock would not find.
	direct(t, []*harness.Redis{f.oracle, f.upstream}, "SCRIPT", "LOAD", "return 'theirs'")
	if _, proxy := asked(t, o, p, "SCRIPT", "EXISTS", sha1Hex("return 'theirs'")); proxy != "*1\r\n:0\r\n" {
		t.Errorf("EXISTS: %q", proxy)
	}
}
