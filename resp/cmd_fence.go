package resp

import "lockproxy/quorum"

// runFence answers 1 if a quorum knows the number as the newest fence of the key, else 0.
func runFence(c *call) Reply {
	n, ok := parseInt(c.args[2])
	if !ok {
		return errNotInt
	}
	sl := c.claim(oneRound, c.args[1], counted)
	if sl == nil {
		return wait
	}
	c.engine().Fence(c.key(c.args[1]), func(v quorum.FenceView) {
		sl.resolve(outcome{err: v.Err, done: count(n > 0 && v.Fence == n)})
	})
	return later
}
