package resp

import "lockproxy/quorum/pubsub"

const subscribing = pubSub | noScript | loading | stale | subscribedToo

var pubsubCommands = []*command{
	{name: "subscribe", arity: -2, flags: subscribing, group: "pubsub", since: "2.0.0", run: forKind(pubsub.Channel, (*call).subscribe),
		usage: "channel ...", summary: "Listen for messages published to the given channels"},
	{name: "unsubscribe", arity: -1, flags: subscribing, group: "pubsub", since: "2.0.0", run: forKind(pubsub.Channel, (*call).unsubscribe),
		usage: "[channel ...]", summary: "Stop listening for messages posted to the given channels"},
	{name: "psubscribe", arity: -2, flags: subscribing, group: "pubsub", since: "2.0.0", run: forKind(pubsub.Pattern, (*call).subscribe),
		usage: "pattern ...", summary: "Listen for messages published to channels matching the given patterns"},
	{name: "punsubscribe", arity: -1, flags: subscribing, group: "pubsub", since: "2.0.0", run: forKind(pubsub.Pattern, (*call).unsubscribe),
		usage: "[pattern ...]", summary: "Stop listening for messages posted to channels matching the given patterns"},
	{name: "ssubscribe", arity: -2, flags: subscribing, keys: allKeys, group: "pubsub", since: "7.0.0", run: forKind(pubsub.Shard, (*call).subscribe),
		usage: "shardchannel ...", summary: "Listen for messages published to the given shard channels"},
	{name: "sunsubscribe", arity: -1, flags: subscribing, keys: allKeys, group: "pubsub", since: "7.0.0", run: forKind(pubsub.Shard, (*call).unsubscribe),
		usage: "[shardchannel ...]", summary: "Stop listening for messages posted to the given shard channels"},
	{name: "publish", arity: 3, flags: pubSub | loading | stale | fast | mayQueue, group: "pubsub", since: "2.0.0", run: forKind(pubsub.Channel, (*call).publish),
		usage: "channel message", summary: "Post a message to a channel"},
	{name: "spublish", arity: 3, flags: pubSub | loading | stale | fast | mayQueue, keys: oneKey, group: "pubsub", since: "7.0.0", run: forKind(pubsub.Shard, (*call).publish),
		usage: "shardchannel message", summary: "Post a message to a shard channel"},
	{name: "pubsub", arity: -2, flags: betterThere, group: "pubsub", since: "2.8.0",
		summary: "A container for Pub/Sub commands", subs: []*command{
			{name: "channels", arity: -2, flags: pubSub | loading | stale, since: "2.8.0", run: forKind(pubsub.Channel, (*call).channels),
				usage: "[pattern]", summary: "List active channels"},
			{name: "numpat", arity: 2, flags: pubSub | loading | stale, since: "2.8.0", run: runPubsubNumPat,
				summary: "Get the count of unique patterns pattern subscriptions"},
			{name: "numsub", arity: -2, flags: pubSub | loading | stale, since: "2.8.0", run: forKind(pubsub.Channel, (*call).numSub),
				usage: "[channel ...]", summary: "Get the count of subscribers for channels"},
			{name: "shardchannels", arity: -2, flags: pubSub | loading | stale, since: "7.0.0", run: forKind(pubsub.Shard, (*call).channels),
				usage: "[pattern]", summary: "List active shard channels"},
			{name: "shardnumsub", arity: -2, flags: pubSub | loading | stale, since: "7.0.0", run: forKind(pubsub.Shard, (*call).numSub),
				usage: "[shardchannel ...]", summary: "Get the count of subscribers for shard channels"},
		}},
}
