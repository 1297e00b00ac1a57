package main

import (
	"bufio"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestPairsAreCountedWhenBothReplied lets a server answer in pieces, and then with an error.
func TestPairsAreCountedWhenBothReplied(t *testing.T) {
	var released atomic.Int64
	addr := serve(t, func(command string, say func(string)) {
		switch command {
		case "SCRIPT":
			say("$3\r\nsha\r\n")
		case "SET":
			say("+O")
			say("K\r\n")
		case "EVALSHA":
			released.Add(1)
			say(":1\r\n")
		}
	})
	got, err := pairs(addr)(load{clients: 1, duration: 20 * time.Millisecond})
	if err != nil || got.perSecond <= 0 || got.p50 <= 0 || got.p99 < got.p50 {
		t.Errorf("got %+v, %v", got, err)
	}
	if released.Load() == 0 {
		t.Error("nothing was released")
	}
	addr = serve(t, func(command string, say func(string)) {
		if command == "SCRIPT" {
			say("$3\r\nsha\r\n")
			return
		}
		say("-NOQUORUM x\r\n")
	})
	if _, err := pairs(addr)(load{clients: 3, duration: time.Second}); err == nil || !strings.Contains(err.Error(), "NOQUORUM") {
		t.Errorf("an error was counted: %v", err)
	}
}

// serve answers the commands of each connection, one after the other.
func serve(t *testing.T, answer func(command string, say func(string))) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				r := bufio.NewReader(c)
				for {
					words, err := readCommand(r)
					if err != nil {
						return
					}
					answer(words[0], func(s string) { _, _ = c.Write([]byte(s)) })
				}
			}()
		}
	}()
	return l.Addr().String()
}

// readCommand reads an array of bulk strings without line ends in them.
func readCommand(r *bufio.Reader) ([]string, error) {
	head, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	var words []string
	for range int(head[1] - '0') {
		if _, err := r.ReadString('\n'); err != nil {
			return nil, err
		}
		word, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		words = append(words, strings.TrimSpace(word))
	}
	return words, nil
}
