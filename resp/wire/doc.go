// Package wire is RESP itself, as a client and a server write it: requests and their limits (Parser, inline commands), replies in both
// protocols (Reply), where the replies of a server end (Framer), and how Redis reads numbers, patterns and letters.
//
// Bytes enter; commands, replies and the bytes of both leave. The package does no I/O and starts no goroutine. Between calls, only a
// Parser or a Framer holds state, of one connection. A Parser and a Framer are for one goroutine at a time.
//
// Promised: no bytes make the package panic; memory is allocated for bytes that have come, never for an announced length; a request
// beyond Limits is refused, in Redis's words where Redis has the same limit.
package wire
