// Package wire is RESP itself, as a client and a server write it: requests and their limits (Parser, inline commands), replies in both
// protocols (Reply), where the replies of a server end (Framer), and how Redis reads numbers, patterns and letters.
//
// Bytes enter; commands, replies and their bytes leave. The package does no I/O, starts no goroutine and keeps nothing between calls
// but what a Parser or a Framer holds of one connection. A Parser and a Framer are for one goroutine at a time.
//
// Promised: no bytes make the package panic; no length that is only announced is allocated; a request beyond Limits is refused, in
// Redis's words where Redis has the same limit.
package wire
