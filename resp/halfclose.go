package resp

import (
	"errors"
	"time"
)

// Half-close. A client that has shut down its sending side may still read, as nc does at the end of its input; nearly always it is
// gone. The two look alike until something is written. So its commands are run and answered, as by Redis, but a command that waits
// for something is given up. Unlike Redis, the proxy gives it no lock: if the client is gone, nobody could have that lock until its
// TTL is over.

// errNotGiven is the reply in place of a lock.
var errNotGiven = errors.New("ERR no lock is given to a client that has shut down its sending side, as one does that is gone: " +
	"keep the connection open until the reply")

// hearMax is how long the last commands of such a client may take, as where the upstream hangs. Until they are done, a client that
// is most probably gone counts as one that is there.
const hearMax = 5 * time.Second

// hearEnd notes that the client sends nothing more. Its commands are run and answered for a while.
func (r *reader) hearEnd() {
	s := r.session
	r.news = make(chan struct{}, 1)
	s.replies.noteSentAll(r.news)
	patience := min(hearMax, s.server.cfg.Limits.Write)
	r.patience = time.AfterFunc(patience, func() { s.kill("it sends nothing more, and its last command takes too long") })
}

// hearOut waits until all commands of such a client are answered that will be. The connection is of no more use then.
func (r *reader) hearOut() {
	defer r.patience.Stop()
	r.line.Leave() // nothing more is begun
	r.session.uplink.endBlocked()
	r.session.stop("the client sends nothing more")
	for !r.session.replies.answered() {
		<-r.news
	}
}

// noteSentAll withholds the locks whose replies are ready to be written. resolve withholds those that come later.
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

// answered says whether nothing more will be written. A command that waits will not be answered, nor any behind it.
func (r *replies) answered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written || r.gone || r.head != nil && r.head.waits && r.batch == nil
}

// withhold undoes a lock whose reply is not written, if it was taken, and makes the reply say so. A LOCK … WAIT or HOLD that is
// refused gets the same reply: null would say that somebody else holds the lock, and that may be an earlier connection of this
// client that is gone, which nobody has noticed yet.
func (sl *slot) withhold(o *outcome) {
	//mutant: who has shut down its sending side is given a lock
	if o.lock != nil && o.taken || sl.waits && o.done == 0 && o.err == nil {
		o.abandon()
		*o = outcome{err: errNotGiven}
	}
}
