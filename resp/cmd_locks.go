package resp

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
)

// Bounds of LOCKS.
const (
	locksDefault = 100
	locksMax     = 1000
	// locksWithin is how long a search may take: less than most clients wait for a reply.
	locksWithin = 2500 * time.Millisecond
	// starsMax is the most * in a pattern for masters; only the proxy matches patterns with more. A master may need a time of
	// len(name)^stars for a match, and does nothing else meanwhile. The proxy needs less: see wire.Match.
	starsMax = 2
)

// runLocks lists the locks in the client's database that a quorum of masters holds.
func runLocks(c *call) Reply {
	most, pattern, refused := parseLocksOptions(c.args[1:])
	if refused != nil {
		return refused
	}
	return c.beginKeyless(made, func(sl *slot) {
		s, db, watched := c.server, c.session.identity.db, slices.Clone(c.session.transaction.watched)
		req := locksRequest(db, pattern, most)
		if req.Names == nil {
			req.First = s.gates.Waited(db, locksMax)
		}
		c.server.engine.Locks(req, func(f quorum.FoundLocks) {
			if f.Err != nil {
				sl.resolve(outcome{err: f.Err})
				return
			}
			for i := range f.Locks {
				for _, w := range watched {
					if w.key == (quorum.Key{DB: db, Name: f.Locks[i].Name}) {
						w.finds()
					}
				}
			}
			sl.resolve(outcome{done: 1, reply: foundLocks(s, db, &f)})
		})
	})
}

func parseLocksOptions(args []string) (most int, pattern string, refused Reply) {
	most, pattern = locksDefault, "*"
	for i := 0; i < len(args); i += 2 {
		switch more := i+1 < len(args); {
		case more && wire.EqualFold(args[i], "match"):
			if pattern = args[i+1]; len(pattern) > wire.PatternMax {
				return 0, "", errPattern
			}
		case more && wire.EqualFold(args[i], "count"):
			n, ok := wire.ParseInt(args[i+1])
			if !ok {
				return 0, "", errNotInt
			}
			if n < 1 || n > locksMax {
				return 0, "", errLocksCount
			}
			most = int(n)
		default:
			return 0, "", errSyntax
		}
	}
	return most, pattern, nil
}

var errLocksCount = Error(fmt.Sprintf("ERR COUNT is a number of locks from 1 to %d; use MATCH to see others", locksMax))

// locksRequest is the search for a pattern. A pattern without special characters is a name, and needs no search of the masters.
func locksRequest(db int, pattern string, most int) quorum.LocksRequest {
	pattern = strings.Clone(pattern) // the command's text need not live as long as the search
	req := quorum.LocksRequest{DB: db, Most: most, Within: locksWithin}
	req.Matches = func(name string) bool { return wire.Match(pattern, name) }
	switch {
	case !strings.ContainsAny(pattern, `*?[\`):
		req.Names = []string{pattern}
	case strings.Count(pattern, "*") <= starsMax:
		req.Pattern = pattern
	}
	return req
}

// foundLocks is the reply of LOCKS, by name.
func foundLocks(s *Server, db int, f *quorum.FoundLocks) Reply {
	holder := s.Holders()
	slices.SortFunc(f.Locks, func(a, b quorum.FoundLock) int { return strings.Compare(a.Name, b.Name) })
	all := Array{}
	for i := range f.Locks {
		l := &f.Locks[i]
		key := quorum.Key{DB: db, Name: l.Name}
		var fence Reply = Null{}
		if l.Fence != 0 {
			fence = Int(l.Fence)
		}
		all = append(all, appendClient(Map{
			Bulk("resource"), Bulk(l.Name),
			Bulk("type"), Bulk(l.Type),
			Bulk("token"), tokenOf(l.Type, l.Token),
			Bulk("fence"), fence,
			Bulk("validity"), Int(l.TTL.Milliseconds()),
			Bulk("waiters"), Int(s.gates.Waiting(key)),
		}, holder(key, l.Token)))
	}
	return Map{Bulk("locks"), all, Bulk("unclear"), Int(f.Unclear), Bulk("end"), Bulk(f.Stop.String())}
}

// Holders returns a function that tells the client of a lock: the client whose connection keeps the lock by HOLD at the time of the call
// of Holders, or else the client that took or extended the lock last. The function returns a zero Client if the proxy remembers no client,
// or the connection is gone.
func (s *Server) Holders() func(key quorum.Key, token string) Client {
	keepers := s.sessions.keepers()
	return func(key quorum.Key, token string) Client {
		holder := keepers[key]
		if holder == nil {
			holder = s.sessions.find(s.takers.of(key, token))
		}
		if holder == nil {
			return Client{}
		}
		return holder.client()
	}
}

// appendClient appends the client's address, name, library and user to the fields of a lock; null for each unknown field.
func appendClient(lock Map, is Client) Map {
	for _, field := range [...][2]string{{"client", is.Addr}, {"name", is.Name}, {"library", is.Library}, {"user", is.User}} {
		var text Reply = Null{}
		if field[1] != "" {
			text = Bulk(field[1])
		}
		lock = append(lock, Bulk(field[0]), text)
	}
	return lock
}
