package integration

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

const endless = "while true do end"

// A script that never ends holds up one Redis until somebody kills it, and so it does here.
func TestScriptKillEndsAScriptThatRunsByVote(t *testing.T) {
	masters := startMasters(t, 3, "--lua-time-limit", "50")
	proxy := startProxy(t, harness.Addrs(masters), "--instance-timeout", "100ms")
	c, runs := dial(t, proxy.Addr), dial(t, proxy.Addr)
	expect(t, c, "-NOTBUSY No scripts in execution right now.\r\n", "SCRIPT", "KILL")
	if reply, err := runs.Do("EVAL", endless, "1", "k"); err != nil || !bytes.HasPrefix(reply, []byte("-NOQUORUM ")) {
		t.Errorf("the script: %q, %v", reply, err)
	}
	expect(t, c, "+OK\r\n", "SCRIPT", "KILL")
	eventually(t, gone, "locks are taken again", func() error {
		reply, err := c.Do("SET", "k", "me", "NX", "PX", "30000")
		if err == nil && string(reply) != "+OK\r\n" {
			err = fmt.Errorf("%q", reply)
		}
		return err
	})
	masters[0].Kill()
	expect(t, c, "-NOTBUSY No scripts in execution right now.\r\n", "SCRIPT", "KILL")
	masters[1].Kill()
	masters[2].Kill()
	if reply, err := c.Do("SCRIPT", "KILL"); err != nil || !bytes.HasPrefix(reply, []byte("-NOQUORUM 0 of 3 masters answered")) {
		t.Errorf("without masters: %q, %v", reply, err)
	}
}

func TestScriptKillEndsAScriptOfTheUpstream(t *testing.T) {
	upstream := startMasters(t, 1, "--lua-time-limit", "50")[0]
	proxy := startProxy(t, harness.Addrs(startMasters(t, 3)), "--upstream", "redis://"+upstream.Addr+"/3", "--lock-keys", "lock:*")
	c, runs := dial(t, proxy.Addr), dial(t, proxy.Addr)
	expect(t, c, "-NOTBUSY No scripts in execution right now.\r\n", "SCRIPT", "KILL")
	if err := runs.Send(harness.Encode(nil, "EVAL", endless, "1", "data")); err != nil {
		t.Fatal(err)
	}
	eventually(t, gone, "the upstream is busy", func() error {
		busy, err := harness.Dial(upstream.Addr)
		if err != nil {
			return err
		}
		defer busy.Close()
		reply, err := busy.Do("GET", "data")
		if err == nil && !bytes.HasPrefix(reply, []byte("-BUSY ")) {
			err = fmt.Errorf("%q", reply)
		}
		return err
	})
	kills := dial(t, proxy.Addr)
	if err := kills.Send(append(harness.Encode(nil, "GET", "data"), harness.Encode(nil, "SCRIPT", "KILL")...)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"-BUSY ", "+OK\r\n"} {
		if reply, err := kills.Reply(); err != nil || !strings.HasPrefix(string(reply), want) {
			t.Errorf("got %q, %v, want %q", reply, err, want)
		}
	}
	if reply, err := runs.Reply(); err != nil || !bytes.Contains(reply, []byte("Script killed by user")) {
		t.Errorf("the script: %q, %v", reply, err)
	}
	// One that has written cannot be killed, and who tries is told so.
	if err := runs.Send(harness.Encode(nil, "EVAL", "redis.call('SET', KEYS[1], 1) "+endless, "1", "data")); err != nil {
		t.Fatal(err)
	}
	eventually(t, gone, "the script has written", func() error {
		reply, err := kills.Do("SCRIPT", "KILL")
		if err == nil && !bytes.HasPrefix(reply, []byte("-UNKILLABLE ")) {
			err = fmt.Errorf("%q", reply)
		}
		return err
	})
	upstream.Kill()
}
