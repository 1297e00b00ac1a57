package integration

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// scriptSteps is how many random scripts one run sends.
const scriptSteps = 700

// TestRandomScriptsAnswerAsOneRedis compares random scripts, which run by vote, with one server of the masters' version:
// in scripts that fail, versions differ. A failure prints its seed; LOCKPROXY_SEED=… plays it again.
func TestRandomScriptsAnswerAsOneRedis(t *testing.T) {
	requireRedis(t)
	requireOneVersion(t, "what a failing script comes to")
	seed := seed(t)
	for _, n := range []int{1, 3} {
		for _, protocol := range []string{"2", "3"} {
			t.Run(fmt.Sprintf("%d masters, RESP%s", n, protocol), func(t *testing.T) {
				t.Logf("LOCKPROXY_SEED=%d", seed)
				masters := startMasters(t, n)
				one := startMasters(t, 1)[0]
				if majorOf(t, one) < 7 {
					t.Skip("NOT RUN: before Redis 7 there is no EVAL_RO, and errors are worded in another way")
				}
				o := dial(t, one.Addr)
				p := dial(t, startProxy(t, harness.Addrs(masters)).Addr)
				hello(t, protocol, o, p)
				g := &scriptWriter{rand: rand.New(rand.NewPCG(seed, uint64(n)))}
				for i := range scriptSteps {
					request := g.request()
					raw := harness.Encode(nil, request...)
					if err := o.Send(raw); err != nil {
						t.Fatal(err)
					}
					if err := p.Send(raw); err != nil {
						t.Fatal(err)
					}
					comparePair(t, fmt.Sprintf("step %d", i), request, "but_for_the_digest", o, p, time.Now())
					if t.Failed() {
						t.Fatalf("LOCKPROXY_SEED=%d\n%s", seed, request[1])
					}
				}
			})
		}
	}
}

var malformedWrite = regexp.MustCompile(`'set',KEYS\[.\]\)`)

// A scriptWriter writes random scripts over three keys. It does not ask for TTLs, which run on between the two servers,
// and keeps to integers in sets, because Redis lists other members in an order of its own.
type scriptWriter struct{ rand *rand.Rand }

func (w *scriptWriter) pick(from ...string) string { return from[w.rand.IntN(len(from))] }

func (w *scriptWriter) request() []string {
	var b strings.Builder
	if w.rand.IntN(8) == 0 {
		b.WriteString("redis.setresp(3)\n")
	}
	lines := 1 + w.rand.IntN(4)
	for i := range lines {
		fmt.Fprintf(&b, "local v%d = %s\n", i, w.call())
		if w.rand.IntN(6) == 0 {
			fmt.Fprintf(&b, "if not v%d then return {%s} end\n", i, w.value(i+1))
		}
	}
	// Every key has a TTL at the proxy.
	b.WriteString("for _, k in ipairs(KEYS) do redis.call('pexpire', k, 600000) end\n")
	fmt.Fprintf(&b, "return %s", w.value(lines))
	name := "EVAL"
	// Of a write that is also malformed, Redis says the latter first.
	if w.rand.IntN(12) == 0 && !malformedWrite.MatchString(b.String()) {
		name = "EVAL_RO"
	}
	return []string{name, b.String(), "3", "d:1", "d:2", "d:{3}\x00", w.argument(), w.argument(), "7"}
}

func (w *scriptWriter) argument() string { return w.pick("a", "", "5", "1.5", "f", "\x00\xff\r\n") }

// call returns a call of a random command, right or wrong.
func (w *scriptWriter) call() string {
	k, k2 := "KEYS["+w.pick("1", "2", "3")+"]", "KEYS["+w.pick("1", "2", "3")+"]"
	a := w.pick("ARGV[1]", "ARGV[2]", "ARGV[3]", "1", "'x'", "2.5", "#KEYS")
	f := w.pick("'f'", "'g'", "ARGV[3]", "ARGV[1]")
	args := w.pick(
		"'get',"+k, "'set',"+k+","+a, "'set',"+k+","+a+",'nx'", "'SETNX',"+k+","+a, "'getset',"+k+","+a, "'append',"+k+","+a,
		"'incr',"+k, "'incrby',"+k+","+a, "'strlen',"+k, "'mget',"+k+","+k2, "'mset',"+k+","+a+","+k2+","+a, "'getdel',"+k,
		"'del',"+k, "'unlink',"+k+","+k2, "'del',"+k, "'del',"+k, "'exists',"+k+","+k2, "'type',"+k, "'rename',"+k+","+k2,
		"'hset',"+k+","+f+","+a, "'hset',"+k+","+f+","+a+",'z',1", "'hget',"+k+","+f, "'hincrby',"+k+","+f+",1",
		"'hgetall',"+k, "'hexists',"+k+","+f, "'hdel',"+k+","+f, "'hlen',"+k, "'hmget',"+k+",'f','none'",
		"'rpush',"+k+","+a+",'e'", "'lpop',"+k, "'lrange',"+k+",0,-1", "'llen',"+k, "'rpoplpush',"+k+","+k2,
		"'sadd',"+k+",3,1,2", "'smembers',"+k, "'sismember',"+k+",3", "'srem',"+k+",1",
		"'zadd',"+k+","+a+",'m'", "'zadd',"+k+",1,'m',2.5,'n'", "'zrange',"+k+",0,-1,'withscores'", "'zscore',"+k+",'m'",
		"'zunionstore',"+k+",2,"+k2+","+k, "'get'", "'nosuch',"+k, "'set',"+k, "'echo',"+a, "'ping'",
	)
	switch w.rand.IntN(5) {
	case 0:
		return "redis.pcall(" + args + ")"
	case 1:
		return "select(2, pcall(redis.call, " + args + "))"
	}
	return "redis.call(" + args + ")"
}

// value returns an expression over the first n values.
func (w *scriptWriter) value(n int) string {
	v := "v" + strconv.Itoa(w.rand.IntN(n))
	return w.pick(v, v, "{"+v+"}", "{"+v+", {1, 'two', "+v+"}}", "type("+v+")", "{ok=type("+v+")}", "cjson.encode({a="+v+" or 0})",
		"{"+v+" == nil, "+v+" == false, "+v+" or 'none'}", "tostring("+v+" and 1 or 0)", "{1, nil, "+v+"}", "#KEYS + #ARGV",
		"redis.error_reply('MY ' .. type("+v+"))", v+".x", "error('up')", "{double=1.25}", "{map={a="+v+" or 1}}", "1/3", "-0")
}
