// Package chaos breaks real masters, links and proxies, one fault after another, while clients work under locks, and
// counts the updates that a lock failed to guard. There must be none.
//
// Workers take a lock, read a counter from a file, think, write it back and append to a log (ledger_test.go): nothing
// but the lock keeps two of them apart. Half of them lock as any Redis client does, with SET NX PX and a script, the
// others with LOCK and EXTEND (clients_test.go). A worker trusts its lock for the TTL counted from its own request,
// less drift, and looks at the clock before it writes and again after: a write that came too late all the same, because
// the worker itself was paused, is counted apart (overran), as no lock with a timeout can prevent it.
//
// All acquisitions, extensions and releases are recorded, and checked against a model of a lock that expires
// (history_test.go). The faults are the rows of a table (faults_test.go). Each row ends with a line that says what
// clients saw and for how long service was gone.
//
// What one fault can do alone is shown step by step, and without chance, by forget_test.go: there the same faults make
// redsync, the best-known library, hold a lock twice, which proves that they bite.
//
//	go test ./integration/chaos                                  every fault once, some 90 seconds
//	go test ./integration/chaos -run NoFault -duration 10m -v    one fault after another, the last begun within that time
//	go test ./integration/chaos -run NoFault/flushed -v          one row
package chaos
