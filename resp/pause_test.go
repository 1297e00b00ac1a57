package resp

import (
	"sync"
	"testing"
	"time"
)

// A pause that is asked for while the one before it ends is not ended with it.
func TestAPauseThatBeginsAsAnotherEndsIsKept(t *testing.T) {
	for range 20000 {
		var p pause
		p.begin(time.Nanosecond, pauseWrites)
		var over sync.WaitGroup
		over.Go(p.over)
		p.begin(time.Hour, pauseWrites)
		over.Wait()
		if !p.on.Load() {
			t.Fatal("it is over at once")
		}
		p.end()
	}
}
