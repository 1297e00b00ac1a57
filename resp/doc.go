// Package resp is what a Redis client sees of lockproxy: connections, the protocol, and the commands.
//
// # The life of one request
//
//	client ──bytes──► reader: input ─► parser ─► dispatch ─► handler ──► Engine
//	                                                │           │          │
//	                                            the replies'    │       outcome
//	                                             queue  ◄─ slot ┘          │
//	client ◄─bytes─── writer ◄─── slots, in order ◄────────────────────────┘
//
// A session is one connection with two goroutines. The reader takes the arriving bytes into its input, and the parser finds commands there,
// in whatever pieces the bytes come. dispatch looks the name up in the command table, and takes the command past a list of checkpoints to
// the row's handler; the checks that Redis makes before a command runs are among the checkpoints. A handler either answers at once with a
// Reply, or claims a slot, gives the slot's callback to the Engine, and returns nil. A command may have to wait for an earlier command on
// its key, or for the upstream. Then the reader waits in await (reader.go), and goes on reading meanwhile. Either way the command has its
// place in the queue before the next command is parsed: pipelined commands are under way together. The writer takes the ready slots from
// the head of the queue, makes replies of their outcomes, and writes the replies in one go. Only the writer writes replies of the proxy.
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
// The Server has the parts that all sessions share: sessions (those of this moment), relief (who is ended when memory or places are
// spent), refusals (clients that are turned away), journal (what the log is told), takers (who took which lock), hottest (which keys clients contend for), router (what is not about locks).
//
// A message from a channel enters the queue, too: behind the reply that confirms or ends a subscription, and in front of commands that wait
// for their outcomes. LOCK … WAIT waits in a gate. LOCK … HOLD leaves a hold with the connection.
//
// Where there is an upstream, router.go says which commands are not about locks, and upstream_forward.go sends them on.
// They go over the session's own link (upstream_link.go): a relay, the session's third goroutine, takes the replies to the client
// when it is their turn in the queue (upstream_relay.go). Of writer and relay, one writes at a time.
//
// The files, in reading order:
//
//	table.go, command.go            the command table; what a row has (flags.go, keyspec.go, usage.go)
//	server.go, session.go           connections and their parts; how a connection ends (ending.go)
//	reader.go, input.go, dispatch.go  how a command is found (package wire), its way past the checkpoints, and its run
//	claim.go, slot.go, replies.go,  the command's place in the order of replies, and the commands that it may overlap; how replies are
//	overlap.go, backlog.go, turn.go,  written
//	waker.go, writer.go
//	reply.go, texts.go              what they look like (package wire), and the errors in Redis's words
//	engine.go, config.go            what the package needs of others
//	cmd_*.go                        the handlers, by group
//	plan*.go, names.go              commands that read and change at one moment
//	transaction.go                  MULTI: what is queued, and what is watched
//	hold*.go, waits.go,             locks that a connection has, or waits for, and its topics
//	subscriptions.go
//	tracking.go                     CLIENT TRACKING: clients cache nothing
//	halfclose.go, janitor.go        clients that are gone or slow
//	refusals.go, protected.go       clients that are turned away
//	budget.go, account.go,          what all clients together may take; who goes when that is spent; those that have still
//	relief.go, sessions.go,           to log in, and what their TLS handshakes take
//	strangers.go, metered.go
//	load.go                         clients that wait until the engine can answer in time
//	identity.go, warn.go,           what is told of clients: by CLIENT LIST, in the log, by INFO
//	errorstats.go
//	takers.go, audit.go             whose lock it is; what the audit log is told
//	hottest.go                      the keys that clients contend for (package hot)
//	calls.go                        the calls of each command, for INFO commandstats
//	expiry.go                       how times are read; package wire reads numbers, patterns and letters
//	router*.go,                     the way of what is not about locks: where a command is served, and how it is sent on;
//	upstream_forward.go             package upstream knows the server
//	uplink.go, upstream_link.go,    over the session's own link, which follows the client to another database
//	upstream_relay.go,
//	upstream_select.go
//	upstream_transaction.go,        MULTI where there is an upstream, what the proxy asks it, and its part in a drain
//	upstream_ask.go,
//	upstream_drain.go
//
// To add a command: a row in the table, a handler beside its siblings, lines in the tests that compare with Redis. A
// handler parses first, then claims, then acts. It returns its reply; or nil, if the slot that it claimed gets the reply. A claim that
// returns no slot says that the connection is ending: the handler does nothing.
//
// # Promises
//
// Replies come in the order of the commands, and none is held back by a later command that waits. Commands on one key
// reach the Engine in the order of the client's sending, and those that read first and compare then have it to
// themselves.
//
// A lock is answered as acquired only if its validity lasts at the moment of writing. A lock whose reply was not
// written, because that came too late, or the client was gone, or the write failed half way, is undone. The reader goes
// on reading while commands wait, so that a client that hangs up is noticed at once (halfclose.go).
//
// Whatever clients send is bounded, by Limits, before and after they log in; what one of them announces is not
// allocated before it arrives; and a bug met on one connection ends that connection alone. This is why the package
// reads by itself and leaves to redcon, which reads without limits, only the encoding of replies.
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
// The mutexes of identity, subscriptions, ending, and of what counts or is told seldom, are taken last: their holders take at most
// account.mu. A lock is abandoned with replies.mu held, so the Engine's mutexes come behind all of these.
//
// # Not promised
//
// That the client got a reply that was written: it may still be in the network when the client dies. Then the lock
// lives for its TTL. A client that shuts down only its sending side is answered, but gets no lock: it is most probably
// gone (halfclose.go).
package resp
