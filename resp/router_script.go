package resp

import (
	"slices"
	"strings"

	"lockproxy/script"
)

// Where a script is run. The script's KEYS tell the destination, but a script may work on a key that is not declared. So the text of each
// script is read once:
//
//   - An understood script tells its key. If KEYS has the key, the other KEYS are no keys.
//   - In any other script, a string constant that is a lock's name counts as a key.
//
// Two things stay unseen: names put together by a script, and the text of a script of which the proxy has only the SHA-1.

// routesMax bounds the scripts remembered. An understood script also keeps its text, of at most 16 KiB.
const routesMax = 1024

// A scriptRoute is the part of a script's text that decides the destination.
type scriptRoute struct {
	meaning *script.Meaning // nil: not understood
	lock    string          // a lock's name in the text; "": the text names no lock
}

// byScript is byKeys for a script.
func (r *router) byScript(args []string, row *command) (destination, refusal) {
	if row.keys.untold(args) {
		return there, refusal{} // the upstream's error is as good as ours
	}
	first, last, _ := row.keys.span(args)
	keys, argv := args[first:last+1], args[last+1:]
	route := r.scriptRoute(args, strings.HasPrefix(row.name, "evalsha"))
	key, understood := route.key(keys, argv)
	var n sides
	if !understood || !slices.Contains(keys, key) { // else the other KEYS are values, as the token
		if refused := n.add(r, keys...); refused.is() {
			return here, refused
		}
	}
	if understood {
		if refused := n.add(r, key); refused.is() {
			return here, refused
		}
		return n.destination(args[0])
	}
	if route == &unknownRoute && n.locks && n.others {
		return here, refuse(errNoScript) // the text may say which name is the key
	}
	if len(keys) == 0 {
		if refused := r.mustDeclare(args); refused.is() {
			return here, refused
		}
	}
	if !n.locks && route.lock != "" {
		return here, splits(errInText(route.lock))
	}
	return n.destination(args[0])
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

// scriptRoute returns the route of the command's script, by text or SHA-1. Redis, too, computes a text's SHA-1 each time.
func (r *router) scriptRoute(args []string, bySHA bool) *scriptRoute {
	text := args[1]
	key, ok := script.ParseDigest(text)
	switch {
	case !bySHA:
		key = script.DigestOf(text)
	case !ok:
		return &unknownRoute
	}
	if route, ok := r.routes.Get(key); ok {
		return route
	}
	route := new(scriptRoute)
	if bySHA {
		known, ok := r.scripts.Lookup(text)
		if !ok {
			return &unknownRoute
		}
		text, route.meaning = known.Text, known.Meaning
	} else if known, err := r.scripts.Understand(text); err == nil {
		route.meaning = known.Meaning
	}
	route.lock = script.FindString(text, r.isLock)
	r.routes.Add(key, route)
	return route
}

func errInText(lock string) Error {
	return Error("ERR a script that lockproxy is to run on the lock '" + clip(lock, echoMax) + "' must have it in KEYS; this one has it in its text")
}
