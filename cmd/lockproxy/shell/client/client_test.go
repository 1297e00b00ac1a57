package client

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

func TestRepliesOfBothProtocolsAreRead(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{"+OK\r\n", "OK"},
		{":-5\r\n", "-5"},
		{"$2\r\nab\r\n", "ab"},
		{"$4\r\n\r\n\r\n\r\n", "\r\n\r\n"},
		{"$-1\r\n", "<nil>"},
		{"*-1\r\n", "<nil>"},
		{"_\r\n", "<nil>"},
		{"#t\r\n", "1"},
		{",1.5\r\n", "1.5"},
		{"=6\r\ntxt:ab\r\n", "ab"},
		{"*2\r\n:1\r\n$1\r\nx\r\n", "[1 x]"},
		{"%1\r\n+a\r\n*0\r\n", "[a []]"},
		{"-NOQUORUM 1 of 3\r\n", "NOQUORUM 1 of 3"},
		{"!5\r\nERR x\r\n", "ERR x"},
	} {
		got, err := readReply(bufio.NewReader(strings.NewReader(c.raw)), 0)
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%q: %v, %v, want %s", c.raw, got, err, c.want)
		}
	}
}

// Whatever answers, and is no lockproxy, is an error; nothing is allocated for what is only announced.
func TestAnswersThatAreNoneAreErrors(t *testing.T) {
	for _, raw := range []string{
		"", "\r\n", "HTTP/1.1 400 Bad Request\r\n", "$x\r\n", "$-2\r\n", "$99999999999999\r\nx", "$60000000\r\nshort", "*9999999\r\n", "*2\r\n:1\r\n", ":x\r\n",
		strings.Repeat("*1\r\n", 1000), "+" + strings.Repeat("x", lineMax+10), "$2\r\nabc", "\x16\x03\x01\x00\x05", "*2147483647\r\n", "%9223372036854775807\r\n",
	} {
		if got, err := readReply(bufio.NewReader(strings.NewReader(raw)), 0); err == nil {
			t.Errorf("%.40q: %v", raw, got)
		}
	}
}

func FuzzReplies(f *testing.F) {
	f.Add("*2\r\n:1\r\n%1\r\n+a\r\n$1\r\nx\r\n")
	f.Fuzz(func(_ *testing.T, raw string) { _, _ = readReply(bufio.NewReader(strings.NewReader(raw)), 0) })
}

// serve answers each connection with these bytes, and counts them.
func serve(t *testing.T, answer string) (addr string) {
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
			if answer != "" {
				_, _ = c.Write([]byte(answer))
			}
			defer c.Close()
		}
	}()
	return l.Addr().String()
}

// The first proxy that answers is used, and from then on it is the first.
func TestTheFirstProxyThatAnswersIsUsed(t *testing.T) {
	gone := serve(t, "")
	web, good := serve(t, "HTTP/1.1 400 Bad Request\r\n\r\n"), serve(t, "*0\r\n+PONG\r\n")
	p := &Proxies{Addrs: []string{web, good}}
	for range 2 {
		c, err := p.Connect(time.Now().Add(10 * time.Second))
		if err != nil || c.Addr != good {
			t.Fatalf("%v, %v", c, err)
		}
		if reply, err := c.Do(time.Now().Add(10*time.Second), "PING"); err != nil || reply != "PONG" {
			t.Errorf("%v, %v", reply, err)
		}
		c.Close()
	}
	p = &Proxies{Addrs: []string{web, gone}}
	_, err := p.Connect(time.Now().Add(200 * time.Millisecond))
	failed, is := errors.AsType[*Unreachable](err)
	if !is || len(failed.Causes) != 2 || failed.Causes[0] != web+" answers as no lockproxy does" || failed.Causes[1] != gone+" did not answer in time" {
		t.Errorf("got %v", err)
	}
}

// What a proxy pushes is no reply.
func TestAPushIsNoReply(t *testing.T) {
	c, err := (&Proxies{Addrs: []string{serve(t, "*0\r\n>2\r\n+lost\r\n+k\r\n:7\r\n-LOST k\r\n:8\r\n")}}).Connect(time.Now().Add(10 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, want := range []string{"7 <nil>", "<nil> LOST k", "8 <nil>"} {
		reply, err := c.Do(time.Now().Add(10*time.Second), "PING")
		if got := fmt.Sprint(reply, " ", err); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
