// Package sim runs the shipping engine, package quorum as it is, in a world that one number decides: a few proxies and
// clients over simulated masters, in a testing/synctest bubble, where time passes only when everything waits.
//
// The life of one seed:
//
//	plan       the number becomes a world: how many masters, how their clocks run, what clients do, what goes wrong
//	world      the events: each at an instant of its own, so that no order is left to the scheduler
//	proxy      a quorum.Engine whose connections are simulated
//	conn       a connection: bytes that travel, are late, are cut into pieces, and arrive after they were given up
//	server     a master: an event loop, a clock of its own, keys that expire by it, our Lua text run by an interpreter
//	client     takes, holds, extends and gives back locks, as well-behaved and as badly as clients do
//	faults     breaks the rest, and in the end makes it whole again
//	front      in some worlds clients speak to the shipping front end, over simulated connections
//	checker    says what must never be: two holders, a key for ever, an attempt without end, an orphan, a leak
//
// Two in five worlds aim at a class of holes (aims.go). A seed names the classes that its world is of, and a number: seed.go
// lists the classes. Where clients speak the protocol (front.go, wire.go, speech.go, speaker.go, hearing.go, listen.go), the other
// classes have files of their own for it: speaker_votes.go, speaker_several.go, speaker_readers.go, speaker_operated.go.
//
// Reading order: plan.go, aims.go, world.go, conn.go, server.go with store.go, commands.go and lua.go, client.go, faults.go,
// checker.go.
//
// What a seed does not decide: which of two timers goes first that come due at one instant. A bubble draws lots for that, so
// that nothing relies on it. The world keeps its own events apart, but an engine's tickers meet every 100 ms, and where
// the proxies slept just before, it matters which of them finds out first. Of worlds with that fault about one in five runs
// another way the second time; of others about one in a thousand. So a replay that does not show what a soak has found is to be repeated.
//
// What it cannot do: stop the goroutines of one proxy while time passes. A proxy that is suspended hears nothing from
// its masters and its clients nothing from it, but its timers run.
package sim
