package resp

import (
	"slices"
	"sync"
)

// THE command table: what a client may send, in Redis's own terms. Adding a command is adding a row; COMMAND, arity
// checks, NOAUTH and the error texts follow from it.

// allCommands makes the table once for all servers.
var allCommands = sync.OnceValue(func() *table {
	return newTable(slices.Concat(lockCommands, stringCommands, genericCommands, scriptCommands, pubsubCommands,
		connectionCommands, serverCommands))
})

var lockCommands = []*command{
	{name: "lock", arity: -3, flags: write | fast, keys: oneKey, group: "lock", run: runLock,
		summary: "LOCK key ttl-ms [TOKEN token]: acquire a lock, unless somebody holds it"},
	{name: "unlock", arity: 3, flags: write | fast, keys: oneKey, group: "lock", run: runUnlock,
		summary: "UNLOCK key token: release a lock that the token holds"},
	{name: "extend", arity: 4, flags: write | fast, keys: oneKey, group: "lock", run: runExtend,
		summary: "EXTEND key token ttl-ms: set the remaining TTL of a lock that the token holds"},
}

var stringCommands = []*command{
	{name: "set", arity: -3, flags: write | denyOOM, keys: oneKey, group: "string", since: "1.0.0", run: runSet,
		summary: "Set the string value of a key"},
	{name: "setnx", arity: 3, flags: write | denyOOM | fast, keys: oneKey, group: "string", since: "1.0.0", run: runSetNX,
		summary: "Set the value of a key, only if the key does not exist"},
	{name: "setex", arity: 4, flags: write | denyOOM, keys: oneKey, group: "string", since: "2.0.0", run: runSetEX,
		summary: "Set the value and expiration of a key"},
	{name: "psetex", arity: 4, flags: write | denyOOM, keys: oneKey, group: "string", since: "2.6.0", run: runPSetEX,
		summary: "Set the value and expiration in milliseconds of a key"},
	{name: "get", arity: 2, flags: readOnly | fast, keys: oneKey, group: "string", since: "1.0.0", run: runGet,
		summary: "Get the value of a key"},
	{name: "strlen", arity: 2, flags: readOnly | fast, keys: oneKey, group: "string", since: "2.2.0", run: runStrlen,
		summary: "Get the length of the value stored in a key"},
}

var allKeys = keySpec{first: 1, last: -1, step: 1}

var genericCommands = []*command{
	{name: "exists", arity: -2, flags: readOnly | fast, keys: allKeys, group: "generic", since: "1.0.0", run: runExists,
		summary: "Determine if a key exists"},
	{name: "ttl", arity: 2, flags: readOnly | fast, keys: oneKey, group: "generic", since: "1.0.0", run: runTTL,
		summary: "Get the time to live for a key in seconds"},
	{name: "pttl", arity: 2, flags: readOnly | fast, keys: oneKey, group: "generic", since: "2.6.0", run: runPTTL,
		summary: "Get the time to live for a key in milliseconds"},
	{name: "expiretime", arity: 2, flags: readOnly | fast, keys: oneKey, group: "generic", since: "7.0.0", run: runExpireTime,
		summary: "Get the expiration Unix timestamp for a key"},
	{name: "pexpiretime", arity: 2, flags: readOnly | fast, keys: oneKey, group: "generic", since: "7.0.0", run: runPExpireTime,
		summary: "Get the expiration Unix timestamp for a key in milliseconds"},
	{name: "type", arity: 2, flags: readOnly | fast, keys: oneKey, group: "generic", since: "1.0.0", run: runType,
		summary: "Determine the type stored at key"},
	{name: "expire", arity: -3, flags: write | fast, keys: oneKey, group: "generic", since: "1.0.0", run: runExpire,
		summary: "Set a key's time to live in seconds"},
	{name: "pexpire", arity: -3, flags: write | fast, keys: oneKey, group: "generic", since: "2.6.0", run: runPExpire,
		summary: "Set a key's time to live in milliseconds"},
	{name: "expireat", arity: -3, flags: write | fast, keys: oneKey, group: "generic", since: "1.2.0", run: runExpireAt,
		summary: "Set the expiration for a key as a UNIX timestamp"},
	{name: "pexpireat", arity: -3, flags: write | fast, keys: oneKey, group: "generic", since: "2.6.0", run: runPExpireAt,
		summary: "Set the expiration for a key as a UNIX timestamp specified in milliseconds"},
	{name: "persist", arity: 2, flags: write | fast, keys: oneKey, group: "generic", since: "2.2.0", run: runPersist,
		summary: "Set the time to live of a key to ttl_max"},
	{name: "del", arity: -2, flags: write, keys: allKeys, group: "generic", since: "1.0.0", run: runDel,
		summary: "Delete a key"},
	{name: "unlink", arity: -2, flags: write | fast, keys: allKeys, group: "generic", since: "4.0.0", run: runDel,
		summary: "Delete a key, as DEL"},
	{name: "wait", arity: 3, flags: noScript, group: "generic", since: "3.0.0", run: runWait,
		summary: "Wait for replication: there are no replicas to wait for"},
}

const (
	scripting     = noScript | stale | skipMonitor | noMandatoryKeys | movableKeys
	readingScript = scripting | readOnly
)

var scriptKeys = keySpec{numkeys: 2}

var scriptCommands = []*command{
	{name: "eval", arity: -3, flags: scripting, keys: scriptKeys, group: "scripting", since: "2.6.0", run: runEval,
		summary: "Execute a Lua script server side"},
	{name: "evalsha", arity: -3, flags: scripting, keys: scriptKeys, group: "scripting", since: "2.6.0", run: runEvalSHA,
		summary: "Execute a Lua script server side"},
	{name: "eval_ro", arity: -3, flags: readingScript, keys: scriptKeys, group: "scripting", since: "7.0.0", run: runEval,
		summary: "Execute a read-only Lua script server side"},
	{name: "evalsha_ro", arity: -3, flags: readingScript, keys: scriptKeys, group: "scripting", since: "7.0.0", run: runEvalSHA,
		summary: "Execute a read-only Lua script server side"},
	{name: "script", arity: -2, group: "scripting", since: "2.6.0",
		summary: "A container for Lua scripts management commands", subs: []*command{
			{name: "load", arity: 3, flags: noScript | stale, since: "2.6.0", run: runScriptLoad,
				summary: "Load the specified Lua script into the script cache."},
			{name: "exists", arity: -3, flags: noScript, since: "2.6.0", run: runScriptExists,
				summary: "Check existence of scripts in the script cache."},
			{name: "flush", arity: -2, flags: noScript, since: "2.6.0", run: runScriptFlush,
				summary: "Remove all the scripts from the script cache."},
		}},
}

const handshake = noScript | loading | stale | fast | noAuth | allowBusy

var connectionCommands = []*command{
	{name: "hello", arity: -1, flags: handshake, group: "connection", since: "6.0.0", run: runHello,
		summary: "Handshake with Redis"},
	{name: "auth", arity: -2, flags: handshake, group: "connection", since: "1.0.0", run: runAuth,
		summary: "Authenticate to the server"},
	{name: "quit", arity: -1, flags: handshake | subscribedToo, group: "connection", since: "1.0.0", run: runQuit,
		summary: "Close the connection"},
	{name: "reset", arity: 1, flags: handshake | subscribedToo, group: "connection", since: "6.2.0", run: runReset,
		summary: "Reset the connection"},
	{name: "select", arity: 2, flags: loading | stale | fast, group: "connection", since: "1.0.0", run: runSelect,
		summary: "Change the selected database for the current connection"},
	{name: "ping", arity: -1, flags: fast | subscribedToo, group: "connection", since: "1.0.0", run: runPing,
		summary: "Ping the server"},
	{name: "echo", arity: 2, flags: loading | stale | fast, group: "connection", since: "1.0.0", run: runEcho,
		summary: "Echo the given string"},
	{name: "readonly", arity: 1, flags: loading | stale | fast, group: "cluster", since: "3.0.0", run: runOK,
		summary: "Enables read queries on a replica: accepted, there is none"},
	{name: "readwrite", arity: 1, flags: loading | stale | fast, group: "cluster", since: "3.0.0", run: runOK,
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
		summary: "Set the current connection name"},
	{name: "getname", arity: 2, flags: plainClient, since: "2.6.9", run: runClientGetName,
		summary: "Get the current connection name"},
	{name: "setinfo", arity: 4, flags: plainClient, since: "7.2.0", run: runClientSetInfo,
		summary: "Set client or connection specific info"},
	{name: "list", arity: -2, flags: adminClient, since: "2.4.0", run: runClientList,
		summary: "Get the list of client connections"},
	{name: "info", arity: 2, flags: plainClient, since: "6.2.0", run: runClientInfo,
		summary: "Returns information about the current client connection."},
	{name: "kill", arity: -3, flags: adminClient, since: "2.4.0", run: runClientKill,
		summary: "Kill the connection of a client"},
	{name: "no-evict", arity: 3, flags: adminClient, since: "7.0.0", run: runOnOff,
		summary: "Set client eviction mode: accepted, no client is ever evicted"},
	{name: "no-touch", arity: 3, flags: plainClient, since: "7.2.0", run: runOnOff,
		summary: "Control whether commands alter access times: accepted, there are none"},
	{name: "reply", arity: 3, flags: plainClient, since: "3.2.0", run: runClientReply,
		summary: "Instruct the server whether to reply to commands"},
	{name: "tracking", arity: -3, flags: plainClient, since: "6.0.0", run: runClientTracking,
		summary: "Client side caching: not supported"},
}
