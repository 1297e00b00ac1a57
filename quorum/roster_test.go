package quorum

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A master answers that it has been told while another one comes to a new epoch: either it is told again, or it was told that, too.
func TestWhoIsToBeToldIsNotForgotten(t *testing.T) {
	const masters = 64 // for which reading a roster takes a while
	told := strings.Repeat("1 ", masters)
	for range 20000 {
		e := &epochs{roster: make(roster, masters), shown: told}
		for i := range e.roster {
			e.roster[i].Store(1)
		}
		e.behind.Store(true)
		var ready atomic.Bool
		var other sync.WaitGroup
		other.Go(func() {
			for !ready.Load() {
				runtime.Gosched()
			}
			raise(&e.roster[0], 2) // as tellOthers is called
			e.behind.Store(true)
		})
		ready.Store(true)
		e.wasTold(nil)
		other.Wait()
		if !e.behind.Load() {
			t.Fatal("it is not told of the new epoch")
		}
	}
}
