package integration

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// differentialSteps is how many random commands one run sends.
const differentialSteps = 4000

// TestRandomSequencesAnswerAsOneRedis compares random commands on a few keys and tokens with the oracle. A failure
// prints its seed; LOCKPROXY_SEED=… plays it again.
func TestRandomSequencesAnswerAsOneRedis(t *testing.T) {
	requireRedis(t)
	seed := seed(t)
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprintf("%d masters", n), func(t *testing.T) {
			t.Logf("LOCKPROXY_SEED=%d", seed)
			tw := startTwin(t, n)
			g := &generator{rand: rand.New(rand.NewPCG(seed, uint64(n)))}
			g.o, g.p = dial(t, tw.oracle.Addr), dial(t, tw.proxy.Addr)
			var history []string
			for i := range differentialSteps {
				start := time.Now()
				request, loose := g.next()
				history = append(history, fmt.Sprintf("%q", request))
				raw := harness.Encode(nil, request...)
				if err := g.o.Send(raw); err != nil {
					t.Fatal(err)
				}
				if err := g.p.Send(raw); err != nil {
					t.Fatal(err)
				}
				comparePair(t, fmt.Sprintf("step %d", i), request, loose, g.o, g.p, start.Add(-g.skew))
				g.skew = max(g.skew, time.Since(start))
				if t.Failed() {
					t.Fatalf("LOCKPROXY_SEED=%d; the commands before were %v", seed, history[max(0, i-12):])
				}
			}
		})
	}
}

// A generator makes random commands from the supported set. Its keys always have a TTL of a minute or more, so that
// none expires while it is compared, and keys without one, which differ by design, do not occur.
type generator struct {
	rand *rand.Rand
	o, p *harness.Conn
	skew time.Duration // the longest step so far: how far apart a TTL can have been set on the two
}

func (g *generator) pick(from ...string) string { return from[g.rand.IntN(len(from))] }

func (g *generator) key() string {
	return "d:" + g.pick("a", "b", "", "\x00\xff", "long-name-of-a-resource")
}

func (g *generator) token() string { return g.pick("me", "you", "", "1", "\r\n\x00", "token-3") }

// ttl returns a TTL in ms. They lie far apart, so that GT and LT do not hang on the time that passed.
func (g *generator) ttl() string {
	return strconv.Itoa(200_000 + 300_000*g.rand.IntN(10))
}

func (g *generator) seconds() string { return strconv.Itoa(200 + 300*g.rand.IntN(10)) }

// next returns a command and how its reply is compared.
func (g *generator) next() (request []string, loose string) {
	switch g.rand.IntN(16) {
	case 0, 1, 2:
		return g.set(), ""
	case 3:
		return []string{g.pick("GET", "get", "TYPE", "STRLEN"), g.key()}, ""
	case 4:
		return []string{g.pick("PTTL", "PEXPIRETIME"), g.key()}, "ttl"
	case 5:
		return []string{g.pick("TTL", "EXPIRETIME"), g.key()}, "ttl_s"
	case 6:
		return []string{"EXISTS", g.key(), g.key(), g.key()}, ""
	case 7:
		return []string{g.pick("DEL", "UNLINK"), g.key(), g.key()}, ""
	case 8, 9:
		return g.expire(), ""
	case 10, 11:
		return []string{"EVAL", compareAndDelete, "1", g.key(), g.token()}, ""
	case 12, 13:
		return []string{"EVAL", compareAndExpire, "1", g.key(), g.token(), g.ttl()}, ""
	case 14:
		if g.rand.IntN(2) == 0 {
			return []string{"SETEX", g.key(), g.seconds(), g.token()}, ""
		}
		return []string{"PSETEX", g.key(), g.ttl(), g.token()}, ""
	}
	return []string{"SELECT", g.pick("0", "0", "1", "7", "16", "-1", "x")}, ""
}

// set returns a SET with a TTL and with options in a random order, some of which exclude each other.
func (g *generator) set() []string {
	options := [][]string{{g.pick("PX", "px"), g.ttl()}}
	if g.rand.IntN(3) == 0 {
		options[0] = []string{"EX", g.seconds()}
	}
	switch g.rand.IntN(8) {
	case 0:
		options = append(options, []string{"XX"})
	case 1:
		options = append(options, []string{"XX"}, []string{"GET"})
	case 2:
		options = append(options, []string{"NX"}, []string{"GET"})
	case 3:
		options = append(options, []string{"GET"})
	case 4:
		options = append(options, []string{g.pick("KEEPTTL", "FOO", "XX")}, []string{g.pick("NX", "nx")})
	case 5:
	default:
		options = append(options, []string{g.pick("NX", "nx", "Nx")})
	}
	g.rand.Shuffle(len(options), func(i, j int) { options[i], options[j] = options[j], options[i] })
	request := []string{"SET", g.key(), g.token()}
	for _, o := range options {
		request = append(request, o...)
	}
	return request
}

func (g *generator) expire() []string {
	request := []string{"PEXPIRE", g.key(), g.ttl()}
	switch g.rand.IntN(4) {
	case 0:
		request = []string{"EXPIRE", g.key(), g.seconds()}
	case 1:
		request = append(request, g.pick("NX", "XX", "NX XX", "FOO"))
	case 2:
		// Any number: that it equals what is there, to the few ms in which the two differ, is not to be expected.
		request[2] = strconv.Itoa(250_000 + g.rand.IntN(3_000_000))
		request = append(request, g.pick("GT", "LT", "gt", "lt"))
	case 3:
		if g.rand.IntN(3) == 0 {
			request[2] = g.pick("0", "-1", "x", "9223372036854775807")
		}
	}
	return request
}
