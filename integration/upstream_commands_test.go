package integration

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
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

// COMMAND tells of the upstream's commands what that tells, and of lockproxy's own, too.
func TestCommandTellsOfTheProxysOwnCommandsToo(t *testing.T) {
	f := startFront(t)
	for _, proto := range []string{"2", "3"} {
		o, p := dial(t, f.oracle.Addr), dial(t, f.proxy.Addr)
		asked(t, o, p, "HELLO", proto)
		const own = 9 // LOCK UNLOCK EXTEND FENCE LOCKINFO LOCKS FORCEUNLOCK DELEX DELIFEQ
		oracle, proxy := asked(t, o, p, "COMMAND", "COUNT")
		had, _ := harness.Int([]byte(oracle))
		if count, _ := harness.Int([]byte(proxy)); count != had+own {
			t.Errorf("COUNT: %q, want %d more than %q", proxy, own, oracle)
		}
		for _, request := range []string{"COMMAND", "COMMAND INFO", "COMMAND LIST", "COMMAND DOCS"} {
			oracle, proxy := asked(t, o, p, strings.Fields(request)...)
			kind, n, more := oracle[0], 0, own
			_, _ = fmt.Sscanf(oracle[1:], "%d", &n)
			if request == "COMMAND DOCS" && proto == "2" {
				more = 2 * own
			}
			_, rest, _ := strings.Cut(oracle, "\r\n")
			if want := fmt.Sprintf("%c%d\r\n%s", kind, n+more, rest); !sameButOrder(proxy, want) {
				t.Errorf("%s: %s", request, short(proxy))
			}
			if !strings.Contains(proxy, "$8\r\nlockinfo\r\n") {
				t.Errorf("%s tells nothing of LOCKINFO: %s", request, short(proxy))
			}
		}
		get, _ := asked(t, o, p, "COMMAND", "INFO", "get", "nosuch")
		_, get, _ = strings.Cut(get, "\r\n")
		_, proxy = asked(t, o, p, "COMMAND", "INFO", "get", "nosuch", "LockInfo")
		if !strings.HasPrefix(proxy, "*3\r\n"+get+"*10\r\n$8\r\nlockinfo\r\n:2\r\n") {
			t.Errorf("INFO: %s", short(proxy))
		}
		_, proxy = asked(t, o, p, "COMMAND", "INFO", "lock")
		if !strings.HasPrefix(proxy, "*1\r\n*10\r\n$4\r\nlock\r\n:-3\r\n") {
			t.Errorf("INFO: %s", short(proxy))
		}
		get, _ = asked(t, o, p, "COMMAND", "DOCS", "get")
		_, get, _ = strings.Cut(get, "\r\n")
		_, proxy = asked(t, o, p, "COMMAND", "DOCS", "lock", "get")
		head := map[string]string{"2": "*4\r\n", "3": "%2\r\n"}[proto]
		if !strings.HasPrefix(proxy, head+get+"$4\r\nlock\r\n") {
			t.Errorf("DOCS: %s", short(proxy))
		}
		_, proxy = asked(t, o, p, "COMMAND", "LIST", "FILTERBY", "PATTERN", "lock*")
		if proxy != "*3\r\n$4\r\nlock\r\n$8\r\nlockinfo\r\n$5\r\nlocks\r\n" {
			t.Errorf("LIST: %q", proxy)
		}
		_, proxy = asked(t, o, p, "COMMAND", "GETKEYS", "LOCK", "k", "1000")
		if proxy != "*1\r\n$1\r\nk\r\n" {
			t.Errorf("GETKEYS: %q", proxy)
		}
		_, _ = o.Close(), p.Close()
	}
}

// sameButOrder says whether got is want with something behind it, whose tables may be in another order: each server makes its
// own.
func sameButOrder(got, want string) bool {
	head, rest, _ := strings.Cut(want, "\r\n")
	gotHead, gotRest, _ := strings.Cut(got, "\r\n")
	if head != gotHead || len(gotRest) < len(rest) {
		return false
	}
	var counts [256]int
	for _, b := range []byte(rest) {
		counts[b]++
	}
	for _, b := range []byte(gotRest[:len(rest)]) {
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
