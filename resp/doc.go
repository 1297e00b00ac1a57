// Package resp is the side of lockproxy seen by Redis clients: connections, the protocol, and the commands.
//
// # The life of one request
//
//	client ──bytes──► reader: input ─► parser ─► dispatch ─► handler ──► Engine
//	                                                │           │          │
//	                                            the replies'    │       outcome
//	                                             queue  ◄─ slot ┘          │
//	client ◄─bytes─── writer ◄─── slots, in order ◄────────────────────────┘
//
// A session is one connection with two goroutines. The reader puts the arriving bytes into its input, and the parser finds commands there,
// in whatever pieces the bytes come. dispatch looks the name up in the command table, and takes the command past a list of checkpoints to
// the row's handler; Redis's checks before a command runs are among the checkpoints. A handler has two ways to answer: at once with a Reply, or
// by claiming a slot, giving the slot's callback to the Engine, and returning nil. A command may have to wait for an earlier command on
// its key, or for the upstream. Then the reader waits in await (reader.go), and goes on reading meanwhile. Either way the command has its
// place in the queue before the next command is parsed: pipelined commands are under way together. The writer takes the ready slots from
// the head of the queue, makes replies of the outcomes, and writes the replies in one go. Only the writer writes the proxy's replies.
//
// A session is made of parts. Each part has its own state, and a mutex where several goroutines use the state:
//
//	reader          finds commands, and runs them
//	replies         the order of replies: slots, claimed by commands and filled by outcomes. Its backlog is how much the slots take; its
//	                waker wakes the reader
//	writer          writes the replies that are ready
//	identity        user, database, name, protocol of the client
//	account         the client's share of the memory budget
//	subscriptions   the client's topics; messages come in here
//	holds           the locks that live as long as the connection
//	waits           LOCK … WAITs under way
//	uplink          the way to the upstream
//	ending          why the connection ends
//
// The Server has the parts shared by all sessions:
//
//	sessions   the sessions of this moment
//	relief     ends clients when memory or places are spent
//	refusals   clients being turned away
//	journal    lines for the log
//	takers     which client took which lock
//	hottest    the keys that clients contend for
//	groups     waits, holds and refusals by groups of keys
//	router     where a command is served, if there is an upstream
//
// A message from a channel enters the queue, too: behind the reply that confirms or ends a subscription, and in front of commands that wait
// for their outcomes. LOCK … WAIT waits in a gate. LOCK … HOLD leaves a hold with the connection.
//
// Where there is an upstream, router.go finds the commands that are not about locks, and upstream_forward.go sends them on, over
// the session's own link (upstream_link.go). A relay, the session's third goroutine, takes the replies to the client when their turn in
// the queue comes (upstream_relay.go). Only one of writer and relay writes at a time.
//
// The files, in reading order:
//
//	table.go, command.go            the command table; the parts of a row (usage.go)
//	server.go, session.go           connections and their parts; how a connection ends (ending.go)
//	reader.go, input.go, dispatch.go  how a command is found (package wire), the way past the checkpoints, and the run
//	claim.go, slot.go, replies.go,  the command's place in the order of replies, and the commands that it may overlap; how replies are
//	overlap.go, backlog.go, turn.go,  written
//	writer.go
//	reply.go                        the kinds of reply (package wire), and the errors in Redis's words
//	config.go                       the needs of the package: settings, and the engine
//	cmd_*.go                        the handlers, by group
//	plan*.go, names.go              commands that read and change at one moment
//	transaction.go                  MULTI: the queued commands, and the watched keys
//	hold*.go, waits.go,             locks that a connection has or waits for, and its topics
//	subscriptions.go
//	halfclose.go, refusals.go       clients gone; clients being turned away
//	budget.go, relief.go,           memory for all clients together; who goes when memory is spent; clients that have still to log in
//	sessions.go, strangers.go
//	identity.go, warn.go,           clients in CLIENT LIST, in the log, in INFO
//	errorstats.go
//	takers.go, audit.go             the client of a lock; the events for the audit log and the groups (package group)
//	hottest.go                      refusals and waits: the keys that clients contend for (package hot), and the groups
//	calls.go, cmd_slow.go           the calls of each command, for INFO commandstats and LATENCY; slow commands (package slowlog)
//	expiry.go                       how times are read; package wire reads numbers, patterns and letters
//	router*.go,                     commands that are not about locks: where a command is served, and the way there;
//	upstream_forward.go             package upstream knows the server
//	uplink.go, upstream_link.go,    over the session's own link, which follows the client to another database
//	upstream_relay.go,
//	upstream_transaction.go,        MULTI with an upstream, the proxy's own requests, and the upstream's part in a drain
//	upstream_ask.go,
//	upstream_drain.go
//
// To add a command: a row in the table, a handler beside its siblings, lines in the tests that compare with Redis. A handler parses
// first, then claims, then acts. The handler returns its reply; or nil, if a claimed slot gets the reply. A claim without
// a slot says that the connection is ending: the handler does nothing.
//
// # Promises
//
// Replies come in the order of the commands, and no reply is held back by a later command that waits. Commands on one key reach the Engine in
// the client's order, and a command that reads first and compares then has the key to itself.
//
// A lock is answered as acquired only if its validity lasts at the moment of writing. A lock is undone if its reply is not written, because
// the reply came too late, the client was gone, or the write failed half way. The reader goes on reading while commands wait, so that
// a hang-up of the client is noticed at once (halfclose.go).
//
// Limits bound all input of a client, before and after login; an announced length is not allocated before the bytes arrive; a
// bug met on one connection ends that connection alone. For these promises the package reads by itself, and leaves only the encoding of replies to
// redcon, which reads without limits.
//
// # Lock order
//
// A goroutine that holds a mutex takes only mutexes further down, or further right:
//
//	Server.mu, hold.order
//	holds.mu, uplink.mu
//	replies.mu
//	waits.mu, relief.mu
//	sessions.mu
//	account.mu
//	strangers.mu
//
// The mutexes of identity, subscriptions, ending, and of counts and rare log lines, are taken last: their holders take at most account.mu. A lock is
// abandoned with replies.mu held, so the Engine's mutexes come behind all of these.
//
// # Not promised
//
// That the client got a reply that was written: when the client dies, the reply may still be in the network. Then the lock lives for its
// TTL. A client that shuts down only its sending side is answered, but gets no lock: most probably the client is gone (halfclose.go).
package resp
