package harness

import (
	"runtime"
	"testing"
)

// Of 500 draws among 20,000 some would be the same.
func TestAPortIsFreeForOneOnly(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT RUN: ports are claimed on Linux only")
	}
	drawn := map[int]bool{}
	for range 500 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if drawn[port] {
			t.Fatalf("port %d was given out twice", port)
		}
		drawn[port] = true
	}
}

func TestAProcessThatEndsIsNotWaitedFor(t *testing.T) {
	p, err := startProcess("false", "false", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Ready(func() error { return Ping("127.0.0.1:1") }); err == nil {
		t.Error("a process that has ended is ready")
	}
}
