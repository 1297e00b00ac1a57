package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A server is a simulated master. A server takes one parcel after the other, runs the parcel's commands at one instant,
// works for a while, and answers. While the server is stopped, parcels wait in its sockets.
type server struct {
	world *World
	id    int
	addr  string
	rng   *rand.Rand
	clock clock
	steps steps   // of the clock
	rate  float64 // of the clock, without faults
	store store

	lives    int               // another process each time
	born     time.Duration     // true time
	scripts  map[string]string // by SHA-1
	nextID   int64
	sessions map[int64]*conn
	inbox    []*parcel
	busy     bool // works on a parcel

	down    bool          // there is no process
	silent  bool          // nor a machine: nobody says so
	stopped bool          // SIGSTOP
	hogged  bool          // a script runs and runs
	refuses fault         // the error for writes; "" if writes succeed
	slow    time.Duration // added to the work on a parcel

	old        bool // version 6: later commands are unknown
	twofold    bool // another server is, or was, behind its address
	replica    bool
	replicas   int             // replicas that could take its place
	denied     map[string]bool // commands that the user may not run
	append     string          // appendfsync, or "" without appendonly
	policy     string          // maxmemory-policy, or "" without maxmemory
	evicted    int64
	rewrites   int64  // of its file
	refused    int64  // commands of its file that were refused at loading
	limit      string // lua-time-limit, if not the default
	files      files
	lineage    string // the replication id of the master from which it was promoted
	promotions int
	touched    []place       // keys that the running command has set
	running    []string      // the running command; nil if none runs
	sent       time.Duration // true time at which the proxy sent the running command
}

// A place is a key in a database.
type place struct {
	db  int
	key string
}

// A session is a server's state of a connection.
type session struct {
	id     int64
	life   *life
	db     int
	script bool            // one of its scripts runs
	wrote  bool            // the script has written
	giver  *stake          // whose release runs
	topics map[string]bool // to which it has subscribed

	// The clock's lead, as the proxy had been told when it chose the expiries of the keys of this batch.
	knew lead
}

// A parcel came over a connection at once: calls of a batch, or the end.
type parcel struct {
	conn     *conn
	batch    *batch
	from, to int
	order    func() // of a listener
	fin      bool
}

func newServer(w *World, id int) *server {
	s := &server{
		world: w, id: id, addr: addrOf(id), rng: w.random("server", id), store: newStore(),
		scripts: make(map[string]string), sessions: make(map[int64]*conn), denied: make(map[string]bool),
	}
	p := &w.plan
	offset := between(s.rng, -p.Offset, p.Offset)
	s.rate = 1 + p.Rate*(2*s.rng.Float64()-1)
	s.clock = newClock(offset, s.rate)
	s.old, s.append = chance(s.rng, p.Old), p.Append
	for _, name := range p.Denied {
		s.denied[name] = true
	}
	s.replicas = w.replicas()
	return s
}

func (s *server) now() time.Duration { return s.world.now() }

func (s *server) version() string {
	if s.old {
		return "6.2.14"
	}
	return "7.0.15"
}

func (s *server) runID() string { return fmt.Sprintf("%037d%d%02d", 7, s.id, s.lives) }

func (s *server) setting(name string) string {
	switch {
	case name == "appendonly" && s.append != "":
		return "yes"
	case name == "appendonly":
		return "no"
	case name == "appendfsync" && s.append != "":
		return s.append
	case name == "appendfsync":
		return "everysec"
	case name == "io-threads":
		return "1"
	case name == "lua-time-limit":
		return cmp.Or(s.limit, "5000")
	case name == "appendfilename":
		return "appendonly.aof"
	case name == "databases":
		return strconv.Itoa(databases - s.files.fewer)
	case name == "dir":
		return "/data" + s.files.moved
	case name == "maxmemory" && s.policy != "":
		return "100000000"
	case name == "maxmemory":
		return "0"
	case s.policy != "":
		return s.policy
	}
	return "noeviction"
}

// accept is the kernel's work: the process must listen, and need not run.
func (s *server) accept(c *conn) {
	if s.down && s.silent {
		return
	}
	if s.down {
		c.killed = true
		c.send(down, func() { c.hangUp(syscall.ECONNREFUSED) })
		return
	}
	s.nextID++
	c.session = &session{id: s.nextID, life: c.life}
	s.sessions[s.nextID] = c
	b := c.running
	c.send(down, func() {
		if len(b) > 0 {
			b[0].end(nil)
		}
	})
}

// arrived takes a parcel from a connection.
func (s *server) arrived(p *parcel) {
	c := p.conn
	switch {
	case c.killed || c.session == nil || s.sessions[c.session.id] != c:
		if !s.down || !s.silent {
			c.reset()
		}
		if p.batch != nil {
			s.logf("%s: its connection is closed here: not run", c.name)
		}
		return
	case s.down:
		return
	}
	s.inbox = append(s.inbox, p)
	s.work()
}

// work runs the next parcel, if the server can.
func (s *server) work() {
	for !s.busy && !s.down && !s.stopped && len(s.inbox) > 0 {
		p := s.inbox[0]
		s.inbox = s.inbox[1:]
		if p.conn.killed {
			continue
		}
		if p.fin {
			s.drop(p.conn)
			continue
		}
		if p.order != nil {
			p.order()
			continue
		}
		for i := p.from; i < p.to; i++ {
			s.runCall(p, i)
		}
		s.busy = true
		life := s.lives
		s.world.after(between(s.rng, time.Microsecond, 20*time.Microsecond)+s.slow, func() {
			if s.lives != life {
				return
			}
			s.busy = false
			p.conn.answer(p.batch, p.to)
			s.work()
		})
	}
}

// runCall runs one command of a parcel.
func (s *server) runCall(p *parcel, i int) {
	if p.conn.killed { // by an earlier command
		return
	}
	args, a, c := p.batch.words[i], &p.batch.replies[i], p.conn.session
	if args[0] == "TIME" && s.meetsTooEarly(c.life) {
		s.logf("%s: its connection breaks, or it would meet a clock that nobody has judged yet", p.conn.name)
		s.drop(p.conn)
		p.conn.reset()
		return
	}
	if i == 0 {
		c.knew = p.batch.knew
	}
	c.giver, s.sent = p.batch.givers[i], p.batch.sent
	switch r := s.command(c, args).(type) {
	case fault:
		if a.err = r; c.giver != nil && strings.HasPrefix(string(r), "NOSCRIPT") { // the command may be sent again
			delete(c.giver.sent, s)
		}
	default:
		a.reply = plain(r)
		if args[0] == "TIME" {
			p.batch.timed = s.now()
		}
		if args[0] == "TIME" && i == len(p.batch.words)-1 { // otherwise the time is for another purpose, as with the end of the horizon
			told := s.clock.lead(s.now())
			p.batch.told = &told
		}
	}
	if s.world.trace != nil && !dull[args[0]] {
		late := ""
		if p.conn.gone {
			late = " (its connection was given up)"
		}
		s.logf("%s ran %s -> %s%s", p.conn.name, brief(args), a.show(), late)
	}
}

// dull commands are not worth a line of the trace.
var dull = map[string]bool{"PING": true, "TIME": true, "SCRIPT": true, "SELECT": true, "ROLE": true}

// words turns arguments into strings.
func words(args []any) []string {
	list := make([]string, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case string:
			list[i] = a
		case *string:
			list[i] = *a
		case int64:
			list[i] = strconv.FormatInt(a, 10)
		case *int64:
			list[i] = strconv.FormatInt(*a, 10)
		default:
			list[i] = fmt.Sprint(a)
		}
	}
	return list
}

// plain turns a reply into go-redis's form.
func plain(r reply) any {
	switch r := r.(type) {
	case status:
		return string(r)
	case []any:
		list := make([]any, len(r))
		for i := range r {
			list[i] = plain(r[i])
		}
		return list
	}
	return r
}

// drop closes the master's end of a connection.
func (s *server) drop(c *conn) {
	c.killed = true
	delete(s.sessions, c.session.id)
}

// kill is CLIENT KILL ID: commands waiting in the socket never run.
func (s *server) kill(id int64) int64 {
	c := s.sessions[id]
	if c == nil {
		return 0
	}
	s.drop(c)
	c.reset()
	return 1
}

func cmdClient(s *server, c *session, args []string) reply {
	switch {
	case args[1] == "ID":
		return c.id
	case args[1] == "KILL" && len(args) == 4 && args[2] == "ID":
		id, err := strconv.ParseInt(args[3], 10, 64)
		if err != nil {
			return fault("ERR client-id should be greater than 0")
		}
		if s.denied["KILL"] {
			return fault("NOPERM this user has no permissions to run the 'client|kill' command")
		}
		return s.kill(id)
	}
	return fault("ERR unknown subcommand or wrong number of arguments for '" + args[1] + "'. Try CLIENT HELP.")
}

// crash ends the process and its connections. If the machine goes with it (silent), nobody is told.
func (s *server) crash(silent bool) {
	s.down, s.silent, s.busy = true, silent, false
	s.lives++
	s.inbox = nil
	s.cutConnections(silent)
	clear(s.scripts)
}

// cutConnections ends all connections, as Sentinel does when it makes a master a replica.
func (s *server) cutConnections(silent bool) {
	ids := make([]int64, 0, len(s.sessions))
	for id := range s.sessions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		c := s.sessions[id]
		c.killed = true
		if !silent {
			c.reset()
		}
	}
	clear(s.sessions)
}

// boot starts a process on the existing data.
func (s *server) boot() {
	s.down, s.stopped, s.hogged, s.slow, s.replica = false, false, false, 0, false
	s.born, s.nextID, s.evicted, s.refused = s.now(), 0, 0, 0
	s.files.restart()
}

func (s *server) logf(format string, args ...any) { s.world.logf(s.addr, format, args...) }

// command runs one command, and shows the checker the keys set by it.
func (s *server) command(c *session, args []string) reply {
	s.store.command++
	s.running = args
	r := s.do(c, args)
	s.running = nil
	for _, at := range s.touched {
		if it, ok := s.store.get(at.db, at.key, s.clock.millis(s.now())); ok {
			s.world.checker.wrote(s, c, at.key, it)
		}
	}
	s.touched = s.touched[:0]
	return r
}
