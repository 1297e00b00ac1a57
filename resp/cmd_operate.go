package resp

import "lockproxy/quorum"

// Commands by which operators inspect and break locks.

// runLockInfo tells every master's state of a key, and the state of the lock that follows. LOCKINFO also answers without a quorum.
func runLockInfo(c *call) Reply {
	return c.begin(overlapAny, c.args[1], made, func(sl *slot) {
		key, s, engine, w := sl.key, c.server, c.server.engine, c.session.transaction.watches(sl.key)
		engine.Views(key, func(v quorum.Viewed) {
			if v.State != quorum.LockFree {
				w.finds()
			}
			if v.Err != nil {
				sl.resolve(outcome{err: v.Err})
				return
			}
			engine.Fence(key, func(f quorum.FenceView) {
				sl.resolve(outcome{done: 1, reply: lockInfo(s, key, &v, f.Fence)})
			})
		})
	})
}

func lockInfo(s *Server, key quorum.Key, v *quorum.Viewed, fence int64) Reply {
	var newest Reply = Null{}
	if fence != 0 {
		newest = Int(fence)
	}
	masters := make(Array, 0, len(v.Masters))
	for i := range v.Masters {
		masters = append(masters, masterInfo(&v.Masters[i]))
	}
	var kind, validity Reply = Null{}, Null{}
	if v.State == quorum.LockHeld || v.State == quorum.LockFree { // else nobody knows
		kind, validity = Bulk(v.View.Type), Int(v.View.TTL.Milliseconds())
	}
	info := Map{
		Bulk("state"), Bulk(v.State.String()),
		Bulk("type"), kind,
		Bulk("token"), tokenOf(v.View.Type, v.View.Value),
		Bulk("validity"), validity,
		Bulk("fence"), newest,
		Bulk("waiters"), Int(s.gates.Waiting(key)),
	}
	var holder Client
	if v.State == quorum.LockHeld {
		holder = s.Holders()(key, v.View.Value)
	}
	return append(appendClient(info, holder), Bulk("masters"), masters)
}

func masterInfo(m *quorum.MasterView) Reply {
	var kind Reply = Null{}
	if m.Answered {
		kind = Bulk(m.Type)
	}
	return Map{
		Bulk("addr"), Bulk(m.Addr),
		Bulk("state"), Bulk(m.State.String()),
		Bulk("left"), Int(m.Left.Milliseconds()),
		Bulk("counts"), Int(count(m.Counts)),
		Bulk("reason"), Bulk(m.Reason),
		Bulk("type"), kind,
		Bulk("token"), tokenOf(m.Type, m.Value),
		Bulk("ttl"), Int(m.TTL.Milliseconds()),
	}
}

// tokenOf returns a lock's token. A lock that is a hash, such as Redisson's, has no token: null.
func tokenOf(kind, value string) Reply {
	if kind != "string" {
		return Null{}
	}
	return Bulk(value)
}

// runForceUnlock releases a lock, whoever the holder is.
func runForceUnlock(c *call) Reply {
	if !mayForceUnlock(c.server.cfg.Users, c.session.identity.user) {
		return Error("NOPERM this user has no permissions to run the 'forceunlock' command; log in as one that has force_unlock in users, or give it that")
	}
	return c.begin(overlapAny, c.args[1], counted, func(sl *slot) {
		s, key, by := c.session, sl.key, c.session.identity.user
		c.session.holds.endUnless(key, "")
		c.server.engine.Break(key, func(b quorum.Changed) {
			what := "nothing was there"
			switch {
			case b.Err != nil:
				what = b.Err.Error()
			case b.Applied:
				what = "deleted"
			}
			s.server.log.Warn("FORCEUNLOCK", "key", clip(key.Name, echoMax), "db", key.DB, "outcome", what,
				"client", s.addr(), "id", s.id, "user", by)
			if b.Applied {
				s.server.takers.forget(key, noToken)
				s.tell(Event{What: Forced, Key: key, Token: b.Token})
				s.server.sessions.hurry(key)
			}
			sl.changed(b)
		})
	})
}

// mayForceUnlock says whether a user has force_unlock. Without users in the configuration, everybody may.
func mayForceUnlock(users []User, user string) bool {
	for _, u := range users {
		if u.Name == user {
			return u.ForceUnlock
		}
	}
	return len(users) == 0
}
