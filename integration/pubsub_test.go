package integration

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockproxy/integration/harness"
)

// A talk is what one client sends, in order, and how many replies each request has. Its messages come from a second
// client, which publishes between.
var talks = map[string][]struct {
	request string
	replies int
}{
	"subscribe mode": {
		{"SUBSCRIBE a a b", 3}, {"GET x", 1}, {"GET", 1}, {"FOO", 1}, {"PING", 1}, {"PING x", 1}, {"PING x y", 1}, {"HELLO 2", 1},
		{"CLIENT ID", 1}, {"CLIENT NOSUCH", 1}, {"> a m", 1}, {"> b -", 1}, {"> c m", 0}, {"UNSUBSCRIBE b", 1}, {"> b m", 0}, {"UNSUBSCRIBE", 1}, {"UNSUBSCRIBE", 1},
		{"UNSUBSCRIBE x y", 2}, {"> a m", 0}, {"GET x", 1},
	},
	"patterns": {
		{"PSUBSCRIBE a* a*", 2}, {"PSUBSCRIBE [ab]?", 1}, {"SUBSCRIBE ax", 1}, {"> ax m", 3}, {"> ay m", 2}, {"> bz m", 1}, {"> b m", 0}, {"PUNSUBSCRIBE nothing a*", 2},
		{"> ay m", 1}, {"PING", 1}, {"PUNSUBSCRIBE", 1}, {"PUNSUBSCRIBE", 1}, {"PING", 1}, {"UNSUBSCRIBE", 1}, {"PING", 1},
	},
	"sharded": {
		{"SSUBSCRIBE s t", 2}, {"SUBSCRIBE s", 1}, {"PSUBSCRIBE *", 1}, {">> s m", 1}, {"> s m", 2}, {"> t m", 1}, {"GET x", 1}, {"UNSUBSCRIBE", 1},
		{"PUNSUBSCRIBE", 1}, {"SUNSUBSCRIBE s", 1}, {">> s m", 0}, {"SUNSUBSCRIBE", 1}, {"SUNSUBSCRIBE", 1},
	},
	"RESP3": {
		{"HELLO 3", -1}, {"SUBSCRIBE a b", 2}, {"PSUBSCRIBE a*", 1}, {"> a m", 2}, {"GET x", 1}, {"PING", 1}, {"PING x", 1}, {"PUBLISH nobody m", 1},
		{"UNSUBSCRIBE a c", 2}, {"> a m", 1}, {"PUNSUBSCRIBE", 1}, {"UNSUBSCRIBE", 1}, {"UNSUBSCRIBE", 1}, {"SSUBSCRIBE s", 1}, {">> s m", 1}, {"RESET", 1},
		{">> s m", 0}, {"PING", 1},
	},
	"from RESP3 to RESP2": {{"HELLO 3", -1}, {"SUBSCRIBE a", 1}, {"HELLO 2", -1}, {"GET x", 1}, {"PING", 1}, {"> a m", 1}, {"RESET", 1}, {"> a m", 0}, {"GET x", 1}},
	"silence":             {{"CLIENT REPLY OFF", 0}, {"SUBSCRIBE a", 1}, {"> a m", 1}, {"PING", 0}, {"UNSUBSCRIBE", 1}, {"CLIENT REPLY ON", 1}},
	"the empty channel":   {{"PSUBSCRIBE *", 1}, {`> "" m`, 0}, {`SUBSCRIBE ""`, 1}, {`> "" m`, 1}, {"PUNSUBSCRIBE", 1}, {"UNSUBSCRIBE", 1}},
	"the empty pattern": {
		{`PSUBSCRIBE ""`, 1}, {`> "" m`, 1}, {"> a m", 0}, {`SUBSCRIBE ""`, 1}, {`> "" m`, 2}, {`PUNSUBSCRIBE ""`, 1}, {`> "" m`, 1},
		{`PSUBSCRIBE ""`, 1}, {"UNSUBSCRIBE", 1}, {`> "" m`, 1}, {"PUNSUBSCRIBE", 1},
	},
	"who listens to the empty channel": {{"HELLO 3", -1}, {`SUBSCRIBE ""`, 1}, {"PUBSUB CHANNELS", 1}, {"PUBSUB CHANNELS *", 1}},
	"QUIT":                             {{"SUBSCRIBE a", 1}, {"QUIT", 1}},
	"errors": {
		{"SUBSCRIBE", 1}, {"PSUBSCRIBE", 1}, {"SSUBSCRIBE", 1}, {"PUBLISH a", 1}, {"PUBLISH a b c", 1}, {"SPUBLISH a", 1}, {"PUBSUB", 1}, {"PUBSUB FOO", 1},
		{"PUBSUB CHANNELS a b", 1}, {"PUBSUB SHARDCHANNELS a b", 1}, {"PUBSUB NUMPAT x", 1}, {"PUBSUB NUMSUB", 1}, {"COMMAND GETKEYS SPUBLISH a b", 1},
	},
	"who listens": {
		{"PUBSUB CHANNELS", 1}, {"PUBSUB NUMSUB a b", 1}, {"PUBSUB NUMPAT", 1}, {"HELLO 3", -1}, {"SUBSCRIBE a", 1}, {"PSUBSCRIBE *", 1}, {"SSUBSCRIBE s", 1}, {"PUBSUB CHANNELS", 1},
		{"PUBSUB CHANNELS b*", 1}, {"PUBSUB NUMSUB a b", 1}, {"PUBSUB NUMPAT", 1}, {"PUBSUB SHARDCHANNELS", 1}, {"PUBSUB SHARDNUMSUB s a", 1}, {"COMMAND INFO publish", 1}},
}

func TestSubscribersAreAnsweredAsByOneRedis(t *testing.T) {
	for _, n := range []int{1, 3} {
		tw := startTwin(t, n)
		for name, talk := range talks {
			t.Run(fmt.Sprintf("%d masters/%s", n, name), func(t *testing.T) {
				eventually(t, cleanMax, "nobody listens", nobodyListens(tw.masters))
				o := &talker{dial(t, tw.oracle.Addr), dial(t, tw.oracle.Addr)}
				p := &talker{dial(t, tw.proxy.Addr), dial(t, tw.proxy.Addr)}
				for _, step := range talk {
					want, err := o.say(step.request, step.replies)
					if err != nil {
						t.Fatalf("%s: the oracle: %v", step.request, err)
					}
					got, err := p.say(step.request, step.replies)
					if err != nil || step.replies > 0 && got != want {
						t.Fatalf("%s: got %q, %v, want %q", step.request, got, err, want)
					}
					if strings.Contains(step.request, "UNSUBSCRIBE") {
						eventually(t, cleanMax, "masters forget it, too", listenAlike(tw.oracle, tw.masters))
					}
				}
				if name == "QUIT" {
					if err := p.reader.ExpectClosed(); err != nil {
						t.Error(err)
					}
					return
				}
				want, _ := o.say("PING last", 1)
				if got, err := p.say("PING last", 1); err != nil || got != want {
					t.Errorf("then: got %q, %v, want %q", got, err, want)
				}
			})
		}
	}
}

// listenAlike returns an error while any of the masters has more subscriptions than the oracle, or fewer.
func listenAlike(oracle *harness.Redis, masters []*harness.Redis) func() error {
	return func() error {
		want, err := subscriptions(oracle)
		for _, m := range masters {
			var got string
			if got, err = subscriptions(m); err == nil && got != want {
				err = fmt.Errorf("%s: %s subscriptions, the oracle has %s", m.Addr, got, want)
			}
			if err != nil {
				return err
			}
		}
		return err
	}
}

// subscriptions counts the channels, sharded or not, and the patterns of a server.
func subscriptions(r *harness.Redis) (string, error) {
	names := 0
	for _, kind := range []string{"CHANNELS", "SHARDCHANNELS"} {
		reply, err := r.Do(0, "PUBSUB", kind)
		if err != nil {
			return "", err
		}
		if list, err := harness.Strings(reply); err == nil { // Redis 6.2 knows of no sharded ones
			names += len(list)
		}
	}
	patterns, err := r.Do(0, "PUBSUB", "NUMPAT")
	return fmt.Sprintf("%d+%q", names, patterns), err
}

// nobodyListens returns an error while any of the masters has subscriptions: what a client takes back is forgotten by the
// proxy at once, and by masters a little later.
func nobodyListens(masters []*harness.Redis) func() error {
	return func() error {
		for _, m := range masters {
			channels, err1 := m.Do(0, "PUBSUB", "CHANNELS")
			patterns, err2 := m.Do(0, "PUBSUB", "NUMPAT")
			if err1 != nil || err2 != nil || string(channels)+string(patterns) != "*0\r\n:0\r\n" {
				return fmt.Errorf("%s: %q, %q", m.Addr, channels, patterns)
			}
		}
		return nil
	}
}

// A talker is a client, and another that publishes.
type talker struct{ reader, publisher *harness.Conn }

// say sends a request, and returns its replies and the messages that come of it. Of messages, the order is that of the
// server's hash table, and means nothing.
func (c *talker) say(request string, replies int) (string, error) {
	words := strings.Fields(request)
	for i, word := range words {
		words[i] = strings.Trim(word, `"`) // "" is the empty one
	}
	var all []string
	switch words[0] {
	case ">", ">>":
		words[0] = map[string]string{">": "PUBLISH", ">>": "SPUBLISH"}[words[0]]
		reply, err := c.publisher.Do(words...)
		if err != nil {
			return "", err
		}
		all = append(all, string(reply))
	default:
		if err := c.reader.Send(harness.Encode(nil, words...)); err != nil {
			return "", err
		}
	}
	for range max(replies, -replies) {
		reply, err := c.reader.Reply()
		if err != nil {
			return strings.Join(all, ""), err
		}
		all = append(all, string(reply))
	}
	if request[0] == '>' {
		slices.Sort(all)
	}
	return strings.Join(all, ""), nil
}

// A listener counts the messages that one client got.
type listener struct {
	sub *redis.PubSub
	mu  sync.Mutex
	got map[string]int
}

func listen(t testing.TB, addr string, protocol int, channels ...string) *listener {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol})
	l := &listener{sub: client.Subscribe(t.Context(), channels...), got: map[string]int{}}
	if _, err := l.sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	messages := l.sub.Channel(redis.WithChannelSize(1 << 16))
	go func() {
		defer close(done)
		for m := range messages {
			l.mu.Lock()
			l.got[m.Payload]++
			l.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_, _ = l.sub.Close(), client.Close()
		<-done
	})
	return l
}

// count returns how often the payload came.
func (l *listener) count(payload string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got[payload]
}

// proxiesListen returns an error unless every master has the channel's subscriptions of so many proxies.
func proxiesListen(channel string, proxies int, masters ...*harness.Redis) func() error {
	return func() error {
		want := fmt.Sprintf("*2\r\n$%d\r\n%s\r\n:%d\r\n", len(channel), channel, proxies)
		for _, m := range masters {
			if reply, err := m.Do(0, "PUBSUB", "NUMSUB", channel); err != nil || string(reply) != want {
				return fmt.Errorf("%s: %q, %v", m.Addr, reply, err)
			}
		}
		return nil
	}
}

// Two proxies publish while each master in turn is killed and restarted, or stopped for a while. Whatever was published,
// as its reply says, comes to the clients of both, once. What was answered with an error may come, once.
func TestMessagesArriveOnceWhileMastersComeAndGo(t *testing.T) {
	masters := startMasters(t, 3)
	proxies := []*harness.Proxy{startProxy(t, harness.Addrs(masters)), startProxy(t, harness.Addrs(masters))}
	listeners := []*listener{listen(t, proxies[0].Addr, 2, "news"), listen(t, proxies[1].Addr, 3, "news")}
	ready := proxiesListen("news", 2, masters...)
	eventually(t, harness.DrainMax, "both proxies listen to all masters", ready)

	var stop atomic.Bool
	var published sync.Map // payload: whether its reply was no error
	var publishers sync.WaitGroup
	for i, p := range proxies {
		client := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1, ReadTimeout: cleanMax})
		defer client.Close()
		for j := range 3 {
			publishers.Go(func() {
				for n := 0; !stop.Load(); n++ {
					payload := fmt.Sprintf("%d-%d-%d", i, j, n)
					published.Store(payload, client.Publish(context.Background(), "news", payload).Err() == nil)
				}
			})
		}
	}
	faults := []func(*harness.Redis) error{
		(*harness.Redis).Restart,
		func(r *harness.Redis) error {
			defer func() { _ = r.Resume() }()
			err := r.Pause()
			time.Sleep(300 * time.Millisecond) // how long the fault lasts
			return err
		},
	}
	for _, fault := range faults {
		for _, m := range masters {
			if err := fault(m); err != nil {
				t.Fatal(err)
			}
			eventually(t, harness.DrainMax, "both proxies listen to all masters again", ready)
		}
	}
	stop.Store(true)
	publishers.Wait()

	for i, l := range listeners {
		eventually(t, cleanMax, fmt.Sprintf("client %d has all messages", i), func() error {
			lost := 0
			published.Range(func(payload, ok any) bool {
				if ok.(bool) && l.count(payload.(string)) == 0 {
					lost++
				}
				return true
			})
			if lost > 0 {
				return fmt.Errorf("%d messages are lost", lost)
			}
			return nil
		})
		total, failed := 0, 0
		published.Range(func(payload, ok any) bool {
			total++
			if !ok.(bool) {
				failed++
			}
			if n := l.count(payload.(string)); n > 1 {
				t.Errorf("client %d got %v %d times", i, payload, n)
			}
			return true
		})
		t.Logf("client %d: %d messages, of which %d answered with an error", i, total, failed)
		if total < 100 || failed > total/10 {
			t.Errorf("%d messages, %d with an error", total, failed)
		}
	}
}

// Alike messages are as many as were published.
func TestMessagesThatAreAlikeAllArrive(t *testing.T) {
	masters := startMasters(t, 3)
	proxies := []*harness.Proxy{startProxy(t, harness.Addrs(masters)), startProxy(t, harness.Addrs(masters))}
	l := listen(t, proxies[1].Addr, 3, "news")
	eventually(t, harness.DrainMax, "the proxy listens to all masters", proxiesListen("news", 1, masters...))
	const each = 500
	together(4, func(i int) {
		c := dial(t, proxies[i%2].Addr)
		for range each {
			if reply, err := c.Do("PUBLISH", "news", "0"); err != nil || string(reply) != ":1\r\n" {
				t.Errorf("PUBLISH: %q, %v", reply, err)
			}
		}
	})
	eventually(t, cleanMax, "all arrive", func() error {
		if n := l.count("0"); n != 4*each {
			return fmt.Errorf("%d of %d", n, 4*each)
		}
		return nil
	})
}

func TestASubscriptionNeedsAQuorumOfMasters(t *testing.T) {
	masters := startMasters(t, 3)
	proxy := startProxy(t, harness.Addrs(masters))
	c := dial(t, proxy.Addr)
	masters[0].Kill()
	expect(t, c, "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", "SUBSCRIBE", "a")
	masters[1].Kill()
	eventually(t, cleanMax, "the proxy notices", func() error {
		if reply, err := dial(t, proxy.Addr).Do("SUBSCRIBE", "b"); !errors.Is(err, io.EOF) {
			return fmt.Errorf("got %q, %v", reply, err)
		}
		return nil
	})
	for _, m := range masters[:2] {
		if err := m.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, cleanMax, "the proxy listens to all masters", proxiesListen("a", 1, masters...))
	publisher := dial(t, proxy.Addr)
	eventually(t, cleanMax, "a quorum votes again", func() error {
		reply, err := publisher.Do("PUBLISH", "a", "x")
		if err == nil && string(reply) != ":1\r\n" {
			err = fmt.Errorf("got %q", reply)
		}
		return err
	})
	got, err := c.Reply()
	if want := "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// deleteAndPublish is how lock libraries wake those that wait for the lock.
const deleteAndPublish = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], 'free')
return 1`

// A message published by the script that releases a lock comes when a quorum has released it: whoever is woken by it
// finds the lock free, through any proxy.
func TestWhoIsWokenByAReleaseFindsTheLockFree(t *testing.T) {
	masters := startMasters(t, 3)
	proxies := []*harness.Proxy{startProxy(t, harness.Addrs(masters)), startProxy(t, harness.Addrs(masters))}
	holder, waiter, woken := dial(t, proxies[0].Addr), dial(t, proxies[1].Addr), dial(t, proxies[1].Addr)
	expect(t, woken, "*3\r\n$9\r\nsubscribe\r\n$4\r\nwake\r\n:1\r\n", "SUBSCRIBE", "wake")
	for i := range 300 {
		name := fmt.Sprintf("job-%d", i)
		expect(t, holder, "+OK\r\n", "SET", name, "me", "NX", "PX", "30000")
		expect(t, waiter, "$-1\r\n", "SET", name, "you", "NX", "PX", "30000")
		if err := holder.Send(harness.Encode(nil, "EVAL", deleteAndPublish, "2", name, "wake", "me")); err != nil {
			t.Fatal(err)
		}
		got, err := woken.Reply()
		if want := "*3\r\n$7\r\nmessage\r\n$4\r\nwake\r\n$4\r\nfree\r\n"; err != nil || string(got) != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
		expect(t, waiter, "+OK\r\n", "SET", name, "you", "NX", "PX", "30000")
		if got, err := holder.Reply(); err != nil || string(got) != ":1\r\n" {
			t.Fatalf("EVAL: %q, %v", got, err)
		}
	}
	expect(t, woken, "*2\r\n$4\r\npong\r\n$0\r\n\r\n", "PING")
}

func TestRedisCliSubscribes(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		missing(t, "LOCKPROXY_REQUIRE_REDIS", "redis-cli is not installed")
	}
	masters := startMasters(t, 3)
	proxies := []*harness.Proxy{startProxy(t, harness.Addrs(masters)), startProxy(t, harness.Addrs(masters))}
	for _, protocol := range []string{"-2", "-3"} {
		_, port, _ := net.SplitHostPort(proxies[0].Addr)
		cli := exec.Command("redis-cli", protocol, "-p", port, "PSUBSCRIBE", "new*")
		out, err := cli.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cli.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		read := func(want ...string) {
			t.Helper()
			for _, w := range want {
				if !lines.Scan() || lines.Text() != w {
					t.Fatalf("redis-cli %s: got %q, want %q", protocol, lines.Text(), w)
				}
			}
		}
		read("psubscribe", "new*", "1")
		for range 2 {
			expect(t, dial(t, proxies[1].Addr), ":1\r\n", "PUBLISH", "news", "0")
		}
		read("pmessage", "new*", "news", "0", "pmessage", "new*", "news", "0")
		_ = cli.Process.Kill()
		_ = cli.Wait()
		eventually(t, cleanMax, "the proxy notices that it left", nobodyListens(masters))
	}
}
