package resp

import (
	"errors"
	"time"
)

// Half-close. A client that has shut down its sending side may still read, as nc does at the end of its input; nearly always the client is
// gone. The two look alike until a write. So, as in Redis, the client's commands are run and answered, but a waiting command is given up.
// Unlike Redis, the proxy gives the client no lock: if the client is gone, nobody could have the lock until its TTL is over.

// errNotGiven is the reply in place of a lock.
var errNotGiven = errors.New("ERR no lock is given to a client that has shut down its sending side, as one does that is gone: " +
	"keep the connection open until the reply")

// hearMax is how long the last commands of such a client may take, as where the upstream hangs. Until then a probably dead client stays
// connected.
const hearMax = 5 * time.Second

// hearEnd notes that the client sends nothing more. The client's commands are run and answered for a while.
func (r *reader) hearEnd() {
	s := r.session
	r.news = make(chan struct{}, 1)
	s.replies.noteSentAll(r.news)
	patience := min(hearMax, s.server.cfg.Limits.Write)
	r.patience = time.AfterFunc(patience, func() { s.kill("it sends nothing more, and its last command takes too long") })
}

// hearOut waits until the client has all answers that will come. The connection is of no more use then.
func (r *reader) hearOut() {
	defer r.patience.Stop()
	r.line.Leave() // nothing more is begun
	r.session.uplink.endBlocked()
	r.session.stop("the client sends nothing more")
	for !r.session.replies.answered() {
		<-r.news
	}
}

// noteSentAll withholds the locks whose replies are ready to be written. settle withholds later locks.
func (r *replies) noteSentAll(news chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waker.sentAll = news
	for sl := r.head; sl != nil; sl = sl.next {
		if sl.left == 0 {
			sl.withhold(&sl.out)
		}
	}
}

// answered says whether nothing more will be written. A waiting command gets no answer, nor does any command behind.
func (r *replies) answered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written || r.gone || r.head != nil && r.head.waits && r.batch == nil
}

// withhold undoes a taken lock whose reply is not written, and makes the reply say so. A refused LOCK … WAIT or HOLD gets the same reply:
// null would say that somebody else holds the lock, and the holder may be an earlier connection of this client, gone unnoticed.
func (sl *slot) withhold(o *outcome) {
	//mutant: who has shut down its sending side is given a lock
	if o.lock != nil && o.taken || sl.waits && o.done == 0 && o.err == nil {
		o.abandon()
		*o = outcome{err: errNotGiven}
	}
}
