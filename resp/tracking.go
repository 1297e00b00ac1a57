package resp

import "lockproxy/resp/wire"

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
	modes, refused := parseTrackingOptions(c.args[3:])
	switch {
	case refused != nil:
		return refused
	case wire.EqualFold(c.args[2], "off"):
		return okReply
	case !wire.EqualFold(c.args[2], "on"):
		return errSyntax
	case !modes["optin"] || len(modes) != 1+count(modes["noloop"]) || !c.session.identity.resp3:
		return errTracking
	}
	return okReply
}

func parseTrackingOptions(args []string) (modes map[string]bool, refused Reply) {
	modes = map[string]bool{}
	for i := 0; i < len(args); i++ {
		mode, more := wire.Lower(args[i]), i+1 < len(args)
		switch mode {
		case "redirect":
			if !more {
				return nil, errSyntax
			}
			i++
			if _, ok := wire.ParseInt(args[i]); !ok {
				return nil, errNotInt
			}
		case "prefix":
			if !more {
				return nil, errSyntax
			}
			i++
		case "bcast", "optin", "optout", "noloop":
		default:
			return nil, errSyntax
		}
		modes[mode] = true
	}
	return modes, nil
}

func runClientCaching(c *call) Reply {
	switch {
	case wire.EqualFold(c.args[2], "no"):
		return Error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	case !wire.EqualFold(c.args[2], "yes"):
		return errSyntax
	}
	c.session.caching = true
	return errCaching
}
