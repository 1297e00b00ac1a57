package resp

import (
	"strings"
	"testing"
)

// An unknown command belongs to neither side: whoever mistypes one is not told to change lock_keys.
func TestATransactionOnLocksRefusesWhatNobodyKnows(t *testing.T) {
	u, r := newCrossingRig(t, Limits{})
	c := r.dial()
	for _, ask := range []struct{ request, reply string }{
		{"NOSUCH a", "-ERR unknown command 'NOSUCH', with args beginning with: 'a' \r\n"},
		{"INCR", "-ERR wrong number of arguments for 'incr' command\r\n"},
		{"INCR data", "-" + string(errMixedTransaction) + "\r\n"},
	} {
		c.ask("MULTI")
		c.ask("SET", "lock:x", "t", "NX")
		if reply := c.ask(strings.Fields(ask.request)...); reply != ask.reply {
			t.Errorf("%s: %q", ask.request, reply)
		}
		if reply := c.ask("EXEC"); reply != "-EXECABORT Transaction discarded because of previous errors.\r\n" {
			t.Errorf("%s: EXEC: %q", ask.request, reply)
		}
	}
	if n := r.server.Stats().Split; n != 1 {
		t.Errorf("%d requests count as split by lock_keys", n)
	}
	u.wantNone(t)
}

// Nobody queues what a transaction has that is spoiled, but what the upstream would not have queued is refused all the same.
func TestASpoiledTransactionRefusesWhatTheUpstreamWould(t *testing.T) {
	u, r := newCrossingRig(t, Limits{})
	c := r.dial()
	c.ask("MULTI")
	for _, ask := range []struct{ request, reply string }{
		{"LOCK lock:x", "-ERR wrong number of arguments for 'lock' command\r\n"},
		{"INCR data", "+QUEUED\r\n"},
		{"NOSUCH a", "-ERR unknown command 'NOSUCH', with args beginning with: 'a' \r\n"},
		{"INCR", "-ERR wrong number of arguments for 'incr' command\r\n"},
		{"XINFO STREAM data", "+QUEUED\r\n"},
		{"XINFO STREAM", "-ERR wrong number of arguments for 'xinfo|stream' command\r\n"},
		{"Xinfo Nosuch data", "-ERR unknown subcommand 'Nosuch'. Try XINFO HELP.\r\n"},
		{"XINFO", "-ERR wrong number of arguments for 'xinfo' command\r\n"},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"},
	} {
		if reply := c.ask(strings.Fields(ask.request)...); reply != ask.reply {
			t.Errorf("%s: %q", ask.request, reply)
		}
	}
	u.wantNone(t)
}
