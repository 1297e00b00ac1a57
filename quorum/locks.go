package quorum

import (
	"sync/atomic"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
)

// LocksRequest asks which locks a quorum holds in one database.
type LocksRequest struct {
	DB int
	// Names are the names to look at. Nil: the masters are asked for names.
	Names []string
	// First are names to look at before the masters are asked for names. So locks with waiting clients are found among any
	// number of locks.
	First []string
	// Pattern is sent to the masters, which leave out names without a match. "" is no pattern.
	Pattern string
	// Matches says whether a name from a master is wanted.
	Matches func(name string) bool
	// Most is the largest number of locks to return.
	Most int
	// Within is the longest time of the search.
	Within time.Duration
}

// FoundLock is a lock that a quorum holds.
type FoundLock struct {
	Name  string
	Type  string        // "string", "hash", …
	Token string        // the value of a string, or the beginning of a long string
	TTL   time.Duration // the remaining time of the lock on a quorum, as the client that set the lock would count
	Fence int64         // 0 if the lock has no fence
}

// A Stop says why a search for locks ended.
type Stop uint8

// The ends of a search.
const (
	StopAll   Stop = iota // every lock was found
	StopCount             // Most locks were found, and there may be more
	StopTime              // the time was over, or masters have more names than a search looks at
)

func (s Stop) String() string { return [...]string{"all", "count", "time"}[s] }

// FoundLocks is the outcome of Locks.
type FoundLocks struct {
	Err   error // *NoQuorum, ErrClosed
	Locks []FoundLock
	// Unclear counts the names about which no quorum tells whether there is a lock, because masters do not answer.
	Unclear int
	Stop    Stop
}

// The bounds of a question for names, and of a search. A master looks through scanKeys keys in less than a millisecond.
const (
	scanKeys    = 500
	scanNameMax = 512     // bytes; a lock with a longer name is not found
	scanSeenMax = 1 << 16 // names that one search looks at
)

// A search is a Locks under way. One goroutine at a time has the search.
//
// One master after another is asked for its names, by SCAN, until N − q + 1 masters have told all their names: a lock that a
// quorum holds is on at least one of these masters. A master that is late, or fails, is passed over for the next. A quorum is
// asked about the names from a master, a few at a time, as for Peek. A search has one question under way at a time, and the
// pacer bounds the number of searches that go on at once.
type search struct {
	engine *Engine
	req    LocksRequest
	done   func(FoundLocks)
	ends   instant // the end of the time for the search

	lanes   laneSet // of the masters that have not told all their names; the first is being asked
	cursor  string  // of the first master's SCAN
	scanned int     // masters that have told all their names
	failed  []Cause // masters that were passed over
	told    []string
	seen    map[string]bool // every name that was ever in told
	found   []FoundLock
	unclear int
}

func newSearch(e *Engine, req LocksRequest, done func(FoundLocks)) *search {
	s := &search{
		engine: e, req: req, done: done, told: req.Names, lanes: e.databases.lanes(req.DB), cursor: "0",
		seen: map[string]bool{}, ends: e.now() + req.Within,
	}
	s.add(req.First)
	return s
}

// next looks at the told names, asks for more names, or ends the search.
func (s *search) next() {
	e := s.engine
	switch enough := len(e.masters) - rules.Quorum(len(e.masters)) + 1; {
	case len(s.found) > s.req.Most:
		s.found = s.found[:s.req.Most]
		s.end(StopCount)
	case e.now() >= s.ends || len(s.seen) > scanSeenMax:
		s.end(StopTime)
	case len(s.told) > 0:
		s.look()
	case s.req.Names != nil || s.scanned >= enough:
		s.end(StopAll)
	case s.scanned+len(s.lanes) < enough:
		s.fail()
	default:
		e.pacer.begin(PieceKeys, s.scan)
	}
}

func (s *search) end(why Stop) { s.done(FoundLocks{Locks: s.found, Unclear: s.unclear, Stop: why}) }

func (s *search) fail() {
	e := s.engine
	if e.closing.Load() {
		s.done(FoundLocks{Err: ErrClosed})
		return
	}
	s.done(FoundLocks{Err: &NoQuorum{Masters: len(e.masters), Answered: s.scanned + len(s.lanes), Causes: s.failed}})
}

// scan asks the first master for its next names.
func (s *search) scan() {
	p := &page{lane: s.lanes[0]}
	pattern := "*"
	if s.req.Pattern != "" {
		pattern = s.req.Pattern
	}
	p.Args = luaScan.whole(nil, s.cursor, pattern, int64(scanKeys), int64(scanNameMax), recordPrefix)
	p.done = func(reply any, why failure) {
		s.engine.pacer.end(PieceKeys)
		s.hear(reply, why)
		s.next()
	}
	p.ask()
}

// hear takes the first master's reply, or the failure of the question.
func (s *search) hear(reply any, why failure) {
	list, _ := reply.([]any)
	var cursor string
	if len(list) > 0 {
		cursor, _ = list[0].(string)
	}
	if why.none() && cursor == "" {
		why = failure{FailedError, unexpected.cause}
	}
	if !why.none() {
		s.failed = append(s.failed, Cause{s.lanes[0].master.Addr(), why.text})
		s.lanes, s.cursor = s.lanes[1:], "0"
		return
	}
	names := make([]string, 0, len(list)-1)
	for _, item := range list[1:] {
		if name, ok := item.(string); ok {
			names = append(names, name)
		}
	}
	s.add(names)
	if s.cursor = cursor; cursor == "0" {
		s.scanned++
		s.lanes = s.lanes[1:]
	}
}

// add notes names to look at, each name once.
func (s *search) add(names []string) {
	for _, name := range names {
		if !s.seen[name] && !Reserved(name) && s.req.Matches(name) {
			s.seen[name] = true
			s.told = append(s.told, name)
		}
	}
}

// look asks a quorum about the first of the told names.
func (s *search) look() {
	n := min(len(s.told), PieceKeys)
	names := s.told[:n:n]
	s.told = s.told[n:]
	from := len(s.found)
	about := &survey{engine: s.engine, db: s.req.DB, names: names, how: headed, apart: true}
	about.each = func(names []string, views []View, next func()) {
		for i, v := range views {
			switch {
			case v.Err != nil:
				s.unclear++
			case v.Exists:
				s.found = append(s.found, FoundLock{Name: names[i], Type: v.Type, Token: excerpt(v.Type, v.Value, v.head, v.Length), TTL: v.TTL})
			}
		}
		next()
	}
	about.done = func(err error) {
		if err != nil {
			s.done(FoundLocks{Err: err})
			return
		}
		s.fences(s.found[from:])
	}
	about.next()
}

// fences asks for the fences of the locks of one piece.
func (s *search) fences(of []FoundLock) {
	if len(of) == 0 {
		s.next()
		return
	}
	records := make([]string, len(of))
	for i := range of {
		records[i] = recordPrefix + of[i].Name
	}
	e := s.engine
	g := &getRound{names: records, keys: make([]agreement, len(of))}
	g.round.keys = weighed(len(of))
	g.done = func(err error) {
		e.pacer.end(len(of))
		if err != nil {
			s.done(FoundLocks{Err: err})
			return
		}
		g.mu.Lock()
		for i := range of {
			of[i].Fence = fenceOf(g.view(i).Value)
		}
		g.mu.Unlock()
		s.next()
	}
	e.pacer.begin(len(of), func() { beginAll(e, g, s.req.DB, records, luaNewestFences.whole(records)) })
}

// A page is one question for names, to one master. It calls done exactly once: with the reply, or with the cause of a missing
// reply.
type page struct {
	masters.Call
	lane *lane
	over atomic.Bool
	done func(reply any, why failure)
}

func (p *page) ask() {
	e := p.lane.engine
	e.load.Begin(weighed(PieceKeys))
	e.sweeper.add(e.waited().plus(e.cfg.InstanceTimeout), p)
	if why := p.lane.queue.push(p, e.waited()); !why.none() {
		p.end(nil, why)
	}
}

func (p *page) end(reply any, why failure) {
	if p.over.Swap(true) {
		return
	}
	e := p.lane.engine
	if why.none() {
		e.load.Answered(weighed(PieceKeys), e.now())
	} else {
		e.load.Failed(weighed(PieceKeys))
	}
	p.done(reply, why)
}

func (p *page) command() *masters.Call { return &p.Call }
func (p *page) keeps() time.Duration   { return 0 }

// take drops a question that is over.
func (p *page) take(answerTime) bool { return !p.over.Load() }

func (p *page) reply(instant) {
	if p.Err != nil {
		p.end(nil, failure{FailedError, failureText(p.Err)})
		return
	}
	p.end(p.Reply, failure{})
}

func (p *page) lost(cause string) { p.end(nil, failure{FailedConnection, cause}) }

func (p *page) expire() {
	if !p.over.Load() {
		p.end(nil, p.lane.queue.lateness())
	}
}

var _ request = (*page)(nil)

// luaScan ARGV[1]=cursor ARGV[2]=pattern ARGV[3]=the number of keys to look through ARGV[4]=the longest length of a name
// ARGV[5]=the prefix of names to leave out: {the next cursor, names…}.
var luaScan = newLua(`
local page = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local told, most, ours = {page[1]}, tonumber(ARGV[4]), ARGV[5]
for _, name in ipairs(page[2]) do
  if #name <= most and string.sub(name, 1, #ours) ~= ours then told[#told + 1] = name end
end
return told`)
