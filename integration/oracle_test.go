package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockproxy/integration/harness"
)

// A twin is a real redis-server and a proxy that must answer alike.
type twin struct {
	oracle  *harness.Redis
	masters []*harness.Redis
	proxy   *harness.Proxy
}

func startTwin(t testing.TB, masters int) *twin {
	t.Helper()
	tw := &twin{masters: startMasters(t, masters)}
	var err error
	if tw.oracle, err = harness.StartRedis(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tw.oracle.Stop)
	tw.proxy = startProxy(t, harness.Addrs(tw.masters))
	return tw
}

// A mode is a way of sending the steps of a case.
type mode struct {
	name     string
	hello    string // the RESP version to ask for first, or none
	together bool   // commands that follow one another are sent in one write
	pieces   bool   // requests are cut into many writes
}

var modes = []mode{
	{name: "RESP2"},
	{name: "RESP3", hello: "3"},
	{name: "pipelined", together: true},
	{name: "pipelined RESP3", hello: "3", together: true},
	{name: "in pieces", pieces: true},
	{name: "pipelined in pieces", together: true, pieces: true},
}

func TestAnswersAreThoseOfOneRedisByteForByte(t *testing.T) {
	requireRedis(t)
	cases := readOracleScripts(t)
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprintf("%d masters", n), func(t *testing.T) {
			tw := startTwin(t, n)
			for _, m := range modes {
				for i, c := range cases {
					if m.pieces && c.closes() {
						continue // what is sent after the close resets the connection, and with it the last reply
					}
					t.Run(fmt.Sprintf("%s/%s/%s", m.name, strings.TrimSuffix(c.file, ".txt"), c.title), func(t *testing.T) {
						tw.run(t, c, m, fmt.Sprintf("%s:%d:", strings.ReplaceAll(m.name, " ", "_"), i))
					})
				}
			}
		})
	}
}

// closes says that the server is to close the connection.
func (c oracleCase) closes() bool {
	return slices.ContainsFunc(c.steps, func(s oracleStep) bool { return s.kind == stepClosed })
}

// run plays one case against both and reports every line that differs.
func (tw *twin) run(t *testing.T, c oracleCase, m mode, prefix string) {
	start := time.Now()
	o, p := dial(t, tw.oracle.Addr), dial(t, tw.proxy.Addr)
	defer func() { _, _ = o.Close(), p.Close() }() // many cases run within one test
	hello(t, m.hello, o, p)
	for steps := c.steps; len(steps) > 0; {
		group := 1
		for m.together && steps[0].kind == stepCommand && group < len(steps) && steps[group].kind == stepCommand {
			group++
		}
		if !tw.play(t, c, m, steps[:group], o, p, prefix, start) {
			return
		}
		steps = steps[group:]
	}
}

// play sends the steps, all commands or a single one of another kind. False means that the case cannot go on.
func (tw *twin) play(t *testing.T, c oracleCase, m mode, steps []oracleStep, o, p *harness.Conn, prefix string, start time.Time) bool {
	words := make([][]string, len(steps))
	var raw []byte
	for i, s := range steps {
		words[i] = c.expand(s.words, prefix, start)
		switch s.kind {
		case stepCommand:
			raw = harness.Encode(raw, words[i]...)
			steps[i].replies = 1
		case stepRaw:
			raw = append(raw, words[i][0]...)
		case stepDirect:
			direct(t, append([]*harness.Redis{tw.oracle}, tw.masters...), words[i]...)
			return true
		case stepClosed:
			if err := o.ExpectClosed(); err != nil {
				t.Errorf("%s:%d: the oracle: %v", c.file, s.line, err)
			}
			if err := p.ExpectClosed(); err != nil {
				t.Errorf("%s:%d: the proxy: %v", c.file, s.line, err)
			}
			return true
		}
	}
	if err := errors.Join(m.send(o, raw), m.send(p, raw)); err != nil {
		t.Fatalf("%s:%d: %v", c.file, steps[0].line, err)
	}
	for i, s := range steps {
		for range s.replies {
			if !comparePair(t, fmt.Sprintf("%s:%d", c.file, s.line), words[i], s.loose, o, p, start) {
				return false
			}
		}
	}
	return true
}

// send writes raw at once, or in pieces so small that few of them are a whole request.
func (m mode) send(c *harness.Conn, raw []byte) error {
	if !m.pieces {
		return c.Send(raw)
	}
	for piece := range slices.Chunk(raw, 3+len(raw)/500) {
		if err := c.Send(piece); err != nil {
			return err
		}
	}
	return nil
}

// comparePair reads one reply from each and compares them. False means that a reply is missing.
func comparePair(t *testing.T, at string, request []string, loose string, o, p *harness.Conn, start time.Time) bool {
	t.Helper()
	pair := replyPair{request: request}
	var err error
	if pair.oracle, err = o.Reply(); err != nil {
		t.Errorf("%s: no reply of the oracle to %q: %v", at, request, err)
		return false
	}
	if pair.proxy, err = p.Reply(); err != nil {
		t.Errorf("%s: no reply of the proxy to %s, the oracle said %s: %v", at, short(fmt.Sprintf("%q", request)), short(fmt.Sprintf("%q", pair.oracle)), err)
		return false
	}
	pair.slack = time.Since(start)
	if err := pair.compare(loose); err != nil {
		t.Errorf("%s: %v", at, err)
	}
	return true
}

// arityCommands are the commands that the proxy has; their arity must be that of Redis.
var arityCommands = strings.Fields(`
	SET SETNX SETEX PSETEX GET EXISTS TTL PTTL EXPIRETIME PEXPIRETIME TYPE STRLEN DEL UNLINK PERSIST
	EXPIRE PEXPIRE EXPIREAT PEXPIREAT EVAL EVALSHA SCRIPT PING ECHO TIME SELECT AUTH HELLO RESET CLIENT COMMAND CONFIG
	GETSET GETDEL GETEX MGET MSETNX GETRANGE HGET HMGET HGETALL HEXISTS HLEN HSTRLEN HKEYS HVALS
	MULTI EXEC DISCARD WATCH UNWATCH OBJECT|ENCODING MODULE|LIST ACL|WHOAMI
	INFO ROLE WAIT READONLY READWRITE LASTSAVE CLUSTER
	CLIENT|ID CLIENT|GETNAME CLIENT|SETNAME CLIENT|INFO CLIENT|LIST CLIENT|KILL CLIENT|NO-EVICT CLIENT|REPLY
	CLIENT|UNBLOCK
	SCRIPT|LOAD SCRIPT|EXISTS SCRIPT|FLUSH CONFIG|GET CONFIG|SET CONFIG|REWRITE CONFIG|RESETSTAT
	SLOWLOG SLOWLOG|GET SLOWLOG|LEN SLOWLOG|RESET LATENCY LATENCY|HISTOGRAM LATENCY|LATEST LATENCY|HISTORY LATENCY|RESET LATENCY|GRAPH LATENCY|DOCTOR
	COMMAND|COUNT COMMAND|INFO COMMAND|DOCS COMMAND|LIST COMMAND|GETKEYS
	CLUSTER|INFO CLUSTER|NODES CLUSTER|SLOTS CLUSTER|SHARDS CLUSTER|MYID CLUSTER|KEYSLOT`)

func TestTheNumberOfArgumentsIsCheckedAsRedisDoes(t *testing.T) {
	tw := startTwin(t, 3)
	for _, name := range arityCommands {
		for n := range 7 {
			request := strings.Split(name, "|")
			for range n {
				request = append(request, "arity-"+strings.ToLower(name))
			}
			o, p := dial(t, tw.oracle.Addr), dial(t, tw.proxy.Addr)
			pair := replyPair{request: request}
			var err error
			if pair.oracle, err = o.Do(request...); err != nil {
				t.Fatal(err)
			}
			if pair.proxy, err = p.Do(request...); err != nil {
				t.Fatalf("%q: %v", request, err)
			}
			const words = "wrong number of arguments"
			isOne := strings.Contains(string(pair.oracle), words)
			switch {
			case isOne && string(pair.oracle) != string(pair.proxy):
				t.Error(pair.differ("the replies differ"))
			case !isOne && strings.Contains(string(pair.proxy), words):
				t.Error(pair.differ("this many arguments are allowed"))
			}
			_, _ = o.Close(), p.Close()
		}
	}
}
