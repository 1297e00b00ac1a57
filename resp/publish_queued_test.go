package resp

import (
	"testing"
	"time"

	"lockproxy/quorum"
)

// publishing is a transaction that takes k and tells so. queuedThree is what its client is told before the reply to EXEC.
var publishing = words("MULTI") + words("SETNX k v") + words("PUBLISH c m") + words("ECHO x") + words("EXEC")

const queuedThree = "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"

// A transaction's message is published when the rest has taken place, and EXEC is answered behind that. What follows EXEC comes after all
// of it. A server that shuts down waits for it.
func TestATransactionPublishesWhenItHasTakenPlace(t *testing.T) {
	for _, limits := range []Limits{{}, {Pipeline: 1}} {
		r := newRig(t, Config{Limits: limits})
		arrived := r.engine.hold()
		c := r.dial()
		c.send(publishing + words("GET k"))
		<-arrived
		r.engine.release(0)
		if name := <-arrived; name != "publish c" {
			t.Fatal(name)
		}
		done := r.shutDown()
		waitFor(t, "the server does not shut down", r.isClosing)
		r.engine.release(0)
		c.want(queuedThree + "*3\r\n:1\r\n:0\r\n$1\r\nx\r\n")
		_ = c.Close()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestATransactionThatIsTooLatePublishesNothing(t *testing.T) {
	r := newRig(t, Config{})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(publishing + words("GET k"))
	<-arrived
	r.engine.slept.Store(int64(2 * time.Hour))
	r.engine.release(0)
	c.want(queuedThree + string(errorReply(quorum.ErrLate).AppendTo(nil, false)))
	if name := <-arrived; name != "get k" {
		t.Error(name)
	}
	r.engine.release(0)
	c.reply()
}
