package resp

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/pubsub"
	"lockproxy/resp/wire"
)

// subscribers waits until the channel has so many; the server owes nobody a signal.
func (r *rig) subscribers(channel string, n int) {
	r.t.Helper()
	c := r.dial()
	defer c.Close()
	waitFor(r.t, fmt.Sprintf("%s has not got %d subscribers", channel, n), func() bool {
		return strings.HasSuffix(c.ask("PUBSUB", "NUMSUB", channel), fmt.Sprintf(":%d\r\n", n))
	})
}

const (
	subscribedA = "3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
	messageA    = "3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n"
)

func TestMessagesComeBetweenRepliesInRESP3(t *testing.T) {
	r := newRig(t, Config{})
	c, other := r.dial(), r.dial()
	c.ask("HELLO", "3")
	c.send(words("SUBSCRIBE a"))
	c.want(">" + subscribedA)
	arrived := r.engine.hold()
	c.send(words("GET k"))
	<-arrived
	r.engine.publish("a", "x") // while GET waits for its outcome
	r.engine.publish("a", "x")
	c.want(">" + messageA + ">" + messageA)
	r.engine.release(0)
	c.want("_\r\n")
	other.send(words("PUBSUB NUMPAT"))
}

// A message of a channel never comes before the confirmation of its subscription.
func TestMessagesWaitForTheConfirmation(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	r.engine.park()
	c.send(words("SUBSCRIBE a"))
	r.subscribers("a", 1)
	r.engine.publish("a", "x")
	c.send(words("UNSUBSCRIBE a"))
	r.subscribers("a", 0)
	r.engine.publish("a", "late")
	r.engine.unpark(nil)
	c.want("*" + subscribedA + "*" + messageA + "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n")
	c.send(words("PING"))
	c.want("+PONG\r\n")
}

// Client libraries subscribe anew by themselves when they have connected anew, and take an error for the end of the matter:
// redis-py, ioredis and go-redis would not hear another message.
func TestWhoSubscribesWithoutAQuorumIsDisconnected(t *testing.T) {
	for _, command := range []string{"SUBSCRIBE b", "PSUBSCRIBE b*", "SSUBSCRIBE b"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Config{})
			c := r.dial()
			c.send(words("SUBSCRIBE a"))
			c.want("*" + subscribedA)
			r.engine.failed = &quorum.NoQuorum{Masters: 3, Answered: 1}
			c.send(words("PING") + words(command) + words("PING"))
			c.want("*2\r\n$4\r\npong\r\n$0\r\n\r\n")
			c.wantEnd()
			r.subscribers("a", 0)
		})
	}
}

func TestALockBehindASubscriptionThatEndsTheConnectionIsAbandoned(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.engine.failed = &quorum.NoQuorum{Masters: 3, Answered: 1}
	c := r.dial()
	c.send(words("HELLO 3"))
	c.reply()
	c.send(words("SUBSCRIBE b") + words("SET k me NX PX 30000"))
	c.wantEnd()
	<-r.engine.onlyLock(t).abandoned
}

func TestASubscriptionThatMastersRefuseIsAnErrorAndLeavesTheClientAsItWas(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	c.send(words("SUBSCRIBE a"))
	c.want("*" + subscribedA)
	r.engine.failed = &pubsub.Refused{NoQuorum: &quorum.NoQuorum{Masters: 3, Answered: 1}}
	c.send(words("SUBSCRIBE b c a"))
	c.want("-NOQUORUM 1 of 3 masters answered, 2 needed\r\n")
	r.engine.failed = nil
	c.send(words("PSUBSCRIBE p"))
	c.want("*3\r\n$10\r\npsubscribe\r\n$1\r\np\r\n:2\r\n")
	c.send(words("RESET") + words("SUBSCRIBE") + words("PING"))
	c.want("+RESET\r\n-ERR wrong number of arguments for 'subscribe' command\r\n+PONG\r\n")
	r.engine.park()
	c.send(words("SUBSCRIBE a"))
	r.subscribers("a", 1)
	r.engine.unpark(&pubsub.Refused{NoQuorum: &quorum.NoQuorum{Masters: 3, Answered: 1}})
	c.want("-NOQUORUM 1 of 3 masters answered, 2 needed\r\n")
	c.send(words("PING"))
	c.want("+PONG\r\n")
}

func TestAMessageThatNoQuorumHasIsAnErrorToItsPublisher(t *testing.T) {
	r := newRig(t, Config{})
	r.engine.err = &quorum.NoQuorum{Masters: 3, Answered: 1}
	for _, request := range []string{"PUBLISH a x", "PUBSUB NUMSUB a", "PUBSUB CHANNELS", "PUBSUB NUMPAT"} {
		c := r.dial()
		c.send(words(request))
		c.want("-NOQUORUM 1 of 3 masters answered, 2 needed\r\n")
	}
}

func TestChannelsOfOurOwnCannotBePublishedTo(t *testing.T) {
	r := newRig(t, Config{})
	if got := r.dial().ask("PUBLISH", "lockproxy:shard:x", "m"); !strings.HasPrefix(got, "-ERR channels that begin with lockproxy:") {
		t.Errorf("got %q", got)
	}
}

// Matching takes its time where patterns and names are long. No lane, for which all clients would wait, does that.
func TestWhatMastersListIsMatchedByTheWriter(t *testing.T) {
	s, conn := bareSession(newFakeEngine(), "", 1000)
	matched := false
	poll(&s.call, []any{"PUBSUB", "CHANNELS"}, func([]any) Reply {
		matched = true
		return Int(1)
	})
	if matched {
		t.Error("it is matched where the engine's callback is called")
	}
	s.stop("")
	s.writer.run()
	if got := conn.out.String(); got != ":1\r\n" {
		t.Errorf("wrote %q", got)
	}
}

// Masters list all channels at one go, and nothing else meanwhile.
func TestChannelsAreNotListedWhereThereAreTooMany(t *testing.T) {
	for _, request := range [][]string{{"PUBSUB", "CHANNELS"}, {"PUBSUB", "CHANNELS", "a*"}, {"PUBSUB", "SHARDCHANNELS"}} {
		r := newRig(t, Config{})
		r.engine.channels = channelsMax + 1
		if got := r.dial().ask(request...); !strings.HasPrefix(got, "-ERR a master has 10001 channels, and 10000 are listed at most") {
			t.Errorf("%q: %q", request, got)
		}
		if got := r.dial().ask("PUBSUB", "NUMSUB", "a"); strings.HasPrefix(got, "-") {
			t.Errorf("NUMSUB: %q", got)
		}
	}
}

func TestPatternsToSearchByAreBounded(t *testing.T) {
	c := newRig(t, Config{}).dial()
	for size, want := range map[int]string{wire.PatternMax: "*0\r\n", wire.PatternMax + 1: "-ERR the pattern has more than 256 bytes; use a shorter one\r\n"} {
		if got := c.ask("PUBSUB", "CHANNELS", strings.Repeat("a", size)); got != want {
			t.Errorf("%d bytes: %q", size, got)
		}
	}
}

func TestAClientThatLeavesLeavesItsChannels(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*client){
		"hangs up": func(c *client) { _ = c.Close() },
		"QUIT":     func(c *client) { c.send(words("QUIT")) },
		"RESET":    func(c *client) { c.send(words("RESET")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			c := r.dial()
			c.send(words("SUBSCRIBE a") + words("PSUBSCRIBE a") + words("SSUBSCRIBE a"))
			r.subscribers("a", 1)
			leave(c)
			r.subscribers("a", 0)
			awaitNothingHeld(t, r)
		})
	}
}

func TestAClientThatDoesNotReadItsMessagesIsCutOff(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Output: 1 << 20}})
	slow, quick := r.dial(), r.dial()
	for _, c := range []*client{slow, quick} {
		c.send(words("SUBSCRIBE a"))
		c.want("*" + subscribedA)
	}
	text := strings.Repeat("x", 100_000)
	for range 1000 {
		r.engine.publish("a", text)
		quick.reply()
		if r.server.Stats().Clients == 1 {
			break
		}
	}
	r.subscribers("a", 1)
}

// Small messages hold more memory than their text.
func TestManySmallMessagesAreBounded(t *testing.T) {
	s, conn := bareSession(newFakeEngine(), "", 0)
	defer conn.Close()
	limit := s.server.cfg.Limits.Output
	for range limit/messageOverhead + 1 {
		s.subscriptions.Deliver(pubsubMessage("a", ""))
	}
	if !s.replies.gone {
		t.Errorf("%d bytes wait, and the client is still there", s.replies.backlog.outBytes.Load())
	}
	if int(s.replies.backlog.outBytes.Load())+2*messageOverhead < limit {
		t.Errorf("cut off when %d bytes waited", s.replies.backlog.outBytes.Load())
	}
}

func TestAnIdleSubscriberIsNotTimedOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{Limits: Limits{Idle: 500 * time.Millisecond}})
	c := r.dial()
	c.send(words("SUBSCRIBE a"))
	c.want("*" + subscribedA)
	r.dial().wantEnd()
	r.engine.publish("a", "x")
	c.want("*" + messageA)
}

func TestSubscriptionsCountAgainstTheMemoryLimit(t *testing.T) {
	log := &logged{}
	r := newRig(t, Config{Limits: Limits{Memory: 1 << 20, Input: 1 << 20, Args: 1 << 20}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	c := r.dial()
	var names strings.Builder
	for i := range 5000 {
		names.WriteString(" name-" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/26))
	}
	c.send(words("SUBSCRIBE" + names.String()))
	c.want("-ERR lockproxy holds as much for its clients as max_memory allows; try again later, or raise it\r\n")
	c.wantEnd()
	waitFor(t, "the log does not say that memory is spent", func() bool {
		return strings.Contains(log.String(), `level=WARN msg="max_memory is spent: clients are refused" `)
	})
	if n := r.server.Stats().MemoryRefused; n != 1 {
		t.Errorf("counted %d", n)
	}
	r.subscribers("name-a", 0)
}
