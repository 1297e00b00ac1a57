package quorum

import (
	"time"

	"lockproxy/quorum/masters"
)

// A master that is far away is sent the next batch while answers to earlier batches are under way, so that no request waits for a
// round trip before its own. docs/proofs.md, "Several batches under way", has the consequences, and why no promise gets weaker.

// A flight is the batches of one connection that are under way: written, and not handed out yet, in the order of the writes. It
// belongs to the lane's loop, but for its reader: a goroutine that receives the answers, one batch after the other.
type flight struct {
	engine  *Engine
	conn    masters.Conn
	batches []*batch
	read    int           // how many batches, from the first on, are answered or lost
	written chan *batch   // to the reader; nil until there is a reader
	done    chan struct{} // one for each batch that the reader is done with, in order

	wrote    instant // when the latest batch was written
	requests int     // of all batches
	bytes    int
}

// The most that may be under way when a batch is written behind others.
const (
	flightMost         = 16
	flightMostRequests = batchMax
	flightMostBytes    = 64 << 10
)

func (f *flight) isEmpty() bool { return len(f.batches) == 0 }

// write sends a batch. If that fails, the connection is closed, and the reader finds the batch lost.
func (f *flight) write(b *batch) {
	if f.written == nil {
		f.written, f.done = make(chan *batch, flightMost+1), make(chan struct{}, flightMost+1)
		go f.receive(f.written)
	}
	b.proof.sent = f.engine.now()
	b.bytes = b.size()
	if f.conn.Send(b.calls) != nil {
		_ = f.conn.Close()
	}
	f.batches, f.wrote = append(f.batches, b), b.proof.sent
	f.requests, f.bytes = f.requests+len(b.requests), f.bytes+b.bytes
	f.written <- b
}

// receive is the reader. receive ends when written is closed.
func (f *flight) receive(written <-chan *batch) {
	for b := range written {
		b.err = f.conn.Receive(b.calls)
		b.proof.received = f.engine.catchUp()
		f.done <- struct{}{}
	}
}

// hasAnswer says whether the first batch is answered or lost.
func (f *flight) hasAnswer() bool {
	if f.read == 0 {
		select {
		case <-f.done:
			f.read++
		default:
		}
	}
	return f.read > 0
}

// take returns the first batch, which is answered or lost, and forgets the batch.
func (f *flight) take() *batch {
	b := f.batches[0]
	f.batches, f.read = f.batches[1:], f.read-1
	f.requests, f.bytes = f.requests-len(b.requests), f.bytes-b.bytes
	return b
}

// drain waits until all batches are answered or lost. Then the connection is free for an Exec.
func (f *flight) drain() {
	for ; f.read < len(f.batches); f.read++ {
		<-f.done
	}
}

// end ends the reader of a connection that was closed. All batches are answered or lost then.
func (f *flight) end() {
	if f.written != nil {
		f.drain()
		close(f.written)
	}
}

// wait returns how long the next batch is to gather requests before it is written behind the others; false if no batch may be written
// before an answer comes.
func (f *flight) wait(now instant, trip time.Duration) (time.Duration, bool) {
	//mutant: a master that stands still is sent more and more
	if now-f.batches[0].proof.sent >= latePart*trip {
		return 0, false
	}
	if len(f.batches) >= flightMost || f.requests >= flightMostRequests || f.bytes >= flightMostBytes {
		return 0, false
	}
	if len(f.batches) < flightFew {
		return 0, true
	}
	return f.wrote + trip/gatherPart - now, true
}

// latePart says when the first answer is late: after so many round trips. Then the master may stand still, and cannot run late the
// commands that are not sent.
const latePart = 2

// Behind fewer than flightFew batches the next is written at once. Behind more, the next gathers requests until one gatherPart-th of
// the round trip is over since the latest write: then a request waits for half of the part on average, and batches stay as large as
// they can.
const (
	flightFew  = 4
	gatherPart = 12
)

// A distance is how long a master's fastest answers take lately, without the master's time for the commands.
type distance struct{ trip time.Duration }

// learn takes the round trip of a batch. Of a long batch, the master has told by its own clock how long the commands took.
func (d *distance) learn(p *proof) {
	trip := p.received - p.sent
	first, ok1 := micros(&p.first)
	last, ok2 := micros(&p.last)
	if p.long && ok1 && ok2 && last > first {
		trip = max(trip-(last-first), 0)
	}
	if d.trip == 0 || trip < d.trip {
		d.trip = trip
		return
	}
	// Where processors are busy most answers are late: the way is only as long as the fastest.
	d.trip += (trip - d.trip) / 256
}
