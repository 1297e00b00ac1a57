package harness

import (
	"io"
	"net"
	"testing"
	"time"
)

// A link that is long delays each piece once, not one piece after the other.
func TestPiecesUnderWayDoNotWaitForEachOther(t *testing.T) {
	const delay, pieces = 400 * time.Millisecond, 3
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = target.Close() }()
	r, err := StartRelay(target.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	r.Delay(ToMaster, delay)
	from, err := net.Dial("tcp", r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	to, err := target.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = to.Close() }()
	sent := make([]time.Time, pieces)
	go func() {
		for i := range pieces {
			sent[i] = time.Now()
			_, _ = from.Write([]byte{byte(i)})
			time.Sleep(delay / 20) // so that the relay reads the pieces one by one
		}
	}()
	for i := range pieces {
		var got [1]byte
		if _, err := io.ReadFull(to, got[:]); err != nil {
			t.Fatal(err)
		}
		if int(got[0]) != i {
			t.Fatalf("piece %d came in place of piece %d", got[0], i)
		}
		if took := time.Since(sent[i]); took < delay || took > delay*3/2 {
			t.Errorf("piece %d took %v, the delay is %v", i, took, delay)
		}
	}
}
