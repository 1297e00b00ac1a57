package integration

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// putBackSteps is how many random scripts one run sends.
const putBackSteps = 400

// TestRandomScriptsArePutBackExactly runs random scripts on masters that differ. What a script comes to on each of them, one
// Redis in the same state tells. If two masters agree, theirs is the reply, and they keep what the script did; on any other
// master each key is what it was, to the millisecond of its expiry, but for what was deleted. A failure prints its seed;
// LOCKPROXY_SEED=… plays it again.
func TestRandomScriptsArePutBackExactly(t *testing.T) {
	requireRedis(t)
	requireOneVersion(t, "what DUMP tells")
	seed := seed(t)
	t.Logf("LOCKPROXY_SEED=%d", seed)
	all := startMasters(t, 4)
	if majorOf(t, all[3]) < 7 {
		t.Skip("NOT RUN: before Redis 7 there is no PEXPIRETIME")
	}
	proxy := startProxy(t, harness.Addrs(all[:3]), "--ttl-max", strconv.Itoa(putBackTTLMax)+"ms")
	b := &putBack{T: t, w: &lockWriter{scriptWriter{rand.New(rand.NewPCG(seed, 0))}}, proxy: dial(t, proxy.Addr), one: dial(t, all[3].Addr)}
	for i := range b.masters {
		b.masters[i] = dial(t, all[i].Addr)
	}
	allVote(t, b.proxy, all[:3])
	for i := range putBackSteps {
		b.step(i)
		if t.Failed() {
			t.Fatalf("LOCKPROXY_SEED=%d", seed)
		}
	}
}

// putBackTTLMax is ttl_max in ms: longer than any TTL that occurs.
const putBackTTLMax = 2_000_000

// keptFor is for how many ms masters keep a key with this TTL, by the proxy's default settings.
func keptFor(ttl int64) int64 { return ttl + ttl/100 + 53 }

// A lockWriter writes random scripts over three keys whose replies hold no TTL and no time. The TTLs that they set and compare
// lie far apart.
type lockWriter struct{ scriptWriter }

func (w *lockWriter) key() string { return "KEYS[" + w.pick("1", "2", "3") + "]" }

func (w *lockWriter) ttl() string { return strconv.Itoa(3333 + 100_000*(1+w.rand.IntN(9))) }

// script returns a script of a few calls, some of which end it early.
func (w *lockWriter) script() string {
	var b strings.Builder
	lines := 2 + w.rand.IntN(8)
	for i := range lines {
		fmt.Fprintf(&b, "local v%d\n", i)
		if i > 0 && w.rand.IntN(5) == 0 {
			fmt.Fprintf(&b, "if %s then %s end\n", w.condition(i), w.pick("return 2", "error('up')", "return redis.error_reply('NO')", "return {1,v0}"))
			continue
		}
		fmt.Fprintf(&b, "v%d = %s(%s)\n", i, w.pick("redis.call", "redis.pcall", "redis.pcall"), w.call())
	}
	v := "v" + strconv.Itoa(w.rand.IntN(lines))
	b.WriteString("return " + w.pick("1", "0", "nil", "type("+v+")", "redis.call('exists',KEYS[1],KEYS[2],KEYS[3])", "redis.call('mget',KEYS[1],KEYS[2],KEYS[3])"))
	return b.String()
}

func (w *lockWriter) condition(n int) string {
	return w.pick("redis.call('exists',"+w.key()+")==1", "redis.call('pttl',"+w.key()+")>"+strconv.Itoa(50_000+100_000*w.rand.IntN(9)),
		"redis.call('type',"+w.key()+").ok=='string'", fmt.Sprintf("type(v%d)=='number'", w.rand.IntN(n)))
}

// call returns the arguments of a call, right or wrong.
func (w *lockWriter) call() string {
	k, k2, a, ttl := w.key(), w.key(), w.pick("ARGV[1]", "ARGV[2]", "1", "'x'"), w.ttl()
	return w.pick(
		"'get',"+k, "'set',"+k+","+a, "'set',"+k+","+a+",'px',"+ttl, "'set',"+k+","+a+",'nx','px',"+ttl, "'set',"+k+","+a+",'keepttl'",
		"'set',"+k+","+a+",'xx','get','px',"+ttl, "'set',"+k+","+a+",'ex',0", "'setnx',"+k+","+a, "'psetex',"+k+","+ttl+","+a,
		"'getset',"+k+","+a, "'append',"+k+","+a, "'incr',"+k, "'getdel',"+k, "'getex',"+k+",'px',"+ttl, "'getex',"+k+",'persist'",
		"'del',"+k, "'unlink',"+k+","+k2, "'rename',"+k+","+k2, "'renamenx',"+k+","+k2, "'copy',"+k+","+k2, "'copy',"+k+","+k2+",'replace'",
		"'hset',"+k+",'f',"+a, "'hincrby',"+k+",'f',1", "'hdel',"+k+",'f'", "'hget',"+k+",'f'", "'rpush',"+k+","+a, "'lpop',"+k,
		"'rpoplpush',"+k+","+k2, "'sadd',"+k+",1,2", "'srem',"+k+",1", "'smove',"+k+","+k2+",1", "'sunionstore',"+k+","+k+","+k2,
		"'zadd',"+k+",1,'m'", "'zrangestore',"+k+","+k2+",0,-1", "'zpopmin',"+k, "'mset',"+k+","+a+","+k2+",2", "'msetnx',"+k+","+a+","+k2+",2",
		"'pexpire',"+k+","+ttl, "'pexpire',"+k+","+ttl+",'GT'", "'pexpire',"+k+","+ttl+",'NX'", "'pexpire',"+k+",-1", "'pexpireat',"+k+",1",
		"'expire',"+k+",0", "'persist',"+k, "'restore',"+k+",0,redis.call('dump',"+k2+") or 'x','replace'",
		"'restore',"+k+","+ttl+",redis.call('dump',"+k2+") or 'x','replace'", "'publish','ch',"+a, "'object','encoding',"+k,
	)
}

// A putBack is one run.
type putBack struct {
	*testing.T
	w          *lockWriter
	proxy, one *harness.Conn // one is the one Redis
	masters    [3]*harness.Conn
}

// A world is what the three keys are to hold, and for how many ms.
type world [3]struct {
	set []string // a command without its key; nil: the key is not there
	ttl int64
}

// A kept is what a key holds.
type kept struct {
	dump string
	ends int64 // its PEXPIRETIME
}

// A fate is what a script comes to in a world.
type fate struct {
	reply string
	did   string // to each key: . nothing, c created, m changed, e changed the expiry of, d deleted
	after [3]kept
	begun int64
}

// worlds returns what each master is to hold. Some masters differ from the first in nothing, or in one key.
func (b *putBack) worlds() (all [3]world) {
	contents := [][]string{nil, nil, {"SET", "x"}, {"SET", "y"}, {"SET", "5"}, {"HSET", "f", "1"}, {"HSET", "f", "1", "g", "x"}, {"RPUSH", "a", "b"}, {"SADD", "1", "2"}, {"ZADD", "1", "m"}}
	for i := range all {
		all[i] = all[0]
		for k := range all[i] {
			if i == 0 || b.w.rand.IntN(4) == 0 {
				all[i][k].set, all[i][k].ttl = contents[b.w.rand.IntN(len(contents))], int64(7777+100_000*(1+b.w.rand.IntN(9)))
			}
		}
	}
	return all
}

func (b *putBack) do(c *harness.Conn, args ...string) string {
	b.Helper()
	reply, err := c.Do(args...)
	if err != nil {
		b.Fatalf("%q: %v", args, err)
	}
	return string(reply)
}

// make makes the world, with each TTL as lasts says, and returns what the keys hold.
func (b *putBack) make(c *harness.Conn, w world, keys []string, lasts func(int64) int64) [3]kept {
	now := time.Now().UnixMilli()
	for k, name := range keys {
		if set := w[k].set; set != nil {
			b.do(c, append([]string{set[0], name}, set[1:]...)...)
			b.do(c, "PEXPIREAT", name, strconv.FormatInt(now+lasts(w[k].ttl), 10))
		}
	}
	return b.look(c, keys)
}

func (b *putBack) look(c *harness.Conn, keys []string) (all [3]kept) {
	for k, name := range keys {
		all[k].dump, _ = harness.Bulk([]byte(b.do(c, "DUMP", name)))
		all[k].ends, _ = harness.Int([]byte(b.do(c, "PEXPIRETIME", name)))
	}
	return all
}

// foretell runs the script on one Redis in that world.
func (b *putBack) foretell(w world, keys, request []string) (f fate) {
	f.begun = time.Now().UnixMilli()
	before := b.make(b.one, w, keys, func(ttl int64) int64 { return ttl })
	f.reply = withoutDigest(b.do(b.one, request...))
	f.after = b.look(b.one, keys)
	for k, was := range before {
		switch is := f.after[k]; {
		case was == is:
			f.did += "."
		case was.dump == "":
			f.did += "c"
		case is.dump == "":
			f.did += "d"
		case was.dump != is.dump:
			f.did += "m"
		default:
			f.did += "e"
		}
	}
	b.do(b.one, append([]string{"DEL"}, keys...)...)
	return f
}

// withoutDigest leaves out of an error in which script it was raised. Valkey does not say.
func withoutDigest(reply string) string {
	return regexp.MustCompile(` script: [0-9a-f]{40}, on `).ReplaceAllString(reply, " script: on ")
}

// step runs one script.
func (b *putBack) step(n int) {
	keys := []string{fmt.Sprint("k:", n, ":a"), fmt.Sprint("k:", n, ":b"), fmt.Sprint("k:", n, ":c")}
	request := append([]string{"EVAL", b.w.script(), "3"}, append(keys, b.w.pick("x", "y", "1"), b.w.pick("x", "5"))...)
	worlds := b.worlds()
	var fates [3]fate
	for i, w := range worlds {
		fates[i] = b.foretell(w, keys, request)
	}
	wins := func(i int) bool {
		votes := 0
		for _, f := range fates {
			if f.reply == fates[i].reply && f.did == fates[i].did {
				votes++
			}
		}
		return votes >= 2
	}
	keeps := func(i int) bool { // what it did: what those who win did, too
		return slices.ContainsFunc([]int{0, 1, 2}, func(j int) bool { return wins(j) && fates[i].didAs(&fates[j]) })
	}
	begun := time.Now().UnixMilli()
	var before [3][3]kept
	for i, w := range worlds {
		before[i] = b.make(b.masters[i], w, keys, keptFor)
	}
	got, want := withoutDigest(b.do(b.proxy, request...)), "-NOQUORUM "
	for i := range fates {
		if wins(i) {
			want = fates[i].reply
		}
	}
	if !strings.HasPrefix(got, want) {
		b.Errorf("step %d: %q, want %q\n%s\nin %v", n, got, want, request[1], worlds)
	}
	for i, c := range b.masters { // one master may be late
		eventually(b.T, gone, fmt.Sprintf("step %d: what is to be on master %d after\n%s\nin %v", n, i, request[1], worlds), func() error {
			return fates[i].differs(b.look(c, keys), before[i], begun, keeps(i))
		})
		b.do(c, append([]string{"DEL"}, keys...)...)
	}
}

// didAs says that two did the same, whatever they replied: what was created is alike, too.
func (f *fate) didAs(other *fate) bool {
	for k, did := range f.did {
		if did == 'c' && f.after[k].dump != other.after[k].dump {
			return false
		}
	}
	return f.did == other.did
}

// differs says how what a master holds differs from what it should. keeps says that what the master did stays.
func (f *fate) differs(is, before [3]kept, begun int64, keeps bool) error {
	for k := range is {
		want, slack := before[k], int64(0)
		if f.did[k] == 'd' || keeps && f.did[k] != '.' { // what was deleted stays deleted
			want, slack = f.after[k], 3000
			switch {
			case want.ends == -1:
				want.ends = begun + keptFor(putBackTTLMax)
			case want.ends > 0:
				want.ends = begun + keptFor(want.ends-f.begun)
			}
		}
		if is[k].dump != want.dump || max(is[k].ends-want.ends, want.ends-is[k].ends) > slack {
			return fmt.Errorf("key %d has %q until %d, want %q until %d (%s, keeps: %v)", k, is[k].dump, is[k].ends-begun, want.dump, want.ends-begun, f.did, keeps)
		}
	}
	return nil
}
