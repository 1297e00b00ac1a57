package upstream

import (
	"sync"
	"testing"
)

// When a shared connection ends, all clients want to know the server's commands at once. One of them asks.
func TestManyClientsAskForTheCommandsOnce(t *testing.T) {
	s := &server{t: t, reply: "*1\r\n*6\r\n$3\r\nget\r\n:2\r\n*0\r\n:1\r\n:1\r\n:1\r\n"}
	s.start()
	defer s.stop()
	u := New(Options{Addr: s.addr})
	defer u.Close()
	start := make(chan struct{})
	var clients sync.WaitGroup
	for range 50 {
		clients.Go(func() {
			<-start
			if known, err := u.Commands(); err != nil || !known.Has("get") {
				t.Errorf("%v, %v", known, err)
			}
		})
	}
	close(start)
	clients.Wait()
	s.mu.Lock()
	n := len(s.conns)
	s.mu.Unlock()
	if n != 1 {
		t.Errorf("they asked over %d connections", n)
	}
}
