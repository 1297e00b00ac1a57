package resp

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/pubsub"
	"lockproxy/resp/upstream"
	"lockproxy/resp/wire"
)

// forKind makes a handler for one kind of topics from a handler for any kind.
func forKind(kind pubsub.Kind, run func(*call, pubsub.Kind) Reply) func(*call) Reply {
	return func(c *call) Reply { return run(c, kind) }
}

// subscribe confirms a subscription after a quorum of masters has confirmed. If too many masters refuse, the whole command fails. If
// too many masters, or the upstream, cannot be reached, the connection ends without an error. Some libraries subscribe again after
// they reconnect, would take an error for the confirmation, and never hear a message.
func subscribe(c *call, kind pubsub.Kind) Reply {
	s, word := c.session, c.cmd.name
	topics := make([]pubsub.Topic, 0, len(c.args)-1)
	for _, name := range c.args[1:] {
		topics = append(topics, pubsub.Topic{Kind: kind, Name: strings.Clone(name)})
	}
	added := s.subscriptions.missing(topics)
	size := sizeOfTopics(added)
	if size > 0 && !s.memory.keep(size) {
		s.refuse(errMemory)
		return nil
	}
	l, others, refused := listenUpstream(c, topics)
	if refused != nil {
		s.memory.drop(size)
		s.stop("it subscribes, and the upstream cannot be reached")
		return nil
	}
	var confirmed Sequence
	sl := c.claimSlot(claim{name: c.args[1], outcomes: 1 + count(l != nil), leads: true, answer: func(*outcome) Reply { return confirmed }})
	if sl == nil {
		s.memory.drop(size)
		return nil
	}
	confirmed = s.subscriptions.add(word, topics)
	onlyOthers := len(others) == len(topics)
	s.server.messages.Subscribe(&s.subscriptions, topics, func(err error) {
		switch {
		case err != nil && onlyOthers: // messages of the upstream alone do not need the masters
			err = nil
		case err != nil:
			s.subscriptions.forgetAll(added)
			if lacksMasters(err) {
				time.AfterFunc(unheardPause, func() { sl.endHere(err) })
				return
			}
			if l != nil {
				s.stop("no quorum of masters confirms its subscription") // the upstream may have confirmed, and the confirmation cannot be undone here
			}
		}
		sl.resolve(outcome{err: err})
	})
	if l == nil {
		return nil
	}
	l.ask(expectation{n: len(others), confirms: true, take: func(reply []byte) {
		var err error
		if reply[0] == '-' {
			err = upstream.ReplyError(errorText(reply))
			s.subscriptions.forgetAll(added)
			s.server.messages.Unsubscribe(&s.subscriptions, added)
		}
		s.replies.tellFirst(sl)
		sl.resolve(outcome{err: err})
	}}, append([]string{word}, others...)...)
	return nil
}

// unheardPause is how long the connection stays open after no quorum of masters confirmed a subscription. After the end of the
// connection, the library is back at once, or some 50 ms later.
const unheardPause = time.Second

// lacksMasters says that masters could not be reached, so the subscription may succeed another time.
func lacksMasters(err error) bool {
	_, none := errors.AsType[*quorum.NoQuorum](err)
	_, refused := errors.AsType[*pubsub.Refused](err)
	return none && !refused
}

// listenUpstream returns the names of the topics that the upstream has, too, and the link to subscribe over. Without a name, the
// link is nil.
func listenUpstream(c *call, topics []pubsub.Topic) (*link, []string, Reply) {
	others := c.session.atUpstream(topics)
	if len(others) == 0 {
		return nil, nil, nil
	}
	l, refused := c.session.uplink.connected()
	return l, others, refused
}

// atUpstream returns the names of the topics that the upstream has.
func (s *session) atUpstream(topics []pubsub.Topic) []string {
	if s.server.cfg.Upstream == nil {
		return nil
	}
	var names []string
	for _, t := range topics {
		if s.server.router.isThere(t) {
			names = append(names, t.Name)
		}
	}
	return names
}

// sizeOfTopics is the size of subscriptions in the memory budget.
func sizeOfTopics(topics []pubsub.Topic) (n int) {
	for _, t := range topics {
		n += subscriptionOverhead + len(t.Name)
	}
	return n
}

// unsubscribe ends messages from masters at once: a late message is dropped. The upstream's messages are delivered until the upstream
// has confirmed.
func unsubscribe(c *call, kind pubsub.Kind) Reply {
	s, word := c.session, c.cmd.name
	names := c.args[1:]
	if len(names) == 0 {
		names = s.subscriptions.names(kind)
	}
	var told Sequence
	var topics []pubsub.Topic
	for _, name := range names {
		topics = append(topics, pubsub.Topic{Kind: kind, Name: name})
	}
	var sl *slot
	others, l := s.atUpstream(topics), s.uplink.live()
	if l != nil && len(others) > 0 {
		if sl = c.claimSlot(claim{outcomes: 1, engaged: 1, leads: true, answer: func(*outcome) Reply { return told }}); sl == nil {
			return nil
		}
	}
	told = s.subscriptions.remove(word, kind, topics)
	s.server.messages.Unsubscribe(&s.subscriptions, topics)
	if sl != nil {
		l.ask(expectation{n: len(others), confirms: true, take: func([]byte) { sl.resolve(outcome{}) }},
			append([]string{word}, others...)...)
		return nil
	}
	sl = c.newReply()
	sl.mute, sl.leads = false, true
	s.answerBy(sl, told)
	return nil
}

// reservedPrefix begins the names of lockproxy's own channels.
const reservedPrefix = "lockproxy:"

const errOwnChannel = Error("ERR channels that begin with " + reservedPrefix + " are lockproxy's own; publish on another")

// publishNow answers with the number of subscriptions that the message meets.
func publishNow(c *call, kind pubsub.Kind) Reply {
	if isOwnChannel(c.args[1]) {
		return errOwnChannel
	}
	return c.begin(overlapAny, c.args[1], counted, func(sl *slot) {
		publish(c.server, pubsub.Topic{Kind: kind, Name: c.args[1]}, c.args[2], func(n int, err error) { sl.resolve(outcome{err: err, done: n}) })
	})
}

func isOwnChannel(name string) bool { return strings.HasPrefix(name, reservedPrefix) }

// publish calls done with the number of subscriptions that the message meets.
func publish(s *Server, t pubsub.Topic, message string, done func(n int, err error)) {
	channel := pubsub.MasterChannel(t)
	match := func(pattern string) bool { return wire.MatchChannel(pattern, channel) }
	s.engine.Publish(channel, message, func(p quorum.Published) {
		if p.Err != nil {
			done(0, p.Err)
			return
		}
		done(int(s.messages.Receivers(t, match, p.Receivers)), nil)
	})
}

// channelsMax is the most channels of a master that may be listed. A master does nothing else while listing its channels, 2 ms for
// channelsMax, and cannot list a part. The proxies' own channels, for released locks, count too.
const channelsMax = 10_000

func errChannelsMax(most int64) Error {
	return Error(fmt.Sprintf("ERR a master has %d channels, and %d are listed at most: masters would stop for everybody; "+
		"ask PUBSUB NUMSUB for those that you want to know of", most, channelsMax))
}

// channels lists the channels with a subscriber on any proxy; patterns do not count.
func channels(c *call, kind pubsub.Kind) Reply {
	for _, m := range c.server.engine.Masters() {
		if m.Channels > channelsMax {
			return errChannelsMax(m.Channels)
		}
	}
	wanted := func(string) bool { return true }
	switch len(c.args) {
	case 2:
	case 3:
		pattern := strings.Clone(c.args[2])
		if len(pattern) > wire.PatternMax {
			return errPattern
		}
		wanted = func(channel string) bool { return wire.MatchChannel(pattern, channel) }
	default:
		return errSubcommandArity("PUBSUB", c.args[1])
	}
	here := c.server.messages.Topics(kind)
	return poll(c, []any{"PUBSUB", "CHANNELS"}, func(replies []any) Reply {
		seen := map[string]bool{}
		for _, name := range here {
			seen[name] = true
		}
		for _, name := range elsewhere(replies) {
			switch shard, sharded := strings.CutPrefix(name, quorum.ShardPrefix); {
			case sharded && kind == pubsub.Shard:
				seen[shard] = true
			case kind == pubsub.Channel && !strings.HasPrefix(name, reservedPrefix):
				seen[name] = true
			}
		}
		found := Array{}
		for _, name := range slices.Sorted(maps.Keys(seen)) {
			if wanted(name) {
				found = append(found, Bulk(name))
			}
		}
		return found
	})
}

// elsewhere returns the strings of all masters' lists.
func elsewhere(replies []any) []string {
	var all []string
	for _, reply := range replies {
		list, _ := reply.([]any)
		for _, item := range list {
			if name, ok := item.(string); ok {
				all = append(all, name)
			}
		}
	}
	return all
}

// numSub counts subscribers as PUBLISH does, without patterns.
func numSub(c *call, kind pubsub.Kind) Reply {
	if len(c.args) == 2 {
		return Array{}
	}
	question := []any{"PUBSUB", "NUMSUB"}
	var topics []pubsub.Topic
	for _, name := range c.args[2:] {
		t := pubsub.Topic{Kind: kind, Name: strings.Clone(name)}
		topics = append(topics, t)
		question = append(question, pubsub.MasterChannel(t))
	}
	messages := c.server.messages
	return poll(c, question, func(replies []any) Reply {
		found := Array{}
		for i, t := range topics {
			counts := make([]int64, len(replies))
			for m, reply := range replies {
				counts[m] = -1
				if list, _ := reply.([]any); len(list) == 2*len(topics) {
					counts[m], _ = list[2*i+1].(int64)
				}
			}
			found = append(found, Bulk(t.Name), Int(messages.Receivers(t, nil, counts)))
		}
		return found
	})
}

// runPubsubNumPat counts the patterns with a subscriber on any proxy.
func runPubsubNumPat(c *call) Reply {
	most := int64(len(c.server.messages.Topics(pubsub.Pattern)))
	return poll(c, []any{"PUBSUB", "NUMPAT"}, func(replies []any) Reply {
		for _, reply := range replies {
			n, _ := reply.(int64)
			most = max(most, n)
		}
		return Int(most)
	})
}

// poll asks all masters, and merges the answers to one reply.
func poll(c *call, question []any, merge func(replies []any) Reply) Reply {
	return c.beginKeyless(made, func(sl *slot) {
		c.server.engine.Poll(question, func(p quorum.Polled) {
			sl.resolve(outcome{err: p.Err, reply: polled{p.Replies, merge}})
		})
	})
}

// A polled is a reply that the client's own writer merges, when writing: no lane waits for a long match.
type polled struct {
	replies []any // of the masters
	merge   func(replies []any) Reply
}

func (r polled) AppendTo(b []byte, resp3 bool) []byte { return r.merge(r.replies).AppendTo(b, resp3) }

func (r polled) Size() (n int) {
	for _, name := range elsewhere(r.replies) {
		n += 16 + len(name) // as wire counts a list
	}
	return n
}
