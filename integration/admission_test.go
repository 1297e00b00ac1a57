package integration

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// More is asked at once than masters answer within an instance_timeout: nobody is told that there is no quorum.
func TestClientsThatAskForMoreThanCanBeAnsweredWaitInLine(t *testing.T) {
	const clients, each = 200, 1024
	p := startProxy(t, harness.Addrs(startMasters(t, 3)), "--instance-timeout", "1s")
	var all sync.WaitGroup
	wrong := make(chan string, clients)
	for i := range clients {
		c := dial(t, p.Addr)
		all.Go(func() {
			var request []byte
			for n := range each {
				request = harness.Encode(request, "SET", fmt.Sprintf("k:%d:%d", i, n), "me", "NX", "PX", "60000")
			}
			if err := c.Send(request); err != nil { // the proxy takes it all, and answers meanwhile less than the socket holds
				wrong <- err.Error()
				return
			}
			for range each {
				if reply, err := c.Reply(); err != nil || string(reply) != "+OK\r\n" {
					wrong <- fmt.Sprintf("%.200q, %v", reply, err)
					return
				}
			}
		})
	}
	lined := false
	watcher, done := dial(t, p.Addr), make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-time.After(10 * time.Millisecond):
		}
		info, err := watcher.Do("INFO", "lockproxy")
		if err != nil {
			t.Fatal(err)
		}
		lined = lined || !strings.Contains(string(info), "in_line:0\r\n")
	}
	close(wrong)
	for reply := range wrong {
		t.Error(reply)
	}
	if !lined {
		t.Error("nobody was seen to wait in line")
	}
}
