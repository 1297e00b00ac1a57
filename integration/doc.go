// Package integration tests the lockproxy binary against real processes.
//
//   - The oracle suite (oracle_test.go, testdata/oracle) sends the same requests to a real redis-server and to the
//     proxy in front of 1, 3 and 5 masters and demands the same bytes. Where the proxy must answer differently, the
//     line of the script says so by name: see loosenings.
//   - The differential test (differential_test.go) does so with random sequences.
//   - redis-cli and redis-benchmark run here (tools_test.go); client libraries under clients/, by "make test-clients".
//   - The fault tests (fault_*_test.go) kill, pause, restart and cut off masters under load, and check that no two
//     clients hold one resource, that a failed attempt leaves no key behind, and that service comes back.
//   - chaos, below here, counts the updates that locks failed to guard under one fault after another.
//
// They need redis-server in the PATH and are skipped, with a line that says so, where it is missing; with
// LOCKPROXY_REQUIRE_REDIS=1 that is a failure. LOCKPROXY_REDIS_SERVER names another server for the masters, or several
// with ':' between them, which the masters of a deployment take in turn: "make test-versions" does that. LOCKPROXY_BIN
// names a lockproxy binary to test, in place of building one.
//
// The benchmark is bench, run by "make bench".
package integration
