package resp

import (
	"errors"
	"strconv"

	"lockproxy/resp/wire"
)

var errUnblocked = errors.New("UNBLOCKED client unblocked via CLIENT UNBLOCK")

// runClientUnblock ends another client's wait: a LOCK … WAIT or, by CLIENT UNBLOCK at the upstream, a command there.
func runClientUnblock(c *call) Reply {
	byError := false
	if len(c.args) > 3 {
		switch {
		case len(c.args) > 4:
			return errSubcommandArity("CLIENT", c.args[1])
		case wire.EqualFold(c.args[3], "error"):
			byError = true
		case !wire.EqualFold(c.args[3], "timeout"):
			return Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
		}
	}
	id, ok := wire.ParseInt(c.args[2])
	if !ok {
		return errNotInt
	}
	waiter, there := c.server.sessions.waitsOf(id, c.session)
	switch {
	case waiter != nil && byError:
		waiter.Fail(errUnblocked)
		return Int(1)
	case waiter != nil:
		waiter.Cancel()
		return Int(1)
	case there == 0:
		return Int(0)
	}
	reason := "TIMEOUT"
	if byError {
		reason = "ERROR"
	}
	return askThere(c, func(reply []byte) Reply { return Raw(reply) }, "CLIENT", "UNBLOCK", strconv.FormatInt(there, 10), reason)
}

// parseTimeout reads a number of milliseconds.
func parseTimeout(text string) (int64, Reply) {
	ms, ok := wire.ParseInt(text)
	switch {
	case !ok:
		return 0, Error("ERR timeout is not an integer or out of range")
	case ms < 0:
		return 0, Error("ERR timeout is negative")
	}
	return ms, nil
}
