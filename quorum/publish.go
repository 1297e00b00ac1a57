package quorum

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
)

// Published is the outcome of a Publish.
type Published struct {
	Err error // *NoQuorum, ErrClosed; the message may be delivered all the same
	// Receivers is, by master, how many subscriptions of the master's connections the message met; -1 if unknown.
	Receivers []int64
}

// published is the outcome of a PUBLISH.
func (p Polled) published() Published {
	counts := make([]int64, len(p.Replies))
	for i, reply := range p.Replies {
		n, ok := reply.(int64)
		if !ok {
			n = -1
		}
		counts[i] = n
	}
	return Published{p.Err, counts}
}

// A message that is published on N masters comes back N times, and two messages may be alike. So each message travels in an
// envelope that names the publication: by a label, the same for all masters, and by the message's number among the messages of a
// script.
//
//	lockproxy:<publisher, 16 hex digits><sequence, 12 hex digits><part, 4 hex digits>:<the client's message>
const (
	labelPrefix  = "lockproxy:"
	publisherLen = 16
	orderLen     = 16 // sequence and part
	envelopeLen  = len(labelPrefix) + publisherLen + orderLen + len(":")
	partBits     = 16
)

// ShardPrefix is put before the names of sharded channels. To masters sharded channels are channels like others.
const ShardPrefix = "lockproxy:shard:"

// BellPrefix begins the names of the channels on which masters ring when a key that was locked is deleted, or is to expire sooner.
// The rest of the name is the key. These messages have no envelope. They are empty, or name a handover (package gate).
const BellPrefix = "lockproxy:released:"

// A Publication names the publication of which a message is a copy.
type Publication struct {
	Publisher string // a run of a lockproxy
	Order     uint64 // later publications of a publisher have a greater Order
}

// labels are handed out by one engine.
type labels struct {
	publisher string
	sequence  atomic.Uint64
}

func (l *labels) init() {
	var b [publisherLen / 2]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand crashes the program instead
	l.publisher = hex.EncodeToString(b[:])
}

// next returns the label of a publication that is about to be sent.
func (l *labels) next() string {
	n := l.sequence.Add(1) << partBits >> partBits
	return fmt.Sprintf("%s%s%0*x", labelPrefix, l.publisher, orderLen-partBits/4, n)
}

// seal puts a message into its envelope. The wrapper of voted scripts does the same in Lua.
func seal(label string, part uint16, message string) string {
	return fmt.Sprintf("%s%0*x:%s", label, partBits/4, part, message)
}

// OpenEnvelope returns the publication and the message of a master's payload. OpenEnvelope returns false if no lockproxy sealed the
// payload.
func OpenEnvelope(payload string) (p Publication, message string, ok bool) {
	if len(payload) < envelopeLen || !strings.HasPrefix(payload, labelPrefix) || payload[envelopeLen-1] != ':' {
		return Publication{}, "", false
	}
	id := payload[len(labelPrefix) : envelopeLen-1]
	order, err := strconv.ParseUint(id[publisherLen:], 16, 64)
	return Publication{Publisher: id[:publisherLen], Order: order}, payload[envelopeLen:], err == nil
}
