// Package pubsub brings the messages that are published on N masters to the clients of this proxy, each once.
//
// A message goes to all masters, by Engine.Publish or from a script that a quorum runs, in an envelope that names its
// publication. A hub has one connection to each master, a link, and subscribes on all of them to what local clients
// want: with the first client of a topic, until the last one leaves. The copies that come back pass the sieve, which
// lets one of them through:
//
//	master 1 ──copy──► link ─┐
//	master 2 ──copy──► link ─┼─► sieve ──message──► topic ──► subscribers
//	master 3 ──copy──► link ─┘
//
// A subscription is confirmed to the client when a quorum of masters has confirmed it, so that whatever is published
// from then on, by anybody, is heard. A link that breaks is made anew, with all subscriptions. It rings the bells that it
// may miss until then, and so does one whose master has gone silent.
//
// Promises: sieve.go. Not promised: what is published while more than N-q links are down at once. What somebody
// publishes on masters past all lockproxies has no envelope, and is not delivered.
//
// Lock order: the hub's mu, then whatever subscribers lock.
package pubsub
