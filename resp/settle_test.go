package resp

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"lockproxy/quorum"
)

// settled is what a client is told before the reply to EXEC.
const settled = "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"

// inMulti is a transaction on k with commands about the connection, and what follows it.
func inMulti(then string) string {
	return words("MULTI") + words("SETNX k v") + words("SELECT 1") + words("CLIENT SETNAME me") + words("EXEC") + then
}

func TestWhatFollowsExecComesAfterAllOfIt(t *testing.T) {
	for _, limits := range []Limits{{}, {Pipeline: 1}} {
		r := newRig(t, Config{Limits: limits})
		arrived := r.engine.hold()
		c := r.dial()
		c.send(inMulti(words("CLIENT GETNAME") + words("GET k")))
		<-arrived
		r.engine.release(0)
		c.want(settled + "*3\r\n:1\r\n+OK\r\n+OK\r\n$2\r\nme\r\n")
		if name := <-arrived; name != "get k" {
			t.Fatal(name)
		}
		r.engine.release(0)
		c.want("$-1\r\n")
	}
}

func TestALockOfAnExecThatNobodyWaitsForIsUndone(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(inMulti(""))
	<-arrived
	_ = c.Close()
	r.awaitGone()
	r.engine.release(0)
	<-r.engine.onlyLock(t).abandoned
}

func TestShutdownWaitsForAnExec(t *testing.T) {
	r := newRig(t, Config{})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(inMulti(""))
	<-arrived
	done := r.shutDown()
	waitFor(t, "the server does not shut down", r.isClosing)
	r.engine.release(0)
	c.want(settled + "*3\r\n:1\r\n+OK\r\n+OK\r\n")
	_ = c.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// What an EXEC has set is undone if its reply waits behind others for too long, or its client does not wait for it.
func TestAnExecThatIsUndoneLeavesTheConnectionAlone(t *testing.T) {
	for name, gone := range map[string]bool{"too late": false, "client gone": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			arrived := r.engine.hold()
			c := r.dial()
			c.send(words("GET slow") + words("MULTI") + words("SETNX k v") + words("SELECT 1") + words("PUBLISH c m") +
				words("EXEC") + words("GET k"))
			<-arrived
			<-arrived
			r.engine.release(1)
			select {
			case name := <-arrived:
				t.Errorf("%s came before it was clear that EXEC takes place", name)
			case <-time.After(20 * time.Millisecond): // proves nothing when slow, finds what comes too early when not
			}
			if gone {
				_ = c.Conn.(*net.TCPConn).SetLinger(0)
				_ = c.Close()
				<-r.engine.onlyLock(t).abandoned
				r.awaitGone()
				r.engine.release(0)
				if len(arrived) > 0 {
					t.Error(<-arrived)
				}
				return
			}
			r.engine.slept.Store(int64(2 * time.Hour))
			r.engine.release(0)
			c.want("$-1\r\n" + settled + string(errorReply(quorum.ErrLate).AppendTo(nil, false)))
			if name := <-arrived; name != "get k" {
				t.Error(name)
			}
			r.engine.release(0)
			c.reply()
			if got := c.ask("CLIENT", "INFO"); !strings.Contains(got, " db=0 ") {
				t.Error(got)
			}
		})
	}
}

func TestAnExecDoesNotWaitUntilItsClientHasReadAllMessages(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	c.send(words("HELLO 3") + words("SUBSCRIBE a"))
	r.subscribers("a", 1)
	arrived := r.engine.hold()
	c.send(words("MULTI") + words("SETNX k v") + words("PUBLISH c m") + words("EXEC"))
	<-arrived
	r.engine.publish("a", strings.Repeat("x", 12<<20)) // more than the sockets take
	waitFor(t, "the message is not being written", func() bool {
		return slices.ContainsFunc(r.server.clients(), func(s *session) bool { return s.writing.Load() != 0 })
	})
	r.engine.release(0)
	select {
	case name := <-arrived:
		if name != "publish c" {
			t.Error(name)
		}
		r.engine.release(0)
	case <-time.After(patienceMax):
		t.Error("it waits")
	}
}
