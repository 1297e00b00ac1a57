package quorum

import (
	"fmt"
	"slices"

	"lockproxy/quorum/rules"
)

// GetAllRequest asks for the strings under several keys of one database.
type GetAllRequest struct {
	DB    int
	Names []string // all different
	Most  int      // bytes that all values may have together
}

// TooLong says that the requested values together are longer than Most.
type TooLong struct{ Size, Most int }

func (t *TooLong) Error() string {
	return fmt.Sprintf("the values have %d bytes together, more than %d", t.Size, t.Most)
}

// A gathering is a GetAll under way.
//
// Short values come with the first question. If values are long, the first answer tells the lengths, and then masters send the
// values piece by piece: by MGET, because moving values into a script costs a master forty times as much.
type gathering struct {
	engine *Engine
	req    GetAllRequest
	views  map[string]View
	sizes  map[string]int // by name: the length of a value that is still to come
	done   func([]View, error)
}

// measureKeys is the number of keys in a question for lengths. The answer takes a master less than a millisecond.
const measureKeys = 256

// measure asks for the values or the lengths of the first measureKeys names, and then of the other names.
func (g *gathering) measure(names []string) {
	if len(names) == 0 {
		g.fetch(g.req.Names)
		return
	}
	n := min(len(names), measureKeys)
	first := &getRound{names: names[:n]}
	g.ask(first, min(n, PieceKeys), first.runs(luaGetAll, names[:n], int64(atOnceMax)), func() { g.measure(names[n:]) })
}

// fetch asks for the missing values of one piece, and then for the other missing values.
func (g *gathering) fetch(names []string) {
	if len(g.sizes) == 0 {
		g.end(nil)
		return
	}
	if size := g.size(); size > g.req.Most {
		g.end(&TooLong{size, g.req.Most})
		return
	}
	var now []string
	size, at := 0, 0
	for ; at < len(names) && len(now) < PieceKeys; at++ {
		more, due := g.sizes[names[at]]
		if due && len(now) > 0 && size+more > getMax {
			break
		}
		if due {
			now, size = append(now, names[at]), size+more
			delete(g.sizes, names[at])
		}
	}
	args := append(make([]any, 0, 1+len(now)), "MGET")
	for _, name := range now {
		args = append(args, name)
	}
	g.ask(&getRound{names: now}, min(PieceKeys, max(len(now), PieceKeys*size/getMax)), args, func() { g.fetch(names[at:]) })
}

// size returns the bytes of all values, as far as known.
func (g *gathering) size() (n int) {
	for _, size := range g.sizes {
		n += size
	}
	for _, v := range g.views {
		n += len(v.Value)
	}
	return n
}

// ask makes one round, which takes the room of so many keys, notes the values or lengths, and calls next.
func (g *gathering) ask(a *getRound, room int, args []any, next func()) {
	pacer := &g.engine.pacer
	a.keys, a.round.keys = make([]agreement, len(a.names)), weighed(room)
	a.done = func(err error) {
		defer pacer.end(room)
		if err != nil {
			g.end(err)
			return
		}
		a.mu.Lock()
		for i, name := range a.names {
			if a.sized {
				g.sizes[name] = a.size(i)
			} else {
				g.views[name] = a.view(i)
			}
		}
		a.mu.Unlock()
		next()
	}
	pacer.begin(room, func() { beginAll(g.engine, a, g.req.DB, a.names, args) })
}

func (g *gathering) end(err error) {
	all := make([]View, len(g.req.Names))
	for i, name := range g.req.Names {
		all[i] = g.views[name]
	}
	g.done(all, err)
}

// atOnceMax is the number of bytes that a script may send of all values together.
const atOnceMax = 64 << 10

// luaGetAll KEYS ARGV[1]=the most bytes of all values together: the values, or the length of each value if there are more
// bytes.
var luaGetAll = newLua(`
local sizes, all = {}, 0
for i, key in ipairs(KEYS) do
  local n = redis.pcall('STRLEN', key)
  sizes[i] = type(n) == 'number' and n or 0
  all = all + sizes[i]
end
if all > tonumber(ARGV[1]) then return sizes end
return redis.call('MGET', unpack(KEYS))`)

// A getRound is one question of a GetAll.
type getRound struct {
	round
	names []string
	keys  []agreement
	sized bool // a master has told lengths; guarded by round.mu
	done  func(error)
}

// lengthKind is the kind of an opinion of a master that has told a length in place of a value.
const lengthKind = "length"

func (*getRound) reads() bool { return true }

func (a *getRound) read(en *entry) ballot {
	if en.Err != nil {
		return readError(en.Err)
	}
	list, ok := en.Reply.([]any)
	if !ok || len(list) != len(a.keys) {
		return unexpected
	}
	is := granted
	if slices.Contains(list, nil) {
		is = grantedIfClean
	}
	if !en.counts(is) {
		return is
	}
	for i, item := range list {
		var s sighting
		switch item := item.(type) {
		case string:
			s.Opinion = rules.Opinion{Exists: true, Kind: "string", Value: item}
		case int64:
			s.Opinion, s.length, a.sized = rules.Opinion{Exists: true, Kind: lengthKind, Value: ""}, int(item), true
		}
		a.keys[i].add(en, s)
	}
	return is
}

// decide waits until every key has a decision. Once a master has told lengths, decide waits only for the answers of a quorum.
// The answers are not compared then, because all values are asked for again.
func (a *getRound) decide(t rules.Tally) rules.Decision {
	if a.sized {
		return rules.DecideAcquire(t)
	}
	return decideEach(a.keys, t)
}

func (a *getRound) ended(d rules.Decision) {
	if d == rules.Unanswered {
		a.done(a.failure())
		return
	}
	a.done(nil)
}

// size returns the longest length of the i-th value that a master has told or sent. It is called with round.mu held.
func (a *getRound) size(i int) (n int) {
	for _, s := range a.keys[i].told {
		n = max(n, s.length, len(s.Value))
	}
	return n
}

// view returns the agreed value of the i-th key. It is called with round.mu held.
func (a *getRound) view(i int) View {
	if is := a.keys[i].agreed; is.Exists {
		return View{Exists: true, Type: "string", Value: is.Value, Length: len(is.Value)}
	}
	return View{Type: "none"}
}
