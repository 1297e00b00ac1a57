package resp

import (
	"slices"

	"lockproxy/script"
)

// Where a script is run. Its KEYS tell, but it may work on a key that it does not declare. So its text is looked at once. A script
// that is understood tells its key: if that is one of KEYS, the others are no keys. In any other, a string that is a lock's name as
// it stands is taken for a key. Names that a text puts together are not seen, nor is the text of a script of which the proxy has
// only the SHA-1.

// routesMax bounds how many scripts are remembered. For one that is understood, a text of at most 16 KiB is kept, too.
const routesMax = 1024

// A scriptRoute is what the text of a script says of its place.
type scriptRoute struct {
	meaning *script.Meaning // nil: not understood
	lock    string          // a lock's name in the text, "" if there is none
}

// placeScript is placeKeys for a script.
func (c *call) placeScript(spec keySpec) (place, Reply) {
	if spec.untold(c.args) {
		return there, nil // its error is as good as ours
	}
	first, last, _ := spec.span(c.args)
	keys, args := c.args[first:last+1], c.args[last+1:]
	route := c.scriptRoute()
	key, understood := route.key(keys, args)
	var n sides
	if !understood || !slices.Contains(keys, key) { // else the others of KEYS are values to it, such as the token
		if refused := n.add(c, keys...); refused != nil {
			return here, refused
		}
	}
	if understood {
		if refused := n.add(c, key); refused != nil {
			return here, refused
		}
		return n.place(c)
	}
	if route == &unknownRoute && n.locks && n.others {
		return here, errNoScript // the text may say which of them is the key
	}
	if len(keys) == 0 {
		if refused := c.mustDeclare(); refused != nil {
			return here, refused
		}
	}
	if !n.locks && route.lock != "" {
		return here, c.split(errInText(route.lock))
	}
	return n.place(c)
}

// key returns the key that a call of the script works on, if the script is understood.
func (r *scriptRoute) key(keys, args []string) (string, bool) {
	if r.meaning == nil {
		return "", false
	}
	return r.meaning.Key(keys, args)
}

// unknownRoute is the route of a script whose text the proxy has not seen.
var unknownRoute scriptRoute

// scriptRoute returns the route of the script whose text or SHA-1 the command has. Redis, too, takes a text's SHA-1 each time.
func (c *call) scriptRoute() *scriptRoute {
	s := c.server
	row := s.commands.find(c.args[0])
	text, bySHA := c.args[1], row.name == "evalsha" || row.name == "evalsha_ro"
	key, ok := script.ParseDigest(text)
	switch {
	case !bySHA:
		key = script.DigestOf(text)
	case !ok:
		return &unknownRoute
	}
	if route, ok := s.routes.Get(key); ok {
		return route
	}
	route := new(scriptRoute)
	if bySHA {
		known, ok := s.scripts.Lookup(text)
		if !ok {
			return &unknownRoute
		}
		text, route.meaning = known.Text, known.Meaning
	} else if known, err := s.scripts.Understand(text); err == nil {
		route.meaning = known.Meaning
	}
	route.lock = script.FindString(text, s.isLock)
	s.routes.Add(key, route)
	return route
}

func errInText(lock string) Error {
	return Error("ERR a script that lockproxy is to run on the lock '" + clip(lock, echoMax) + "' must have it in KEYS; this one has it in its text")
}
