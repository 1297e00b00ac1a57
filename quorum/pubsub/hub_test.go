package pubsub

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"lockproxy/quorum"
	"lockproxy/quorum/masters"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	news     = Topic{Channel, "news"}
	allNews  = Topic{Pattern, "n*"}
	shard    = Topic{Shard, "news"}
	patience = 100 * time.Millisecond
)

func TestEachSubscriberGetsEachMessageOnce(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		a, b, p := &reader{}, &reader{}, &reader{}
		w.mustSubscribe(a, news)
		w.mustSubscribe(b, news, Topic{Channel, "other"})
		w.mustSubscribe(p, allNews)
		w.publish("news", "0", 0, 1, 2)
		w.publish("news", "0", 2, 1, 0)
		w.publish("other", "x", 0, 1, 2)
		w.want(a, "news=0", "news=0")
		w.want(b, "news=0", "news=0", "other=x")
		w.want(p, "n*:news=0", "n*:news=0")
		w.Unsubscribe(a, []Topic{news})
		w.publish("news", "1", 0, 1, 2)
		w.want(a)
		w.want(b, "news=1")
	})
}

func TestShardedChannelsHaveNamesOfTheirOwn(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		a, b, p := &reader{}, &reader{}, &reader{}
		w.mustSubscribe(a, news)
		w.mustSubscribe(b, shard)
		w.mustSubscribe(p, Topic{Pattern, "*"})
		w.publish(quorum.ShardPrefix+"news", "s", 0, 1, 2)
		w.want(a)
		w.want(b, "news=s")
		w.want(p)
	})
}

func TestWhatHasNoEnvelopeIsNotDelivered(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		a := &reader{}
		w.mustSubscribe(a, news)
		w.masters[0].publish("news", "0")
		w.publish("news", "1", 0)
		w.want(a, "news=1")
	})
}

func TestMastersAreAskedForATopicOnceAndToldWhenTheLastLeaves(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		a, b := &reader{}, &reader{}
		w.mustSubscribe(a, news)
		w.mustSubscribe(b, news)
		w.mustSubscribe(b, news)
		w.Unsubscribe(a, []Topic{news})
		synctest.Wait()
		if on, off := w.masters[0].count(masters.Subscribe, "news"), w.masters[0].count(masters.Unsubscribe, "news"); on != 1 || off != 0 {
			t.Errorf("%d subscriptions, %d taken back", on, off)
		}
		w.Unsubscribe(b, []Topic{news})
		w.Unsubscribe(b, []Topic{news})
		synctest.Wait()
		if off := w.masters[0].count(masters.Unsubscribe, "news"); off != 1 || len(w.topics) != 0 {
			t.Errorf("%d taken back, %d topics", off, len(w.topics))
		}
	})
}

func TestASubscriptionIsConfirmedByAQuorum(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		a := &reader{}
		w.masters[0].set(func(f *fake) { f.stalled = true })
		w.masters[1].set(func(f *fake) { f.lag = 30 * time.Millisecond })
		began := time.Now()
		w.mustSubscribe(a, news, allNews)
		if d := time.Since(began); d != 30*time.Millisecond {
			t.Errorf("confirmed after %v", d)
		}
	})
}

func TestASubscriptionThatNoQuorumConfirmsIsTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*fake)
		after time.Duration
		text  string
		final bool
	}{
		"stalled": {func(f *fake) { f.stalled = true }, 5 * time.Second,
			"m2 did not answer within 5s; m3 did not answer within 5s", false},
		"refused": {func(f *fake) { f.deny = "news" }, 0,
			"m2 answered NOPERM no; m3 answered NOPERM no", true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				a, b := &reader{}, &reader{}
				other := Topic{Channel, "other"}
				w.mustSubscribe(a, other)
				w.masters[1].set(c.fault)
				w.masters[2].set(c.fault)
				second := make(chan error, 1)
				began := time.Now()
				done := make(chan error, 1)
				w.Subscribe(a, []Topic{other, news}, func(err error) { done <- err })
				w.Subscribe(b, []Topic{news}, func(err error) { second <- err })
				err := <-done
				if d := time.Since(began); err == nil || !strings.HasPrefix(err.Error(), "NOQUORUM ") || !strings.HasSuffix(err.Error(), c.text) || d != c.after {
					t.Errorf("after %v: %v", d, err)
				}
				if _, final := err.(*Refused); final != c.final {
					t.Errorf("to ask again does not help: %v", final)
				}
				if err := <-second; err == nil {
					t.Error("the second was confirmed")
				}
				w.mu.Lock()
				if len(w.topics) != 1 || w.topics[other] == nil {
					t.Errorf("the topics are %v", w.topics)
				}
				w.mu.Unlock()
			})
		})
	}
}

func TestWhenMastersAreDownASubscriptionFailsAtOnce(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, m := range w.masters[:2] {
			m.set(func(f *fake) { f.refuse = true })
			m.cut()
		}
		time.Sleep(time.Second)
		began := time.Now()
		err := w.subscribe(&reader{}, news)
		want := "NOQUORUM 1 of 3 masters answered, 2 needed: m1 connection refused; m2 connection refused"
		if err == nil || err.Error() != want || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		w.masters[2].set(func(f *fake) { f.refuse = true })
		w.masters[2].cut()
		time.Sleep(time.Second)
		if err := w.subscribe(&reader{}, news); err == nil {
			t.Error("nobody has confirmed it")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if n := len(w.leaving); n > 0 {
			t.Errorf("%d subscriptions are still to be left, of which no master was told", n)
		}
	})
}

func TestASubscriptionThatWaitsFailsWhenItsMastersGoDown(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, m := range w.masters[:2] {
			m.set(func(f *fake) { f.stalled = true })
		}
		done := make(chan error, 1)
		w.Subscribe(&reader{}, []Topic{news}, func(err error) { done <- err })
		began := time.Now()
		for _, m := range w.masters[:2] {
			m.set(func(f *fake) { f.refuse = true })
			m.cut()
		}
		if err := <-done; err == nil || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// One master after the other breaks and comes back; of each message a quorum of copies is sent, and one at least heard.
func TestNoMessageIsLostWhileMastersComeAndGo(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		a := &reader{}
		w.mustSubscribe(a, news)
		for down := range w.masters {
			m := w.masters[down]
			m.set(func(f *fake) { f.refuse = true })
			m.cut()
			others := []int{(down + 1) % 3, (down + 2) % 3}
			w.publish("news", "1", others...)
			w.want(a, "news=1")
			time.Sleep(time.Second)
			w.publish("news", "2", others...)
			w.want(a, "news=2")
			m.set(func(f *fake) { f.refuse = false })
			time.Sleep(time.Second)
			w.publish("news", "3", down, others[0])
			w.want(a, "news=3")
			w.publish("news", "4", others[1]) // its other copy was on a link that broke
			w.want(a)
			time.Sleep(patience)
			w.want(a, "news=4")
		}
	})
}

// Whoever waits for a bell must look for himself in the time in which it is not heard.
func TestALinkThatBreaksRingsTheBellsThatItMayMiss(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		a, bell := &reader{}, Topic{Bell, "k"}
		confirmed := func(want uint64) {
			t.Helper()
			if got := w.Confirmed(bell); got != want {
				t.Errorf("%b have confirmed, not %b", got, want)
			}
		}
		confirmed(0)
		w.mustSubscribe(a, bell, news)
		w.want(a)
		confirmed(0b111)
		w.masters[1].set(func(f *fake) { f.refuse = true })
		w.masters[1].cut()
		time.Sleep(time.Second)
		w.want(a, "=")
		confirmed(0b101)
		w.masters[1].set(func(f *fake) { f.refuse = false })
		time.Sleep(time.Minute)
		w.want(a)
		confirmed(0b111)
	})
}

// Nor need he wait until it is known that the link is broken.
func TestALinkThatHasGoneSilentRingsTheBellsThatItMayMiss(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		a, bell := &reader{}, Topic{Bell, "k"}
		w.mustSubscribe(a, bell)
		time.Sleep(time.Minute)
		w.want(a)
		w.masters[1].set(func(f *fake) { f.stalled = true })
		time.Sleep(4 * heartbeatEvery)
		w.want(a, "=")
		if got := w.Confirmed(bell); got != 0b101 {
			t.Errorf("%b are heard", got)
		}
		w.masters[1].set(func(f *fake) { f.stalled = false })
		w.masters[1].publish(quorum.BellPrefix+"k", "")
		time.Sleep(heartbeatEvery)
		w.want(a, "=")
		if got := w.Confirmed(bell); got != 0b111 {
			t.Errorf("%b are heard when it speaks again", got)
		}
	})
}

func TestAMessageInTwoRemainingCopiesWaitsForNobody(t *testing.T) {
	inWorld(t, 5, func(w *world) {
		a := &reader{}
		w.mustSubscribe(a, news)
		w.publish("news", "1", 0, 1)
		w.want(a)
		w.masters[4].publish("news", envelope(w.n, "1"))
		w.want(a, "news=1")
		w.masters[3].publish("news", envelope(w.n, "1"))
		time.Sleep(patience)
		w.want(a)
	})
}

func TestASilentMasterIsConnectedToAnew(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		a := &reader{}
		w.mustSubscribe(a, news)
		w.masters[0].set(func(f *fake) { f.stalled = true })
		time.Sleep(7 * time.Second)
		w.masters[0].set(func(f *fake) { f.stalled = false })
		time.Sleep(7 * time.Second)
		w.publish("news", "1", 0)
		time.Sleep(patience)
		w.want(a, "news=1")
		if n := w.masters[0].count(masters.Subscribe, "news"); n < 2 {
			t.Errorf("subscribed %d times", n)
		}
		if n := w.masters[1].count(masters.Subscribe, "news"); n != 1 {
			t.Errorf("a master that answers was subscribed to %d times", n)
		}
		if want := `msg="hears no messages" master=m1 cause="is silent"`; !strings.Contains(w.log.String(), want) {
			t.Errorf("no %s in\n%s", want, w.log.String())
		}
	})
}

// A master that is dialled several times a second and refuses in two ways in turn does not fill the log; nor one that refuses
// in another way each time.
func TestEachCauseOfHearingNothingIsLoggedOnce(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		told := func() int { return strings.Count(w.log.String(), `msg="hears no messages" master=m1`) }
		lose := func(refusal ...error) {
			synctest.Wait() // nobody writes to the log
			w.log.Reset()
			w.masters[0].set(func(f *fake) { f.refuse, f.refusal = true, refusal })
			w.masters[0].cut()
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		lose(errors.New("ERR max number of clients reached"), syscall.EPIPE)
		if n := told(); n != 2 || !strings.Contains(w.log.String(), "max number of clients reached") { // EPIPE is a connection lost, as the first cause was
			t.Errorf("%d lines, want 2, one of them that it has too many clients:\n%s", n, w.log.String())
		}
		w.masters[0].set(func(f *fake) { f.refuse = false })
		time.Sleep(time.Second)
		var many []error
		for i := range 100 {
			many = append(many, fmt.Errorf("refusal %d", i))
		}
		lose(many...)
		if n := told(); n != masters.ToldMax {
			t.Errorf("%d lines, want %d", n, masters.ToldMax)
		}
	})
}

// A confirmation that belongs to a topic given up meanwhile does not count for the one that took its place.
func TestAConfirmationCountsForItsOwnSubscription(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.masters[0].set(func(f *fake) { f.lag = 10 * time.Millisecond })
		a := &reader{}
		first, second := make(chan error, 1), make(chan error, 1)
		w.Subscribe(a, []Topic{news}, func(err error) { first <- err })
		w.Unsubscribe(a, []Topic{news})
		if err := <-first; err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Millisecond)
		began := time.Now()
		w.Subscribe(a, []Topic{news}, func(err error) { second <- err })
		if err := <-second; err != nil || time.Since(began) != 10*time.Millisecond {
			t.Errorf("confirmed after %v: %v", time.Since(began), err)
		}
	})
}

func TestCloseEndsWhatWaits(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.masters[0].set(func(f *fake) { f.stalled = true })
		done := make(chan error, 2)
		w.Subscribe(&reader{}, []Topic{news}, func(err error) { done <- err })
		w.Close()
		w.Subscribe(&reader{}, []Topic{news}, func(err error) { done <- err })
		for range 2 {
			if err := <-done; !errors.Is(err, quorum.ErrClosed) {
				t.Errorf("got %v", err)
			}
		}
	})
}

// Clients that come and go faster than masters confirm it cost nobody else a message.
func TestSubscriptionsThatComeAndGoCostNoLink(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		a, b := &reader{}, &reader{}
		w.mustSubscribe(b, news)
		other := Topic{Kind: Channel, Name: "other"}
		for range 4 * outboxMax {
			w.Subscribe(a, []Topic{other}, func(error) {})
			w.Unsubscribe(a, []Topic{other})
		}
		w.mu.Lock()
		for _, l := range w.links {
			if n := len(l.asked) + len(l.outbox); n > 2*outboxMax+2 {
				t.Errorf("%d commands wait for %s", n, l.source.Addr())
			}
			if n := len(l.later); n > 2*outboxMax+2 {
				t.Errorf("%d topics wait for %s", n, l.source.Addr())
			}
		}
		w.mu.Unlock()
		w.mustSubscribe(a, other)
		synctest.Wait()
		if told := w.log.String(); strings.Contains(told, "hears no messages") {
			t.Errorf("the log says\n%s", told)
		}
		for _, l := range w.links {
			if on := w.Confirmed(other); on&l.bit() == 0 {
				t.Errorf("%s has not confirmed the last subscription", l.source.Addr())
			}
		}
	})
}

func TestAMasterThatDoesNotReadHasABoundedQueue(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.masters[0].set(func(f *fake) { f.stalled = true })
		a := &reader{}
		for range 2 * outboxMax {
			w.mustSubscribe(a, news)
			w.Unsubscribe(a, []Topic{news})
		}
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, l := range w.links {
			if n := len(l.asked) + len(l.outbox); n > 2*outboxMax+2 {
				t.Errorf("%d commands wait for %s", n, l.source.Addr())
			}
		}
	})
}

// A client that ends may have had more subscriptions than a link may have commands waiting otherwise. Others go on hearing.
func TestManySubscriptionsThatEndAtOnceCostNoLink(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		a, b := &reader{}, &reader{}
		w.mustSubscribe(b, news)
		many := make([]Topic, 2*outboxMax)
		for i := range many {
			many[i] = Topic{Kind: Channel, Name: strconv.Itoa(i)}
		}
		w.mustSubscribe(a, many...)
		synctest.Wait()
		conns := func() (conns []masters.Listener) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, l := range w.links {
				conns = append(conns, l.conn)
			}
			return conns
		}
		before := conns()
		w.Unsubscribe(a, many)
		synctest.Wait()
		if !slices.Equal(conns(), before) {
			t.Error("connections have ended")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if n := len(w.leaving); n > 0 {
			t.Errorf("%d subscriptions are still to be left", n)
		}
	})
}

// A master that is asked about many patterns at once answers nothing else meanwhile.
func TestMastersAreAskedAboutFewPatternsAtOnce(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		const lag = 10 * time.Millisecond
		for _, m := range w.masters {
			m.set(func(f *fake) { f.lag = lag })
		}
		asked := func(command masters.Command) (n int) {
			f := w.masters[0]
			f.mu.Lock()
			defer f.mu.Unlock()
			for what, times := range f.log {
				if strings.HasPrefix(what, fmt.Sprint(command, " ")) {
					n += times
				}
			}
			return n
		}
		many := make([]Topic, 10*matchedMax)
		for i := range many {
			many[i] = Topic{Kind: Pattern, Name: strconv.Itoa(i) + "*"}
		}
		a := &reader{}
		for _, step := range []struct {
			command masters.Command
			ask     func()
		}{
			{masters.PSubscribe, func() { w.Subscribe(a, many, func(error) {}) }},
			{masters.PUnsubscribe, func() { w.Unsubscribe(a, many) }},
		} {
			step.ask()
			for round := 1; asked(step.command) < len(many); round++ {
				synctest.Wait()
				if n := asked(step.command); n > round*matchedMax {
					t.Errorf("before it has answered %d times, a master is asked about %d patterns", round, n)
				}
				if round > len(many) {
					t.Fatalf("only %d of %d patterns are asked about", asked(step.command), len(many))
				}
				time.Sleep(lag)
			}
			time.Sleep(lag)
		}
	})
}

func TestReceiversAreTheClientsHereAndTheOtherProxies(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		a, b := &reader{}, &reader{}
		all := func(string) bool { return true }
		for _, c := range []struct {
			counts []int64
			match  func(string) bool
			want   int64
		}{
			{[]int64{0, 0, 0}, all, 0}, {[]int64{2, 2, -1}, nil, 2},
		} {
			if got := w.Receivers(news, c.match, c.counts); got != c.want {
				t.Errorf("nobody here: got %d, want %d", got, c.want)
			}
		}
		w.mustSubscribe(a, news, shard)
		w.mustSubscribe(b, news, allNews)
		synctest.Wait()
		for _, c := range []struct {
			topic  Topic
			counts []int64
			match  func(string) bool
			want   int64
		}{
			{news, []int64{2, 2, 2}, all, 3}, // two on the channel, one on the pattern; one of ours for each on the masters
			{news, []int64{2, 2, -1}, all, 3},
			{news, []int64{1, 1, 1}, nil, 2},
			{news, []int64{-1, 4, 3}, all, 5}, // and two elsewhere
			{shard, []int64{1, 1, 1}, nil, 1},
			{shard, []int64{2, 2, 2}, all, 1}, // the pattern met it on the masters, but it is not delivered there
			{Topic{Channel, "none"}, []int64{1, 0, 0}, nil, 1},
		} {
			if got := w.Receivers(c.topic, c.match, c.counts); got != c.want {
				t.Errorf("%v: got %d, want %d", c, got, c.want)
			}
		}
		if names := w.Topics(Pattern); len(names) != 1 || names[0] != "n*" {
			t.Errorf("patterns: %q", names)
		}
		w.Unsubscribe(b, []Topic{allNews})
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.patterns) != 0 {
			t.Errorf("messages are matched with %d patterns that nobody has", len(w.patterns))
		}
	})
}

// What a master says of a topic that is being left, or subscribed to, may or may not count ours.
func TestSubscriptionsOnTheirWayAreNotTakenForOthers(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		a := &reader{}
		w.mustSubscribe(a, news)
		for _, m := range w.masters {
			m.set(func(f *fake) { f.lag = 10 * time.Millisecond })
		}
		count := func(want int64) {
			t.Helper()
			if got := w.Receivers(news, nil, []int64{1, 1, 1}); got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		}
		w.Unsubscribe(a, []Topic{news})
		count(0)
		time.Sleep(20 * time.Millisecond)
		count(1) // now that is somebody else
		w.Subscribe(a, []Topic{news}, func(error) {})
		count(1)
		time.Sleep(20 * time.Millisecond)
		count(1)
		w.Unsubscribe(a, []Topic{news})
		w.masters[0].cut()
		time.Sleep(20 * time.Millisecond)
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.leaving) != 0 {
			t.Errorf("%d topics are still being left", len(w.leaving))
		}
	})
}
