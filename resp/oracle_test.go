package resp

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// startRedis starts a real redis-server to compare with, and returns its address.
func startRedis(t *testing.T, options ...string) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("LOCKPROXY_REQUIRE_REDIS") == "1" {
			t.Fatal("no redis-server to compare with: ", err)
		}
		t.Skip("no redis-server to compare with: ", err)
	}
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	cmd := exec.Command(path, append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir()},
		options...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	waitFor(t, "redis-server does not answer", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return addr
}

// converse sends requests one after the other on a connection of its own. After each it sends a command that neither
// server knows, so that it can tell when the reply is there, however many parts it has; a closed connection ends it.
func converse(t *testing.T, addr string, requests []string) []string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patienceMax))
	r := bufio.NewReader(conn)
	var replies []string
	for i, req := range requests {
		mark := fmt.Sprintf("mark-%d", i)
		_, _ = fmt.Fprintf(conn, "%s%s\r\n", req, mark)
		var got strings.Builder
		end := "-ERR unknown command '" + mark + "', with args beginning with: \r\n"
		for !strings.HasSuffix(got.String(), end) {
			b, err := r.ReadByte()
			if err != nil {
				return append(replies, got.String()+"<end>")
			}
			got.WriteByte(b)
		}
		replies = append(replies, strings.TrimSuffix(got.String(), end))
	}
	return replies
}

// words turns "SET k v" into a command as client libraries send it.
func words(line string) string { return cmdline(strings.Fields(line)...) }

// Each line is one connection; its commands are separated by " ; ".
var likeRedis = `
PING ; PING a ; PING a b ; ping ; ECHO ; ECHO a ; ECHO a b
foo ; FOO a b ; foo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb cccccccccccccccccccccccccccccccccccccc d
client ; client foo ; client foo a b c ; client setname ; client|id ; config ; config get ; script ; script load ; script foo ; command foo ; cluster ; cluster foo ; config foo
SET ; SET k ; GET ; GET a b ; SETNX k ; DEL ; UNLINK ; EXISTS ; TTL ; PTTL a b ; EXPIRE k ; EXPIREAT k ; PERSIST ; TYPE ; STRLEN ; SETEX k 1 ; EVAL ; EVAL x ; EVALSHA a ; AUTH ; SELECT ; WAIT 1 ; ROLE a ; TIME a ; RESET a ; READONLY a ; READWRITE a ; LASTSAVE a ; EXPIRETIME ; PEXPIRETIME a b
SET k v NX EX 100 ; SET k w NX EX 100 ; SET k w nx ex 100 get ; GET k ; SET k w XX EX 100 ; GET k ; SET k x XX GET EX 100 ; DEL k ; SET k v XX EX 10 ; SET k v NX GET EX 10 ; SET k v NX GET EX 10 ; DEL k k ; EXISTS k
SET k v EX 100 ; SET k w EX 100 GET ; STRLEN k ; TYPE k ; EXISTS k k nope ; DEL k nope ; GET k ; TTL k ; PTTL k ; EXPIRETIME k ; PEXPIRETIME k ; TYPE k ; STRLEN k ; EXPIRE k 10 ; PERSIST k ; UNLINK k
SET k v EX 100 ; SET k v KEEPTTL ; TTL k ; EXPIRE k 50 ; TTL k ; EXPIRE k 40 GT ; TTL k ; EXPIRE k 60 GT ; TTL k ; EXPIRE k 70 LT ; TTL k ; EXPIRE k 30 LT ; EXPIRE k 20 XX ; TTL k ; EXPIRE k 20 NX ; PEXPIRE k 10000 XX GT ; PERSIST k ; DEL k
SET k v EX 100 ; EXPIRE k 0 ; EXISTS k ; SET k v EX 100 ; EXPIRE k -1 ; EXISTS k ; SET k v EX 100 ; EXPIREAT k 1 ; EXISTS k ; SET k v EX 100 ; PEXPIRE k -5 ; EXISTS k ; PEXPIREAT k -9223372036854775808 ; EXPIRE k -9223372036854775 ; PEXPIRE k -9223372036854775808
SETNX j v ; SETNX j v ; DEL j ; SETEX j 10 v ; TTL j ; PSETEX j 10000 v ; TTL j ; GET j ; DEL j
SET k v EX ; SET k v EX a ; SET k v EX 0 ; SET k v EX -1 ; SET k v PX 0 ; SET k v EX 1 PX 1 ; SET k v NX XX ; SET k v XX NX ; SET k v EX 9999999999999999999 ; SET k v EX 9999999999999999 ; SET k v EX 9223372036854775 ; SET k v PX 9223372036854775807 ; SET k v IFEQ ; SET k v NX IFEQ a ; SET k v foo ; SET k v EX 10 KEEPTTL ; SET k v KEEPTTL EX 10 ; SET k v EX 010 ; SET k v EX +10 ; SET k v EX 1.5 ; SET k v PX ; SET k v NX PX ; SET k v EXAT 0 ; SET k v PXAT -1 ; SET k v EXAT a ; SET k v PX NX ; GET k
SET k v EX 5 EX 100 NX NX GET GET ; TTL k ; DEL k
SET k v EXAT 1 ; GET k ; SET k v EX 100 ; SET k v PXAT 1 ; GET k ; SET k v EX 100 ; SET k v EXAT 1 XX ; GET k ; SET k v EXAT 1 XX
SETEX k 0 v ; SETEX k a v ; PSETEX k -1 v ; SETEX k 9999999999999999 v ; SETEX k 9223372036854775807 v
EXPIRE k a ; EXPIRE k 1 FOO ; EXPIRE k a FOO ; EXPIRE k 1 NX XX ; EXPIRE k 1 NX GT ; EXPIRE k 1 GT LT ; EXPIRE k 1 XX GT LT ; EXPIRE k 99999999999999999 ; EXPIRE k -99999999999999999 ; PEXPIRE k 9223372036854775807 ; EXPIREAT k 99999999999999999 ; EXPIRE k 9223372036854775 ; PEXPIREAT k a
SELECT 16 ; SELECT -1 ; SELECT a ; SELECT 99999999999 ; SELECT 2147483648 ; SELECT -2147483648 ; SELECT 15 ; SET k v EX 10 ; SELECT 0 ; GET k ; SELECT 15 ; DEL k ; SELECT 01
HELLO 4 ; HELLO 1 ; HELLO a ; HELLO 3 AUTH ; HELLO 3 AUTH a ; HELLO 3 FOO ; HELLO 3 AUTH a b ; HELLO 2 AUTH default x SETNAME me ; CLIENT GETNAME ; HELLO 3 SETNAME ; HELLO ; HELLO 3 ; GET nope ; HELLO ; COMMAND INFO nope ; CLIENT GETNAME ; HELLO 2 ; GET nope
HELLO 3 SETNAME me FOO ; CLIENT GETNAME ; GET nope ; HELLO 3 SETNAME you AUTH nobody x ; CLIENT GETNAME ; HELLO 3 AUTH nobody x SETNAME a\x01b ; HELLO 3 AUTH nobody x AUTH default x ; HELLO 3 AUTH nobody x FOO ; GET nope
HELLO 3 ; RESET ; GET nope ; CLIENT SETNAME me ; CLIENT GETNAME ; RESET ; CLIENT GETNAME
AUTH a ; AUTH a b ; AUTH default b ; AUTH a b c
CLIENT REPLY foo ; CLIENT REPLY ON ; PING
CLIENT KILL foo ; CLIENT KILL ID 99999 ; CLIENT KILL ID x ; CLIENT KILL ID 0 ; CLIENT KILL FOO x ; CLIENT KILL ID 4 ADDR ; CLIENT KILL TYPE foo ; CLIENT KILL TYPE pubsub ; CLIENT KILL USER nobody ; CLIENT KILL SKIPME maybe ; CLIENT KILL ADDR 1.2.3.4:5 SKIPME no ; CLIENT KILL
CLIENT LIST TYPE foo ; CLIENT LIST ID x ; CLIENT LIST FOO ; CLIENT LIST TYPE ; CLIENT LIST TYPE pubsub ; CLIENT NO-EVICT foo ; CLIENT NO-EVICT ON ; CLIENT CAPA redirect ; CLIENT MAINT_NOTIFICATIONS ON ; CLIENT TRACKING FOO ; CLIENT TRACKING OFF
CLUSTER NODES ; CLUSTER SLOTS ; CLUSTER INFO ; CLUSTER INFO x ; CLUSTER MYID
WAIT 0 0 ; WAIT a b ; WAIT 0 b ; WAIT 0 -1 ; ROLE ; SENTINEL masters ; SENTINEL
SCRIPT EXISTS ; SCRIPT EXISTS aa bb ; SCRIPT FLUSH ; SCRIPT FLUSH ASYNC ; SCRIPT FLUSH SYNC ; SCRIPT FLUSH A ; SCRIPT FLUSH ASYNC SYNC ; EVALSHA abc 0 ; EVALSHA ffffffffffffffffffffffffffffffffffffffff 1 k ; EVAL x a ; EVAL x 1 ; EVAL x -1 ; EVAL x 99999999999999999999 ; EVALSHA x 2 a
COMMAND INFO nope ; COMMAND GETKEYS SET a b ; COMMAND GETKEYS EVAL x 2 a b c ; COMMAND GETKEYS EVAL x 0 ; COMMAND GETKEYS foo bar ; COMMAND GETKEYS PING a ; COMMAND GETKEYS GET a b ; COMMAND GETKEYS DEL a b c ; COMMAND GETKEYS EVAL x 9 a ; COMMAND GETKEYS EVAL x a b ; COMMAND GETKEYS EVAL x -1 b ; COMMAND GETKEYS SCRIPT LOAD x ; COMMAND GETKEYS ; COMMAND GETKEYS GET ; COMMAND LIST FILTERBY foo bar ; COMMAND LIST FILTERBY PATTERN p?ng ; COMMAND LIST FOO ; COMMAND LIST FILTERBY PATTERN [^q]uit ; COMMAND LIST FILTERBY MODULE x ; COMMAND DOCS nope ; COMMAND COUNT x ; COMMAND LIST FILTERBY PATTERN client|id
CONFIG GET save ; CONFIG GET appendonly ; CONFIG GET databases ; CONFIG GET nope ; CONFIG GET SAVE ; CONFIG GET SAV[E] ; CONFIG GET save SAVE ; CONFIG GET maxmemory-polic[xyz] ; CONFIG GET time?ut ; CONFIG GET slave-read-only ; CONFIG GET replica-read-only ; CONFIG SET a ; HELLO 3 ; CONFIG GET save
INFO foo ; HELLO 3 ; INFO foo
POST a
HOST: a
QUIT
QUIT a
`

func TestAnswersAreRedissByteForByte(t *testing.T) {
	redis := startRedis(t)
	for line := range strings.Lines(strings.TrimSpace(likeRedis)) {
		requests := strings.Split(strings.TrimSpace(line), " ; ")
		raw := make([]string, len(requests))
		for i, req := range requests {
			raw[i] = words(req)
		}
		want := converse(t, redis, raw)
		got := converse(t, newRig(t, Config{}).addr, raw)
		for range 3 { // a busy machine: one of them was asked for a TTL in another second than the other
			if slices.Equal(got, want) || !strings.Contains(line, "TTL") {
				break
			}
			want = converse(t, redis, raw)
			got = converse(t, newRig(t, Config{}).addr, raw)
		}
		compare(t, requests, got, want)
	}
}

// loose hides what differs by nature: the number of a client.
var loose = regexp.MustCompile(`(\$2\r\nid\r\n:)\d+`)

func compare(t *testing.T, requests, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "<nothing>", "<nothing>"
		if i < len(got) {
			g = loose.ReplaceAllString(got[i], "$1")
		}
		if i < len(want) {
			w = loose.ReplaceAllString(want[i], "$1")
		}
		if g != w {
			t.Errorf("%s\n got %q\nwant %q", requests[min(i, len(requests)-1)], g, w)
		}
	}
}

// Bytes that are no proper command, as they are.
var rawLikeRedis = []string{
	"PING\r\n", "PING\n", "\r\n\r\nPING\r\n", "  PING   a \r\n", `SET k "a b" NX` + "\r\n", `ECHO "\x41\n\"x"` + "\r\n",
	`ECHO 'it\'s'` + "\r\n", "ECHO \"a\r\n", "ECHO 'a\r\n", "ECHO \"a\"b\r\n", "ECHO a\"b\"\r\n", "ECHO ''\r\n",
	"*0\r\nPING\r\n", "*-1\r\nPING\r\n", "*1\r\n$4\r\nPINGxx", "*a\r\n", "*\r\n", "*+1\r\n", "*01\r\n", "* 1\r\n",
	"*2147483648\r\n", "*9223372036854775807\r\n", "*99999999999999999999\r\n", "*-99999999999999999999\r\n",
	"*1\r\n4\r\nPING\r\n", "*1\r\n:4\r\n", "*1\r\n\r\n", "*1\r\n$-1\r\n", "*1\r\n$a\r\n", "*1\r\n$\r\n", "*1\r\n$+4\r\nPING\r\n",
	"*1\r\n$9223372036854775807\r\n", "*1\r\n$9223372036854775800\r\n", "*1\r\n$-9223372036854775808\r\n", "*1\r\n$99999999999\r\n",
	"*1\r\n$04\r\nPING\r\n", "*2\r\n$0\r\n\r\n$1\r\na\r\n", "*1\r\n$0\r\n\r\n", "*3\r\n$3\r\nfoo\r\n$3\r\na\x00b\r\n$1\r\nc\r\n",
	"*2\r\n$5\r\nfo\r\no\r\n$3\r\na\nb\r\n", "*1\r\n$3\r\nf\x00o\r\n", "$4\r\nPING\r\n", "+OK\r\n", ":1\r\n",
	"*2\r\n$4\r\nECHO\r\n$6\r\n\x00\r\n\xff\x80x\r\n", strings.Repeat("a", 300000), "*" + strings.Repeat("1", 70000),
	"*1\r\n$" + strings.Repeat("1", 70000), "*1\r\n" + strings.Repeat("a", 70000), "GET \xff\xfe\r\n",
}

func TestOddBytesAreAnsweredAsByRedis(t *testing.T) {
	redis, proxy := startRedis(t), newRig(t, Config{}).addr
	for _, raw := range rawLikeRedis {
		want := converse(t, redis, []string{raw})
		got := converse(t, proxy, []string{raw})
		compare(t, []string{fmt.Sprintf("%.60q", raw)}, got, want)
	}
}

func TestBeforeLoginAnswersAreRedissByteForByte(t *testing.T) {
	redis := startRedis(t, "--requirepass", "pw")
	proxy := newRig(t, Config{Users: []User{{Name: "default", Password: password("pw")}}}).addr
	for _, line := range []string{
		"PING ; foo ; GET ; GET a ; CLIENT ; CLIENT foo ; CLIENT ID ; SELECT 1 ; INFO ; COMMAND COUNT ; QUIT",
		"AUTH x ; AUTH default x ; AUTH nobody pw ; HELLO ; HELLO 3 ; HELLO 3 AUTH default x ; HELLO 3 AUTH default pw ; PING ; RESET ; PING ; AUTH pw ; PING",
		"RESET ; HELLO 2 SETNAME x ; HELLO 9 ; AUTH a b c ; AUTH default pw ; PING ; AUTH x ; PING",
		"HELLO 3 SETNAME me ; HELLO 3 AUTH default x AUTH default pw ; PING ; HELLO 3 AUTH default pw FOO ; CLIENT GETNAME ; HELLO",
		"ECHO 1 2 3 4 5 6 7 8 9 ; ECHO 1 2 3 4 5 6 7 8 9 10", "POST x",
	} {
		requests := strings.Split(line, " ; ")
		raw := make([]string, len(requests))
		for i, req := range requests {
			raw[i] = words(req)
		}
		compare(t, requests, converse(t, proxy, raw), converse(t, redis, raw))
	}
	for _, raw := range []string{"*11\r\n", "*10\r\n", "*2\r\n$4\r\nAUTH\r\n$16385\r\n", "*2\r\n$4\r\nAUTH\r\n$16384\r\n" + strings.Repeat("a", 16384) + "\r\n"} {
		compare(t, []string{raw}, converse(t, proxy, []string{raw}), converse(t, redis, []string{raw}))
	}
}
