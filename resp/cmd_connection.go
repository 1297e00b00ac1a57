package resp

import (
	"crypto/sha256"
	"crypto/subtle"
	"math"
	"slices"

	"lockproxy/resp/wire"
)

func runHello(c *call) Reply {
	proto := int64(0)
	var options []string
	if len(c.args) > 1 {
		var ok bool
		if proto, ok = wire.ParseInt(c.args[1]); !ok {
			return errProtoInt
		}
		if proto < 2 || proto > 3 {
			return errNoProto
		}
		options = c.args[2:]
	}
	if refused := applyHello(c, options); refused != nil {
		return refused
	}
	if !c.session.reader.parser.Authed {
		return errHelloAuth
	}
	if proto != 0 {
		c.session.identity.speak(proto == 3)
		if l := c.session.uplink.live(); l != nil {
			l.agree() // there may be messages before the next command
		}
	}
	return greeting(c)
}

// applyHello applies the options of HELLO. As in Redis, the options before a refused option count.
func applyHello(c *call, options []string) (refused Reply) {
	for len(options) > 0 {
		switch opt := cString(options[0]); {
		case wire.EqualFold(opt, "auth") && len(options) > 2:
			if !login(c, options[1], options[2]) {
				return errWrongPass
			}
			options = options[3:]
		case wire.EqualFold(opt, "setname") && len(options) > 1:
			if refused = c.session.identity.setName(options[1], &c.session.memory); refused != nil {
				return refused
			}
			options = options[2:]
		default:
			return Error("ERR Syntax error in HELLO option '" + opt + "'")
		}
	}
	return nil
}

// greeting is the reply of HELLO. Keys and versions must be bulk strings: redis-cli insists.
func greeting(c *call) Reply {
	return Map{
		Bulk("server"), Bulk("redis"),
		Bulk("version"), Bulk(redisVersion),
		Bulk("proto"), Int(c.session.identity.protocol()),
		Bulk("id"), Int(c.session.id),
		Bulk("mode"), Bulk("standalone"),
		Bulk("role"), Bulk("master"),
		Bulk("modules"), Array{},
	}
}

func runAuth(c *call) Reply {
	switch {
	case len(c.args) > 3:
		return errSyntax
	case len(c.args) == 3:
		if !login(c, c.args[1], c.args[2]) {
			return errWrongPass
		}
	case !hasUser(c.server.cfg.Users, defaultUser):
		return errNoPassword
	case !login(c, defaultUser, c.args[1]):
		return errWrongPass
	}
	return okReply
}

// defaultUser is the user of a client that gives only a password, or needs none.
const defaultUser = "default"

func hasUser(users []User, name string) bool {
	return slices.ContainsFunc(users, func(u User) bool { return u.Name == name })
}

// login checks a name and a password, in a time that tells nothing about names and passwords.
func login(c *call, name, password string) bool {
	users := c.server.cfg.Users
	if len(users) == 0 {
		return name == defaultUser // the default user has no password: any password is right, as in Redis
	}
	match := 0
	for _, u := range users {
		match |= sameString(u.Name, name) & sameString(u.Password(), password)
	}
	if match == 0 {
		c.server.journal.login(c.session)
		return false
	}
	c.session.reader.parser.Authed = true
	c.session.introduce()
	c.session.identity.logIn(name)
	return true
}

func sameString(a, b string) int {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:])
}

func runSelect(c *call) Reply {
	db, refused := parseDB(c, c.args[1])
	if refused != nil {
		return refused
	}
	c.session.identity.selectDB(db)
	return okReply
}

func parseDB(c *call, text string) (int, Reply) {
	n, ok := wire.ParseInt(text)
	switch {
	case !ok:
		return 0, errNotInt
	case n < math.MinInt32 || n > math.MaxInt32:
		return 0, errIntRange
	case n < 0 || n >= int64(c.server.cfg.Databases):
		return 0, errDBRange
	}
	return int(n), nil
}

// runQuit ends the session in order, after all replies, with QUIT's own, are written.
func runQuit(c *call) Reply {
	c.session.answer(okReply)
	c.session.stop("QUIT")
	return nil
}

// runReset returns the connection to the state of a new connection.
func runReset(c *call) Reply {
	idle := func() bool { return c.session.replies.repliesDone() && c.session.replies.locksDone() }
	if !c.session.reader.await(idle) {
		return nil
	}
	c.session.uplink.drop()
	c.session.uplink.relies = false
	c.session.subscriptions.end()
	c.session.holds.releaseComing()
	c.session.holds.release()
	c.session.resetIdentity()
	c.session.mute = muting{skip: c.session.mute.skip, current: c.session.mute.skip > 0}
	c.session.transaction.end()
	return Status("RESET")
}

// runPing answers a subscribed RESP2 client in the shape of a message, with a first word of no message.
func runPing(c *call) Reply {
	switch subscribed := !c.session.identity.resp3 && c.session.subscriptions.any(); {
	case len(c.args) > 2:
		return errArity("ping")
	case subscribed && len(c.args) == 1:
		return Array{Bulk("pong"), Bulk("")}
	case subscribed:
		return Array{Bulk("pong"), Bulk(c.args[1])}
	case len(c.args) == 1:
		return Status("PONG")
	}
	return Bulk(c.args[1])
}

func runEcho(c *call) Reply { return Bulk(c.args[1]) }

func runOK(*call) Reply { return okReply }
