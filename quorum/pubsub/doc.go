// Package pubsub brings the messages published on N masters to the clients of this proxy, each once.
//
// A message goes to all masters, by Engine.Publish or from a script that a quorum runs. Its envelope names its
// publication. A hub has one connection to each master, a link. On all links the hub subscribes to the topics of local
// clients: with the first client of a topic, until the last one leaves. The returning copies pass the sieve, which lets
// one of them through:
//
//	master 1 ──copy──► link ─┐
//	master 2 ──copy──► link ─┼─► sieve ──message──► topic ──► subscribers
//	master 3 ──copy──► link ─┘
//
// A subscription is confirmed to the client when a quorum of masters has confirmed it. From then on the client gets
// every message, from any publisher. A broken link is made anew, with all subscriptions. A broken link rings the bells
// that may be missed meanwhile, and so does a link whose master has gone silent.
//
// Promises: sieve.go. Not promised: messages published while more than N-q links are down at once. Messages that are
// published on masters past all lockproxies have no envelope, and are not delivered.
//
// Lock order: the hub's mu, then the subscribers' locks.
package pubsub
