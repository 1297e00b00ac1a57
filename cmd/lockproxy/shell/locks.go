package shell

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"lockproxy/cmd/lockproxy/cli"
	"lockproxy/cmd/lockproxy/shell/client"
)

// locksMax is how many locks LOCKS lists at most.
const locksMax = 1000

// A Lock is one row of locks and top.
type Lock struct {
	Key     string  `json:"key"`
	Type    string  `json:"type"`
	Token   *string `json:"token"` // null where the lock has no single token, as Redisson's
	Fence   *int64  `json:"fence"`
	TTL     int64   `json:"ttl_ms"`
	Age     *int64  `json:"age_ms"` // since the lock was taken, as its fence tells
	Waiters int64   `json:"waiters"`
	Client  *string `json:"client"` // the client's address; this field and the next three are null if the proxy does not know the client
	Name    *string `json:"name"`
	Library *string `json:"library"`
	User    *string `json:"user"`
	refused float64 // attempts a minute, for the order of top; 0 if the lock is not among the hottest keys
}

// Locks is a proxy's list of locks.
type Locks struct {
	Proxy    string `json:"proxy"`
	Locks    []Lock `json:"locks"`
	Unclear  int64  `json:"unclear"`
	Complete bool   `json:"complete"`
	End      string `json:"-"`
}

// A lister is one locks.
type lister struct {
	reach
	pattern string
	count   int
	json    bool
}

func newLister() *lister { return &lister{pattern: "*", count: 100} }

func (l *lister) flags() []cli.Flag {
	return append([]cli.Flag{
		{Name: "count", Arg: "number", Default: "100", Help: "how many locks to list at most", Set: cli.Number(&l.count, 1, locksMax)},
		{Name: "json", Help: "print one JSON object", Set: cli.Yes(&l.json)},
	}, l.reach.flags()...)
}

// List prints the locks that a quorum holds.
func List(args, env []string, stdout, stderr io.Writer) int {
	l := newLister()
	words, err := l.words(args, "locks", 1)
	var proxies *client.Proxies
	if err == nil {
		proxies, err = l.open(env)
	}
	if err != nil {
		return complain(stderr, "locks", err)
	}
	if len(words) > 0 {
		l.pattern = words[0]
	}
	found, err := findLocks(proxies, l.pattern, l.count)
	switch {
	case err != nil:
		return complain(stderr, "locks", err)
	case l.json:
		return printJSON(stdout, found)
	}
	writeLocks(stdout, found.Locks)
	if note := found.note(); note != "" {
		fmt.Fprintln(stderr, "lockproxy: locks:", note)
	}
	return exitOK
}

// words reads the command line. most is how many words it may have beside its flags.
func (l *lister) words(args []string, name string, most int) ([]string, error) {
	return wordsOf(l.flags(), args, name, most)
}

func wordsOf(flags []cli.Flag, args []string, name string, most int) ([]string, error) {
	words, after, err := cli.Operands(flags, args)
	words = append(words, after...)
	if err == nil && len(words) > most {
		err = cli.Usage(fmt.Sprintf("%s: is one word too many; see lockproxy %s --help", words[most], name))
	}
	return words, err
}

// complain prints the error, and returns the exit code.
func complain(stderr io.Writer, name string, err error) int {
	fmt.Fprintf(stderr, "lockproxy: %s: %v\n", name, err)
	if _, usage := err.(cli.Usage); usage { //nolint:errorlint // a Usage is not wrapped
		return exitUsage
	}
	return exitUnavailable
}

func printJSON(w io.Writer, v any) int {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // run in main.go reports failed writes
	return exitOK
}

// findLocks asks the first proxy that answers.
func findLocks(proxies *client.Proxies, pattern string, count int) (*Locks, error) {
	reply, addr, err := ask(proxies, "LOCKS", "MATCH", pattern, "COUNT", strconv.Itoa(count))
	if err != nil {
		return nil, err
	}
	fields := client.Fields(reply)
	rows, ok := fields["locks"].([]any)
	if !ok {
		return nil, fmt.Errorf("%s has no LOCKS as this version knows it; update it", addr)
	}
	found := &Locks{Proxy: addr, Locks: []Lock{}}
	found.Unclear, _ = fields["unclear"].(int64)
	found.End, _ = fields["end"].(string)
	found.Complete = found.End == "all"
	now := time.Now()
	for _, row := range rows {
		found.Locks = append(found.Locks, lockOf(client.Fields(row), now))
	}
	return found, nil
}

func lockOf(f map[string]any, now time.Time) Lock {
	l := Lock{Token: optional[string](f["token"]), Fence: optional[int64](f["fence"]), Client: optional[string](f["client"]),
		Name: optional[string](f["name"]), Library: optional[string](f["library"]), User: optional[string](f["user"])}
	l.Key, _ = f["resource"].(string)
	l.Type, _ = f["type"].(string)
	l.TTL, _ = f["validity"].(int64)
	l.Waiters, _ = f["waiters"].(int64)
	if l.Fence != nil { // a fence is about the proxy's clock at the grant, in microseconds since 1970
		age := max(now.UnixMilli()-*l.Fence/1000, 0)
		l.Age = &age
	}
	return l
}

func optional[T any](v any) *T {
	if t, ok := v.(T); ok {
		return &t
	}
	return nil
}

// note says why the list may lack locks; "" if the list is complete.
func (f *Locks) note() string {
	var notes []string
	switch f.End {
	case "count":
		notes = append(notes, fmt.Sprintf("there may be more than these %d; name a pattern, or raise --count", len(f.Locks)))
	case "time":
		notes = append(notes, "the list is not complete: there are too many locks to look at all; name a pattern")
	}
	if f.Unclear > 0 {
		notes = append(notes, fmt.Sprintf("of %d more no quorum of masters tells whether they are held", f.Unclear))
	}
	return strings.Join(notes, "; ")
}

func writeLocks(w io.Writer, all []Lock) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "KEY\tHOLDER\tAGE\tTTL\tWAITERS\tFENCE\tTYPE\tCLIENT\tNAME\tUSER\tLIBRARY")
	for _, l := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", printable(l.Key), printable(text(l.Token)), age(l.Age), span(l.TTL), l.Waiters,
			number(l.Fence), l.Type, text(l.Client), printable(text(l.Name)), printable(text(l.User)), printable(text(l.Library)))
	}
	_ = table.Flush()
}

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func age(ms *int64) string {
	if ms == nil {
		return "-"
	}
	return span(*ms)
}

// span writes a time in ms with the two parts that matter: 1h2m, 3m4s, 5.6s.
func span(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}

// printable writes a name so that no byte in the name can move the cursor of a terminal.
func printable(name string) string {
	for _, c := range name {
		if !strconv.IsPrint(c) || c == '\uFFFD' {
			return strconv.Quote(name)
		}
	}
	return name
}

// The orders in which locks can be shown.
var orders = map[string]func(a, b Lock) int{
	"waiters": func(a, b Lock) int {
		return cmp.Or(cmp.Compare(b.Waiters, a.Waiters), cmp.Compare(value(b.Age), value(a.Age)), strings.Compare(a.Key, b.Key))
	},
	"refused": func(a, b Lock) int {
		return cmp.Or(cmp.Compare(b.refused, a.refused), cmp.Compare(b.Waiters, a.Waiters), strings.Compare(a.Key, b.Key))
	},
	"age": func(a, b Lock) int {
		return cmp.Or(cmp.Compare(value(b.Age), value(a.Age)), strings.Compare(a.Key, b.Key))
	},
	"ttl": func(a, b Lock) int { return cmp.Or(cmp.Compare(b.TTL, a.TTL), strings.Compare(a.Key, b.Key)) },
	"key": func(a, b Lock) int { return strings.Compare(a.Key, b.Key) },
}

func value(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

func sortLocks(all []Lock, order string) { slices.SortStableFunc(all, orders[order]) }
