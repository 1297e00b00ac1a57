package resp

import (
	"slices"
	"sync"

	"lockproxy/quorum/pubsub"
)

// THE command table: all commands for clients, in Redis's own terms. Adding a command is adding a row. COMMAND, arity
// checks, NOAUTH and the error texts follow from the row. A negative arity has no maximum: a handler with optional
// arguments refuses too many, as with errArity.

// allCommands makes the table once for all servers.
var allCommands = sync.OnceValue(func() *table {
	return newTable(slices.Concat(lockCommands, stringCommands, hashCommands, genericCommands, scriptCommands,
		transactionCommands, pubsubCommands, connectionCommands, serverCommands))
})

var lockCommands = []*command{
	{name: "lock", arity: -3, flags: write | fast, keys: oneKey, group: "lock", run: runLock,
		usage:   "key ttl-ms [TOKEN token] [WAIT ms] [HOLD]",
		summary: "Acquire a lock, unless somebody holds it"},
	{name: "unlock", arity: 3, flags: write | fast, keys: oneKey, group: "lock", run: runUnlock,
		usage: "key token", summary: "Release a lock that the token holds"},
	{name: "extend", arity: 4, flags: write | fast, keys: oneKey, group: "lock", run: runExtend,
		usage: "key token ttl-ms", summary: "Set the remaining TTL of a lock that the token holds"},
	{name: "fence", arity: 3, flags: readOnly | fast, keys: oneKey, group: "lock", run: runFence,
		usage: "key fence", summary: "Tell whether a fence is the newest of its key"},
	{name: "lockinfo", arity: 2, flags: readOnly, keys: oneKey, group: "lock", run: runLockInfo,
		usage: "key", summary: "Tell who holds a lock, for how long, and what each master says"},
	{name: "locks", arity: -1, flags: readOnly, group: "lock", run: runLocks,
		usage: "[MATCH pattern] [COUNT count]", summary: "List the locks that a quorum of masters holds"},
	{name: "forceunlock", arity: 2, flags: write | admin, keys: oneKey, group: "lock", run: runForceUnlock,
		usage: "key", summary: "Release a lock, whoever holds it"},
}

var stringCommands = []*command{
	{name: "set", arity: -3, flags: write | denyOOM, keys: oneKey, group: "string", since: "1.0.0", run: runSet,
		plan: planSet, usage: "key value [NX | XX | IFEQ value | IFNE value] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
		summary: "Set the string value of a key"},
	{name: "setnx", arity: 3, flags: write | denyOOM | fast, keys: oneKey, group: "string", since: "1.0.0", run: runSetNX,
		plan: planSetNX, brief: true, usage: "key value", summary: "Set the value of a key, only if the key does not exist"},
	{name: "setex", arity: 4, flags: write | denyOOM, keys: oneKey, group: "string", since: "2.0.0", run: runSetEX(seconds),
		plan: planSetEX(seconds), usage: "key seconds value", summary: "Set the value and expiration of a key"},
	{name: "psetex", arity: 4, flags: write | denyOOM, keys: oneKey, group: "string", since: "2.6.0", run: runSetEX(millis),
		plan: planSetEX(millis), usage: "key milliseconds value", summary: "Set the value and expiration in milliseconds of a key"},
	{name: "get", arity: 2, flags: readOnly | fast, keys: oneKey, group: "string", since: "1.0.0", run: runGet,
		plan: onString(planGet), usage: "key", summary: "Get the value of a key"},
	{name: "getrange", arity: 4, flags: readOnly, keys: oneKey, group: "string", since: "2.4.0", run: runGetRange,
		plan: planGetRange, usage: "key start end", summary: "Get a substring of the string stored at a key"},
	{name: "mget", arity: -2, flags: readOnly | fast, keys: allKeys, group: "string", since: "1.0.0", run: runMGet,
		plan: planMGet, usage: "key ...", summary: "Get the values of all the given keys"},
	{name: "getset", arity: 3, flags: write | denyOOM | fast, keys: oneKey, group: "string", since: "1.0.0", run: runPlanned,
		plan: onString(planGetSet), usage: "key value", summary: "Set the string value of a key and return its old value"},
	{name: "getdel", arity: 2, flags: write | fast, keys: oneKey, group: "string", since: "6.2.0", run: runPlanned,
		plan: onString(planGetDel), usage: "key", summary: "Get the value of a key and delete the key"},
	{name: "getex", arity: -2, flags: write | fast, keys: oneKey, group: "string", since: "6.2.0", run: runPlanned,
		plan: planGetEX, usage: "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
		summary: "Get the value of a key and optionally set its expiration"},
	{name: "msetnx", arity: -3, flags: write | denyOOM, keys: everyOther, group: "string", since: "1.0.1", run: runPlanned,
		plan: planMSetNX, brief: true, usage: "<key value> ...", summary: "Set multiple keys to multiple values, only if none of the keys exist"},
	{name: "delex", arity: -2, flags: write | fast, keys: oneKey, group: "string", since: "8.4.0", run: runPlanned,
		plan: planDelEX, usage: "key [IFEQ value | IFNE value]",
		summary: "Delete a key, conditionally on its value"},
	{name: "delifeq", arity: 3, flags: write | fast, keys: oneKey, group: "string", since: "9.0.0", run: runUnlock,
		plan: onString(planDelIfEq), usage: "key value", summary: "Delete a key if it holds the value"},
	{name: "strlen", arity: 2, flags: readOnly | fast, keys: oneKey, group: "string", since: "2.2.0", run: runStrlen,
		plan: onString(planStrlen), brief: true, usage: "key", summary: "Get the length of the value stored in a key"},
}

var hashCommands = []*command{
	{name: "hget", arity: 3, flags: readOnly | fast, keys: oneKey, group: "hash", since: "2.0.0", run: runAsk(0, dataReply),
		usage: "key field", summary: "Get the value of a hash field"},
	{name: "hmget", arity: -3, flags: readOnly | fast, keys: oneKey, group: "hash", since: "2.0.0", run: runHMGet,
		usage: "key field ...", summary: "Get the values of all the given hash fields"},
	{name: "hgetall", arity: 2, flags: readOnly, keys: oneKey, group: "hash", since: "2.0.0", run: runAsk(2, mapReply),
		usage: "key", summary: "Get all the fields and values in a hash"},
	{name: "hexists", arity: 3, flags: readOnly | fast, keys: oneKey, group: "hash", since: "2.0.0", run: runAsk(0, intReply),
		usage: "key field", summary: "Determine if a hash field exists"},
	{name: "hlen", arity: 2, flags: readOnly | fast, keys: oneKey, group: "hash", since: "2.0.0", run: runAsk(0, intReply),
		usage: "key", summary: "Get the number of fields in a hash"},
	{name: "hstrlen", arity: 3, flags: readOnly | fast, keys: oneKey, group: "hash", since: "3.2.0", run: runAsk(0, intReply),
		usage: "key field", summary: "Get the length of the value of a hash field"},
	{name: "hkeys", arity: 2, flags: readOnly, keys: oneKey, group: "hash", since: "2.0.0", run: runAsk(1, listReply),
		usage: "key", summary: "Get all the fields in a hash"},
	{name: "hvals", arity: 2, flags: readOnly, keys: oneKey, group: "hash", since: "2.0.0", run: runAsk(1, listReply),
		usage: "key", summary: "Get all the values in a hash"},
}

var genericCommands = []*command{
	{name: "exists", arity: -2, flags: readOnly | fast, keys: allKeys, group: "generic", since: "1.0.0", run: runExists,
		plan: planExists, brief: true, usage: "key ...", summary: "Determine if a key exists"},
	{name: "ttl", arity: 2, flags: readOnly | fast, keys: oneKey, group: "generic", since: "1.0.0", run: runTTL(inSeconds),
		plan: planTTL(inSeconds), brief: true, usage: "key", summary: "Get the time to live for a key in seconds"},
	{name: "pttl", arity: 2, flags: readOnly | fast, keys: oneKey, group: "generic", since: "2.6.0", run: runTTL(inMillis),
		plan: planTTL(inMillis), brief: true, usage: "key", summary: "Get the time to live for a key in milliseconds"},
	{name: "expiretime", arity: 2, flags: readOnly | fast, keys: oneKey, group: "generic", since: "7.0.0", run: runTTL(asUnixSeconds),
		plan: planTTL(asUnixSeconds), brief: true, usage: "key", summary: "Get the expiration Unix timestamp for a key"},
	{name: "pexpiretime", arity: 2, flags: readOnly | fast, keys: oneKey, group: "generic", since: "7.0.0", run: runTTL(asUnixMillis),
		plan: planTTL(asUnixMillis), brief: true, usage: "key", summary: "Get the expiration Unix timestamp for a key in milliseconds"},
	{name: "type", arity: 2, flags: readOnly | fast, keys: oneKey, group: "generic", since: "1.0.0", run: runType,
		plan: planType, brief: true, usage: "key", summary: "Determine the type stored at key"},
	{name: "expire", arity: -3, flags: write | fast, keys: oneKey, group: "generic", since: "1.0.0", run: runExpire(seconds),
		plan: planExpire(seconds), usage: "key seconds [NX | XX | GT | LT]", summary: "Set a key's time to live in seconds"},
	{name: "pexpire", arity: -3, flags: write | fast, keys: oneKey, group: "generic", since: "2.6.0", run: runExpire(millis),
		plan: planExpire(millis), usage: "key milliseconds [NX | XX | GT | LT]", summary: "Set a key's time to live in milliseconds"},
	{name: "expireat", arity: -3, flags: write | fast, keys: oneKey, group: "generic", since: "1.2.0", run: runExpire(unixSeconds),
		plan: planExpire(unixSeconds), usage: "key unix-time-seconds [NX | XX | GT | LT]",
		summary: "Set the expiration for a key as a UNIX timestamp"},
	{name: "pexpireat", arity: -3, flags: write | fast, keys: oneKey, group: "generic", since: "2.6.0", run: runExpire(unixMillis),
		plan: planExpire(unixMillis), usage: "key unix-time-milliseconds [NX | XX | GT | LT]",
		summary: "Set the expiration for a key as a UNIX timestamp specified in milliseconds"},
	{name: "persist", arity: 2, flags: write | fast, keys: oneKey, group: "generic", since: "2.2.0", run: runPersist,
		plan: planPersist, usage: "key", summary: "Set the time to live of a key to ttl_max"},
	{name: "del", arity: -2, flags: write, keys: allKeys, group: "generic", since: "1.0.0", run: runDel,
		plan: planDel, usage: "key ...", summary: "Delete a key"},
	{name: "unlink", arity: -2, flags: write | fast, keys: allKeys, group: "generic", since: "4.0.0", run: runDel,
		plan: planDel, usage: "key ...", summary: "Delete a key, as DEL"},
	{name: "object", arity: -2, group: "generic", since: "2.2.3",
		summary: "A container for object introspection commands", subs: []*command{
			{name: "encoding", arity: 3, flags: readOnly, keys: secondKey, since: "2.2.3", run: runAsk(0, dataReply),
				usage: "key", summary: "Inspect the internal encoding of a Redis object"},
		}},
	{name: "wait", arity: 3, flags: noScript | mayQueue | betterThere, group: "generic", since: "3.0.0", run: runWait,
		usage: "numreplicas timeout", summary: "Wait for replication: there are no replicas to wait for"},
}

const (
	scripting     = noScript | stale | skipMonitor | noMandatoryKeys | movableKeys
	readingScript = scripting | readOnly
)

var scriptCommands = []*command{
	{name: "eval", arity: -3, flags: scripting, keys: scriptKeys, group: "scripting", since: "2.6.0", run: runEval,
		usage: "script numkeys [key ...] [arg ...]", summary: "Execute a Lua script server side"},
	{name: "evalsha", arity: -3, flags: scripting, keys: scriptKeys, group: "scripting", since: "2.6.0", run: runEval,
		usage: "sha1 numkeys [key ...] [arg ...]", summary: "Execute a Lua script server side"},
	{name: "eval_ro", arity: -3, flags: readingScript, keys: scriptKeys, group: "scripting", since: "7.0.0", run: runEval,
		usage: "script numkeys [key ...] [arg ...]", summary: "Execute a read-only Lua script server side"},
	{name: "evalsha_ro", arity: -3, flags: readingScript, keys: scriptKeys, group: "scripting", since: "7.0.0", run: runEval,
		usage: "sha1 numkeys [key ...] [arg ...]", summary: "Execute a read-only Lua script server side"},
	{name: "script", arity: -2, group: "scripting", since: "2.6.0",
		summary: "A container for Lua scripts management commands", subs: []*command{
			{name: "load", arity: 3, flags: noScript | stale | mayQueue, since: "2.6.0", run: runScriptLoad,
				usage: "script", summary: "Load the specified Lua script into the script cache."},
			{name: "exists", arity: -3, flags: noScript | mayQueue, since: "2.6.0", run: runScriptExists,
				usage: "sha1 ...", summary: "Check existence of scripts in the script cache."},
			{name: "kill", arity: 2, flags: noScript | allowBusy, since: "2.6.0", run: runScriptKill,
				summary: "Kill the currently executing Lua script."},
			{name: "flush", arity: -2, flags: noScript, since: "2.6.0", run: runScriptFlush,
				usage: "[ASYNC | SYNC]", summary: "Remove all the scripts from the script cache."},
		}},
}

const transactional = noScript | loading | stale | fast | allowBusy | atOnce

var transactionCommands = []*command{
	{name: "multi", arity: 1, flags: transactional, group: "transactions", since: "1.2.0", run: runMulti,
		summary: "Mark the start of a transaction block"},
	{name: "exec", arity: 1, flags: noScript | loading | stale | skipSlowlog | atOnce, group: "transactions", since: "1.2.0", run: runExec,
		summary: "Execute all commands issued after MULTI"},
	{name: "discard", arity: 1, flags: transactional, group: "transactions", since: "2.0.0", run: runDiscard,
		summary: "Discard all commands issued after MULTI"},
	{name: "watch", arity: -2, flags: transactional, keys: allKeys, group: "transactions", since: "2.2.0", run: runWatch,
		usage: "key ...", summary: "Watch the given keys to determine execution of the MULTI/EXEC block"},
	{name: "unwatch", arity: 1, flags: transactional&^atOnce | mayQueue, group: "transactions", since: "2.2.0", run: runUnwatch,
		summary: "Forget about all watched keys"},
}

const subscribing = pubSub | noScript | loading | stale | subscribedToo

var pubsubCommands = []*command{
	{name: "subscribe", arity: -2, flags: subscribing, group: "pubsub", since: "2.0.0", run: forKind(pubsub.Channel, subscribe),
		usage: "channel ...", summary: "Listen for messages published to the given channels"},
	{name: "unsubscribe", arity: -1, flags: subscribing, group: "pubsub", since: "2.0.0", run: forKind(pubsub.Channel, unsubscribe),
		usage: "[channel ...]", summary: "Stop listening for messages posted to the given channels"},
	{name: "psubscribe", arity: -2, flags: subscribing, group: "pubsub", since: "2.0.0", run: forKind(pubsub.Pattern, subscribe),
		usage: "pattern ...", summary: "Listen for messages published to channels matching the given patterns"},
	{name: "punsubscribe", arity: -1, flags: subscribing, group: "pubsub", since: "2.0.0", run: forKind(pubsub.Pattern, unsubscribe),
		usage: "[pattern ...]", summary: "Stop listening for messages posted to channels matching the given patterns"},
	{name: "ssubscribe", arity: -2, flags: subscribing, keys: allKeys, group: "pubsub", since: "7.0.0", run: forKind(pubsub.Shard, subscribe),
		usage: "shardchannel ...", summary: "Listen for messages published to the given shard channels"},
	{name: "sunsubscribe", arity: -1, flags: subscribing, keys: allKeys, group: "pubsub", since: "7.0.0", run: forKind(pubsub.Shard, unsubscribe),
		usage: "[shardchannel ...]", summary: "Stop listening for messages posted to the given shard channels"},
	{name: "publish", arity: 3, flags: pubSub | loading | stale | fast | mayQueue, group: "pubsub", since: "2.0.0", run: forKind(pubsub.Channel, publishNow),
		usage: "channel message", summary: "Post a message to a channel"},
	{name: "spublish", arity: 3, flags: pubSub | loading | stale | fast | mayQueue, keys: oneKey, group: "pubsub", since: "7.0.0", run: forKind(pubsub.Shard, publishNow),
		usage: "shardchannel message", summary: "Post a message to a shard channel"},
	{name: "pubsub", arity: -2, flags: betterThere, group: "pubsub", since: "2.8.0",
		summary: "A container for Pub/Sub commands", subs: []*command{
			{name: "channels", arity: -2, flags: pubSub | loading | stale, since: "2.8.0", run: forKind(pubsub.Channel, channels),
				usage: "[pattern]", summary: "List active channels"},
			{name: "numpat", arity: 2, flags: pubSub | loading | stale, since: "2.8.0", run: runPubsubNumPat,
				summary: "Get the count of unique patterns pattern subscriptions"},
			{name: "numsub", arity: -2, flags: pubSub | loading | stale, since: "2.8.0", run: forKind(pubsub.Channel, numSub),
				usage: "[channel ...]", summary: "Get the count of subscribers for channels"},
			{name: "shardchannels", arity: -2, flags: pubSub | loading | stale, since: "7.0.0", run: forKind(pubsub.Shard, channels),
				usage: "[pattern]", summary: "List active shard channels"},
			{name: "shardnumsub", arity: -2, flags: pubSub | loading | stale, since: "7.0.0", run: forKind(pubsub.Shard, numSub),
				usage: "[shardchannel ...]", summary: "Get the count of subscribers for shard channels"},
		}},
}

const handshake = noScript | loading | stale | fast | noAuth | allowBusy

var connectionCommands = []*command{
	{name: "hello", arity: -1, flags: handshake, group: "connection", since: "6.0.0", run: runHello,
		usage: "[protover [AUTH username password] [SETNAME clientname]]", summary: "Handshake with Redis"},
	{name: "auth", arity: -2, flags: handshake, group: "connection", since: "1.0.0", run: runAuth,
		usage: "[username] password", summary: "Authenticate to the server"},
	{name: "quit", arity: -1, flags: handshake | subscribedToo | atOnce, group: "connection", since: "1.0.0", run: runQuit,
		summary: "Close the connection"},
	{name: "reset", arity: 1, flags: handshake | subscribedToo | atOnce, group: "connection", since: "6.2.0", run: runReset,
		summary: "Reset the connection"},
	{name: "select", arity: 2, flags: loading | stale | fast, group: "connection", since: "1.0.0", run: runSelect,
		usage: "index", summary: "Change the selected database for the current connection"},
	{name: "ping", arity: -1, flags: fast | subscribedToo | mayQueue, group: "connection", since: "1.0.0", run: runPing,
		usage: "[message]", summary: "Ping the server"},
	{name: "echo", arity: 2, flags: loading | stale | fast | mayQueue, group: "connection", since: "1.0.0", run: runEcho,
		usage: "message", summary: "Echo the given string"},
	{name: "readonly", arity: 1, flags: loading | stale | fast | mayQueue, group: "cluster", since: "3.0.0", run: runOK,
		summary: "Enables read queries on a replica: accepted, there is none"},
	{name: "readwrite", arity: 1, flags: loading | stale | fast | mayQueue, group: "cluster", since: "3.0.0", run: runOK,
		summary: "Disables read queries on a replica: accepted, there is none"},
	{name: "client", arity: -2, group: "connection", since: "2.4.0",
		summary: "A container for client connection commands", subs: clientCommands},
}

const (
	plainClient = noScript | loading | stale
	adminClient = admin | plainClient
)

var clientCommands = []*command{
	{name: "id", arity: 2, flags: plainClient, since: "5.0.0", run: runClientID,
		summary: "Returns the client ID for the current connection"},
	{name: "setname", arity: 3, flags: plainClient, since: "2.6.9", run: runClientSetName,
		usage: "connection-name", summary: "Set the current connection name"},
	{name: "getname", arity: 2, flags: plainClient, since: "2.6.9", run: runClientGetName,
		summary: "Get the current connection name"},
	{name: "setinfo", arity: 4, flags: plainClient, since: "7.2.0", run: runClientSetInfo,
		usage: "<LIB-NAME libname | LIB-VER libver>", summary: "Set client or connection specific info"},
	{name: "list", arity: -2, flags: admin | plainClient, since: "2.4.0", run: runClientList,
		summary: "Get the list of client connections"},
	{name: "info", arity: 2, flags: plainClient, since: "6.2.0", run: runClientInfo,
		summary: "Returns information about the current client connection."},
	{name: "kill", arity: -3, flags: adminClient, since: "2.4.0", run: runClientKill,
		summary: "Kill the connection of a client"},
	{name: "no-evict", arity: 3, flags: admin | plainClient, since: "7.0.0", run: runOnOff,
		usage: "<ON | OFF>", summary: "Set client eviction mode: accepted, and without effect"},
	{name: "no-touch", arity: 3, flags: plainClient, since: "7.2.0", run: runOnOff,
		usage: "<ON | OFF>", summary: "Control whether commands alter access times: accepted, there are none"},
	{name: "reply", arity: 3, flags: plainClient, since: "3.2.0", run: runClientReply,
		usage: "<ON | OFF | SKIP>", summary: "Instruct the server whether to reply to commands"},
	{name: "unblock", arity: -3, flags: adminClient, since: "5.0.0", run: runClientUnblock,
		usage: "client-id [TIMEOUT | ERROR]", summary: "Unblock a client blocked in a blocking command from a different connection"},
	{name: "tracking", arity: -3, flags: plainClient, since: "6.0.0", run: runClientTracking,
		summary: "Client side caching: ON OPTIN is accepted, and nothing can be cached"},
	{name: "caching", arity: 3, flags: plainClient, since: "6.0.0", run: runClientCaching,
		usage: "<YES | NO>", summary: "Tell that the reply to the next request is going to be cached: refused, and the request, too"},
}

var commandCommands = []*command{
	{name: "count", arity: 2, flags: loading | stale | mayQueue, since: "2.8.13", run: runCommandCount,
		summary: "Get total number of Redis commands"},
	{name: "info", arity: -2, flags: loading | stale | mayQueue, since: "2.8.13", run: runCommandInfo,
		usage: "[command-name ...]", summary: "Get array of specific Redis command details, or all when no argument is given."},
	{name: "docs", arity: -2, flags: loading | stale | mayQueue, since: "7.0.0", run: runCommandDocs,
		usage: "[command-name ...]", summary: "Get array of specific Redis command documentation"},
	{name: "list", arity: -2, flags: loading | stale | mayQueue, since: "7.0.0", run: runCommandList,
		usage: "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]", summary: "Get an array of Redis command names"},
	{name: "getkeys", arity: -4, flags: loading | stale | mayQueue, since: "2.8.13", run: runCommandGetKeys,
		summary: "Extract keys given a full Redis command"},
}

var serverCommands = []*command{
	{name: "command", arity: -1, flags: loading | stale | mayQueue | betterThere, group: "server", since: "2.8.13", run: runCommand,
		summary: "Get array of Redis command details", subs: commandCommands},
	{name: "config", arity: -2, flags: betterThere, group: "server", since: "2.0.0",
		summary: "A container for server configuration commands", subs: []*command{
			{name: "get", arity: -3, flags: adminClient | mayQueue, since: "2.0.0", run: runConfigGet,
				usage: "parameter ...", summary: "Get the values of configuration parameters"},
			{name: "set", arity: -4, flags: adminClient | mayQueue, since: "2.0.0", run: runConfigChange,
				usage: "<parameter value> ...", summary: "Set configuration parameters: refused, the configuration is a file"},
			{name: "rewrite", arity: 2, flags: adminClient | mayQueue, since: "2.8.0", run: runConfigChange,
				summary: "Rewrite the configuration file: refused"},
			{name: "resetstat", arity: 2, flags: adminClient, since: "2.0.0", run: runConfigResetStat,
				summary: "Reset the stats returned by INFO"},
		}},
	{name: "slowlog", arity: -2, flags: betterThere, group: "server", since: "2.2.12",
		summary: "A container for slow log commands", subs: []*command{
			{name: "get", arity: -2, flags: admin | loading | stale | mayQueue, since: "2.2.12", run: runSlowlogGet,
				usage: "[count]", summary: "Get the slow log's entries"},
			{name: "len", arity: 2, flags: admin | loading | stale | mayQueue, since: "2.2.12", run: runSlowlogLen,
				summary: "Get the slow log's length"},
			{name: "reset", arity: 2, flags: admin | loading | stale, since: "2.2.12", run: runSlowlogReset,
				summary: "Clear all entries from the slow log"},
		}},
	{name: "latency", arity: -2, flags: betterThere, group: "server", since: "2.8.13",
		summary: "A container for latency diagnostics commands", subs: []*command{
			{name: "histogram", arity: -2, flags: adminClient | mayQueue, since: "7.0.0", run: runLatencyHistogram,
				usage: "[command ...]", summary: "Return the cumulative distribution of latencies of a subset of commands or all."},
			{name: "doctor", arity: 2, flags: adminClient | mayQueue, since: "2.8.13", run: runLatencyDoctor,
				summary: "Return a human readable latency analysis report: there is no latency monitor"},
			{name: "graph", arity: 3, flags: adminClient | mayQueue, since: "2.8.13", run: runLatencyGraph,
				usage: "event", summary: "Return a latency graph for the event: there are none"},
			{name: "history", arity: 3, flags: adminClient | mayQueue, since: "2.8.13", run: runLatencyNone,
				usage: "event", summary: "Return timestamp-latency samples for the event: there are none"},
			{name: "latest", arity: 2, flags: adminClient | mayQueue, since: "2.8.13", run: runLatencyNone,
				summary: "Return the latest latency samples for all events: there are none"},
			{name: "reset", arity: -2, flags: adminClient | mayQueue, since: "2.8.13", run: runLatencyReset,
				usage: "[event ...]", summary: "Reset latency data for one or more events: there are none"},
		}},
	{name: "debug", arity: -2, flags: adminClient | betterThere, group: "server", since: "1.0.0", run: runDebug,
		summary: "A container for debugging commands: refused"},
	{name: "module", arity: -2, flags: betterThere, group: "server", since: "4.0.0",
		summary: "A container for module commands", subs: []*command{
			{name: "list", arity: 2, flags: admin | noScript | mayQueue, since: "4.0.0", run: runModuleList,
				summary: "List all modules loaded by the server"},
		}},
	{name: "acl", arity: -2, group: "server", since: "6.0.0",
		summary: "A container for Access List Control commands", subs: []*command{
			{name: "whoami", arity: 2, flags: plainClient, since: "6.0.0", run: runWhoAmI,
				summary: "Return the name of the user associated to the current connection"},
		}},
	{name: "info", arity: -1, flags: loading | stale | mayQueue | betterThere, group: "server", since: "1.0.0", run: runInfo,
		usage: "[section ...]", summary: "Get information and statistics about the server"},
	{name: "role", arity: 1, flags: noScript | loading | stale | fast | mayQueue, group: "server", since: "2.8.12", run: runRole,
		summary: "Return the role of the instance in the context of replication"},
	{name: "time", arity: 1, flags: loading | stale | fast | mayQueue, group: "server", since: "2.6.0", run: runTime,
		summary: "Return the current server time"},
	{name: "lastsave", arity: 1, flags: loading | stale | fast | mayQueue | betterThere, group: "server", since: "1.0.0", run: runLastSave,
		summary: "Get the UNIX time stamp of the last successful save to disk"},
	{name: "cluster", arity: -2, group: "cluster", since: "3.0.0",
		summary: "A container for cluster commands: cluster support is disabled", subs: []*command{
			{name: "info", arity: 2, flags: stale | mayQueue, since: "3.0.0", run: runCluster,
				summary: "Provides info about Redis Cluster node state"},
			{name: "nodes", arity: 2, flags: stale | mayQueue, since: "3.0.0", run: runCluster,
				summary: "Get Cluster config for the node"},
			{name: "slots", arity: 2, flags: stale | mayQueue, since: "3.0.0", run: runCluster,
				summary: "Get array of Cluster slot to node mappings"},
			{name: "shards", arity: 2, flags: stale | mayQueue, since: "7.0.0", run: runCluster,
				summary: "Get array of cluster slots to shards"},
			{name: "myid", arity: 2, flags: stale | mayQueue, since: "3.0.0", run: runCluster,
				summary: "Return the node id"},
			{name: "keyslot", arity: 3, flags: stale | mayQueue, since: "3.0.0", run: runCluster,
				usage: "key", summary: "Returns the hash slot of the specified key"},
		}},
}
