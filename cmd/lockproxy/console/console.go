// Package console is the page on the admin port for people. The page shows the masters that vote, and why others do not; the locks, and
// how many clients wait for each; the attempts of the last hour; and the last warnings of the log. The page changes nothing, works without
// JavaScript, and loads nothing from elsewhere.
package console

import (
	"cmp"
	"context"
	"embed"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/gate"
	"lockproxy/resp"
)

// Engine is the part of quorum.Engine that the console shows.
type Engine interface {
	Databases() []quorum.DatabaseStatus
	Stats() quorum.Stats
	Locks(req quorum.LocksRequest, done func(quorum.FoundLocks))
	Views(key quorum.Key, done func(quorum.Viewed))
	Fence(key quorum.Key, done func(quorum.FenceView))
}

// Front is the part of resp.Server that the console shows.
type Front interface {
	Stats() resp.Stats
	Gates() *gate.Gates
	Hottest(n int) (refused, waited []resp.HotKey)
	Holders() func(key quorum.Key, token string) resp.Client
}

// Options of a Console.
type Options struct {
	Version   string
	Databases int // how many, for clients to select
	First     int // the clients' first database
	Warnings  *Warnings
}

// A Console serves the pages.
type Console struct {
	engine  Engine
	front   Front
	opt     Options
	started time.Time
	history history
	locks   *listing
	mux     *http.ServeMux
}

//go:embed page.html lock.html head.html console.css console.js
var files embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"text": printable, "left": left, "ago": ago,
}).ParseFS(files, "*.html"))

// New returns a console. Run fills its charts.
func New(engine Engine, front Front, opt Options) *Console {
	c := &Console{engine: engine, front: front, opt: opt, started: time.Now(), locks: &listing{engine: engine}, mux: http.NewServeMux()}
	c.mux.HandleFunc("GET /{$}", c.overview)
	c.mux.HandleFunc("GET /lock", c.lock)
	c.mux.Handle("GET /console.css", http.FileServerFS(files))
	c.mux.Handle("GET /console.js", http.FileServerFS(files))
	return c
}

// Run notes the engine's counts for the charts, until ctx ends.
func (c *Console) Run(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		c.history.note(time.Now(), c.engine.Stats())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// policy lets a page load the console's own style and script, and send forms to the console only. No page may frame the console.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // names of locks are in addresses
	h.Set("Cache-Control", "no-store")
	c.mux.ServeHTTP(w, r)
}

// head is the head of all pages.
type head struct {
	Title   string
	Version string
	Up      time.Duration
	DB      int
}

func (c *Console) head(title string, db int) head {
	return head{Title: title, Version: c.opt.Version, Up: time.Since(c.started), DB: db}
}

// An overview is the first page.
type overview struct {
	head
	Match     string
	Databases []database
	Stats     quorum.Stats
	Front     resp.Stats
	Locks     []lockRow
	LocksErr  string
	More      string        // why there may be more locks than Locks has
	Refused   []resp.HotKey // attempts a minute
	Waited    []resp.HotKey // seconds a minute
	Charts    []chart
	Lost      []Line
	Warned    []Line
	Choices   []int // databases to choose from; shown if there are several
}

// hottestShown is how many keys a list of the hottest has.
const hottestShown = 10

// A database is the state of the masters in one database.
type database struct {
	quorum.DatabaseStatus
	Lack string // why no quorum can vote
}

// A lockRow is a held lock, or a lock with waiting clients of this proxy.
type lockRow struct {
	Name    string
	DB      int
	Held    bool
	Lock    quorum.FoundLock
	Client  resp.Client // of the holder; zero if this proxy does not know the client
	Waiting int
}

func (c *Console) overview(w http.ResponseWriter, r *http.Request) {
	db, ok := c.database(w, r)
	if !ok {
		return
	}
	match := r.URL.Query().Get("match")
	if len(match) > patternMax {
		http.Error(w, "match: the pattern is longer than "+strconv.Itoa(patternMax)+" bytes", http.StatusBadRequest)
		return
	}
	p := overview{head: c.head("lockproxy", db), Match: match, Stats: c.engine.Stats(), Front: c.front.Stats(), Charts: c.history.charts(time.Now())}
	for _, s := range c.engine.Databases() {
		d := database{DatabaseStatus: s}
		if err := s.Ready(); err != nil {
			d.Lack = err.Error()
		}
		p.Databases = append(p.Databases, d)
		p.Choices = append(p.Choices, s.DB)
	}
	p.Lost, p.Warned = c.opt.Warnings.last()
	p.Refused, p.Waited = c.front.Hottest(hottestShown)
	found, err := c.locks.find(r.Context(), db, match)
	if err != nil {
		p.LocksErr = err.Error()
	}
	p.More = more(found)
	p.Locks = c.rows(db, match, found)
	render(w, "page.html", p)
}

// rows are the found locks, and without a pattern the locks with the longest queues. The row with the most waiters is first.
func (c *Console) rows(db int, match string, found quorum.FoundLocks) []lockRow {
	var rows []lockRow
	gates, holder, seen := c.front.Gates(), c.front.Holders(), map[string]bool{}
	for _, l := range found.Locks {
		seen[l.Name] = true
		key := quorum.Key{DB: db, Name: l.Name}
		rows = append(rows, lockRow{Name: l.Name, DB: db, Held: true, Lock: l, Client: holder(key, l.Token), Waiting: gates.Waiting(key)})
	}
	for _, q := range gates.Longest(queuesShown) {
		if q.Key.DB == db && !seen[q.Key.Name] && match == "" {
			rows = append(rows, lockRow{Name: q.Key.Name, DB: db, Waiting: q.Waiting})
		}
	}
	slices.SortStableFunc(rows, func(a, b lockRow) int { return cmp.Or(b.Waiting-a.Waiting, cmp.Compare(a.Name, b.Name)) })
	return rows
}

func more(found quorum.FoundLocks) string {
	switch found.Stop {
	case quorum.StopCount:
		return "There are more: narrow the pattern."
	case quorum.StopTime:
		return "The search ended before all names were looked at: narrow the pattern, or use LOCKS."
	}
	return ""
}

// A lockPage shows one lock.
type lockPage struct {
	head
	Name    string
	View    quorum.Viewed
	Client  resp.Client // of the holder; zero if this proxy does not know the client
	Fence   int64
	Waiting int
	Err     string
}

func (c *Console) lock(w http.ResponseWriter, r *http.Request) {
	db, ok := c.database(w, r)
	if !ok {
		return
	}
	name := r.URL.Query().Get("name")
	if name == "" || quorum.Reserved(name) {
		http.Error(w, "name: give the name of a lock, as in /lock?name=job:7", http.StatusBadRequest)
		return
	}
	key := quorum.Key{DB: db, Name: name}
	p := lockPage{head: c.head(printable(name)+" · lockproxy", db), Name: name, Waiting: c.front.Gates().Waiting(key)}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	view, err := await(ctx, func(done func(quorum.Viewed)) { c.engine.Views(key, done) })
	if err == nil {
		p.View, err = view, view.Err
	}
	if err == nil {
		var f quorum.FenceView
		if f, err = await(ctx, func(done func(quorum.FenceView)) { c.engine.Fence(key, done) }); err == nil {
			p.Fence = f.Fence // without a quorum no fence is known
		}
	}
	if err != nil {
		p.Err = err.Error()
	}
	if p.View.State == quorum.LockHeld {
		p.Client = c.front.Holders()(key, p.View.View.Value)
	}
	render(w, "lock.html", p)
}

// database returns the database in the request. If the request names no existing database, database answers with an error.
func (c *Console) database(w http.ResponseWriter, r *http.Request) (int, bool) {
	text := r.URL.Query().Get("db")
	if text == "" {
		return c.opt.First, true
	}
	db, err := strconv.Atoi(text)
	if err != nil || db < 0 || db >= c.opt.Databases {
		http.Error(w, "db: give a number from 0 to "+strconv.Itoa(c.opt.Databases-1), http.StatusBadRequest)
		return 0, false
	}
	return db, true
}

func render(w http.ResponseWriter, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = pages.ExecuteTemplate(w, name, data) // the client may be gone
}
