package resp

import (
	"testing"

	"lockproxy/resp/upstream"
)

// A client that does not look at the refusal of CLIENT CACHING YES gets no reply that it could cache: neither that of a single command,
// nor that of a transaction, on either side. The commands behind these are answered.
func TestNoReplyCanBeCached(t *testing.T) {
	const refused = "-" + string(errCaching) + "\r\n"
	for _, front := range []bool{false, true} {
		for _, p := range []struct{ requests, want string }{
			{words("CLIENT CACHING YES") + words("GET k") + words("GET k"), refused + refused + "_\r\n"},
			{words("CLIENT CACHING YES") + words("MULTI") + words("PTTL k") + words("GET k") + words("EXEC"),
				refused + refused + ":-2\r\n_\r\n-ERR EXEC without MULTI\r\n"},
			{words("MULTI") + words("CLIENT CACHING YES") + words("GET k") + words("EXEC"),
				"+OK\r\n-" + string(errNotInMulti("client|caching")) + "\r\n+QUEUED\r\n-" + string(errExecAbort) + "\r\n"},
		} {
			cfg := Config{}
			if front {
				u := upstream.New(upstream.Options{Addr: startRedis(t)})
				t.Cleanup(u.Close)
				cfg = Config{Upstream: u, LockKeys: []string{"lock:*"}}
			}
			c := newRig(t, cfg).dial()
			c.ask("HELLO", "3")
			c.send(words("CLIENT TRACKING ON OPTIN NOLOOP"))
			c.want("+OK\r\n")
			c.send(p.requests)
			c.want(p.want)
		}
	}
}

// In the other modes a client caches without a word.
func TestOtherModesOfTrackingAreRefused(t *testing.T) {
	for _, request := range []string{"ON", "ON OPTOUT", "ON OPTIN OPTOUT", "ON BCAST", "ON OPTIN BCAST", "ON OPTIN REDIRECT 1", "ON OPTIN PREFIX x", "ON NOLOOP"} {
		c := newRig(t, Config{}).dial()
		c.ask("HELLO", "3")
		c.send(words("CLIENT TRACKING " + request))
		c.want("-ERR lockproxy supports CLIENT TRACKING only as ON OPTIN, over RESP3; disable client side caching in the client\r\n")
	}
	c := newRig(t, Config{}).dial()
	c.send(words("CLIENT TRACKING ON OPTIN"))
	c.want("-ERR lockproxy supports CLIENT TRACKING only as ON OPTIN, over RESP3; disable client side caching in the client\r\n")
}
