package resp

import (
	"strings"

	"lockproxy/resp/wire"
)

// Client side caching. No one master knows all changes of a value that a quorum holds, so the proxy cannot say when a cached reply is out
// of date, and a client may cache nothing. rueidis demands CLIENT TRACKING ON OPTIN when it connects, whether the application caches or
// not, so this mode is accepted. In this mode a client announces each reply that it is going to cache, by CLIENT CACHING YES. The proxy
// refuses that, and the command behind it, too: a client that does not look at the first error caches the reply to the second command.
// All other modes are refused, because in these a client caches without a word.

const (
	errTracking = Error("ERR lockproxy supports CLIENT TRACKING only as ON OPTIN, over RESP3; disable client side caching in the client")
	errCaching  = Error("ERR lockproxy has no client side caching: CLIENT CACHING YES is refused, and so is the next command; " +
		"disable client side caching in the client")
)

func runClientTracking(c *call) Reply {
	switch mode := wire.Lower(strings.Join(c.args[2:], " ")); {
	case mode == "off", c.session.identity.resp3 && (mode == "on optin" || mode == "on optin noloop" || mode == "on noloop optin"):
		return okReply
	}
	return errTracking
}

func runClientCaching(c *call) Reply {
	c.session.caching = !wire.EqualFold(c.args[2], "no")
	return errCaching
}
