package shell

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"lockproxy/cmd/lockproxy/cli"
	"lockproxy/cmd/lockproxy/shell/client"
)

// A viewer is one top.
type viewer struct {
	reach
	every   time.Duration
	order   string
	pattern string
	count   int
	times   int
	json    bool
}

// sorts are the values of --sort, which orders knows.
var sorts = []string{"waiters", "refused", "age", "ttl", "key"}

func newViewer() *viewer {
	return &viewer{every: 2 * time.Second, order: "waiters", pattern: "*", count: 200}
}

func (v *viewer) flags() []cli.Flag {
	return append([]cli.Flag{
		{Name: "every", Arg: "duration", Default: "2s", Help: "how often to look", Set: cli.Duration(&v.every, 200*time.Millisecond, time.Hour)},
		{Name: "sort", Arg: "order", Default: "waiters", Help: "the order of locks: waiters, refused, age, ttl or key", Values: sorts, Set: cli.OneOf(&v.order, sorts...)},
		{Name: "count", Arg: "number", Default: "200", Help: "how many locks to look at", Set: cli.Number(&v.count, 1, locksMax)},
		{Name: "times", Arg: "number", Default: "without end", Help: "end after so many looks", Set: cli.Number(&v.times, 1, 1<<30)},
		{Name: "json", Help: "print one JSON object in a line for each look", Set: cli.Yes(&v.json)},
	}, v.reach.flags()...)
}

// A Look is the content of top at one moment.
type Look struct {
	At      time.Time          `json:"at"`
	Proxies []*Status          `json:"proxies"`
	Rates   map[string]float64 `json:"rates_per_sec"` // over all proxies, since the look before
	Hottest                    // over all proxies
	Found   *Locks             `json:"found"`
	Error   string             `json:"error,omitempty"` // why there are no locks
}

// Top shows, again and again, the proxies, the masters and the locks.
func Top(args, env []string, stdout, stderr io.Writer) int {
	v := newViewer()
	words, err := wordsOf(v.flags(), args, "top", 1)
	var proxies *client.Proxies
	if err == nil {
		proxies, err = v.open(env)
	}
	if err != nil {
		return complain(stderr, "top", err)
	}
	if len(words) > 0 {
		v.pattern = words[0]
	}
	if screen := openScreen(stdout); screen != nil && !v.json {
		defer screen.close()
		return v.interactive(proxies, screen)
	}
	return v.plain(proxies, stdout)
}

// plain prints one look below the other.
func (v *viewer) plain(proxies *client.Proxies, stdout io.Writer) int {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	var before *Look
	for n := 1; ; n++ {
		look := v.look(proxies, before)
		var out bytes.Buffer
		if v.json {
			printJSON(&out, look)
		} else {
			v.write(&out, look, room{})
			fmt.Fprintln(&out)
		}
		if _, err := stdout.Write(out.Bytes()); err != nil {
			return exitUnavailable // nobody reads any more
		}
		if n == v.times {
			return exitOK
		}
		before = look
		select {
		case <-stop:
			return exitOK
		case <-time.After(v.every):
		}
	}
}

// interactive draws each look over the look before, until q.
func (v *viewer) interactive(proxies *client.Proxies, s *screen) int {
	looks := make(chan *Look)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		var before *Look
		for {
			before = v.look(proxies, before)
			select {
			case looks <- before:
			case <-stop:
				return
			}
			select {
			case <-time.After(v.every):
			case <-stop:
				return
			}
		}
	}()
	var latest *Look
	for n := 0; ; {
		select {
		case latest = <-looks:
			n++
		case <-s.resized:
		case key := <-s.keys:
			if key == 'q' || key == 3 || key == 4 { // ^C, ^D
				return exitOK
			}
			if order := map[byte]string{'w': "waiters", 'r': "refused", 'a': "age", 't': "ttl", 'k': "key"}[key]; order != "" {
				v.order = order
			}
		case <-s.ended:
			return exitOK
		}
		var out bytes.Buffer
		if latest == nil {
			fmt.Fprintln(&out, "asking", strings.Join(proxies.Addrs, ", "))
		} else {
			v.write(&out, latest, s.room())
		}
		s.draw(out.String(), "sorted by "+v.order+"; q ends; sort by w waiters, r refused, a age, t TTL, k key")
		if v.times > 0 && n >= v.times {
			return exitOK
		}
	}
}

// look asks every proxy for its status, and the first proxy that answers for the locks.
func (v *viewer) look(proxies *client.Proxies, before *Look) *Look {
	l := &Look{At: time.Now(), Rates: map[string]float64{}}
	for _, addr := range proxies.Addrs {
		l.Proxies = append(l.Proxies, statusOf(proxies, addr))
	}
	if before != nil {
		for i, is := range l.Proxies {
			was := before.Proxies[i]
			seconds := is.asked.Sub(was.asked).Seconds()
			if is.Error != "" || was.Error != "" || is.Uptime < was.Uptime || seconds <= 0 {
				continue
			}
			for _, name := range rated {
				l.Rates[name] += max(float64(is.Counters[name]-was.Counters[name])/seconds, 0)
			}
		}
	}
	l.Hottest = hottestOf(l.Proxies)
	found, err := findLocks(proxies, v.pattern, v.count)
	if err != nil {
		l.Error = err.Error()
		return l
	}
	for i := range found.Locks {
		found.Locks[i].refused = l.refusals(found.Locks[i].Key, v.db)
	}
	l.Found = found
	return l
}

// rated are the counters whose growth a second top shows.
var rated = []string{"acquired", "refused", "no_quorum", "extended", "released"}

// write prints a look for a person.
func (v *viewer) write(w io.Writer, l *Look, in room) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "PROXY\tVOTING\tCLIENTS\tHOLD\tWAIT\tP99\tVERSION\tUP\tSTATE")
	for _, p := range l.Proxies {
		if p.Error != "" {
			fmt.Fprintf(table, "%s\t-\t-\t-\t-\t-\t-\t-\t%s\n", p.Proxy, printable(p.Error))
			continue
		}
		state := "ok"
		if p.Voting < p.Quorum {
			state = "NO QUORUM"
		}
		fmt.Fprintf(table, "%s\t%d of %d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", p.Proxy, p.Voting, len(p.Masters), p.Clients, p.Counters["held"],
			p.Counters["waiting"], micros(p.Counters["round_p99_usec"]), p.Version, span(p.Uptime*1000), state)
	}
	_ = table.Flush()
	var rates []string
	for _, name := range rated {
		if rate, ok := l.Rates[name]; ok {
			rates = append(rates, fmt.Sprintf("%s %.1f/s", name, rate))
		}
	}
	if len(rates) > 0 {
		fmt.Fprintf(w, "%s\n", strings.ReplaceAll(strings.Join(rates, ", "), "_", " "))
	}
	for _, p := range l.Proxies {
		if p.Error == "" {
			fmt.Fprintln(w)
			writeMasters(w, p.Masters)
			break
		}
	}
	if len(l.Refused)+len(l.Waited) > 0 {
		fmt.Fprintln(w)
		l.Hottest.write(w, in)
	}
	fmt.Fprintln(w)
	switch {
	case l.Error != "":
		fmt.Fprintln(w, l.Error)
	default:
		if note := l.Found.note(); note != "" {
			fmt.Fprintln(w, note)
		}
		sortLocks(l.Found.Locks, v.order)
		writeLocks(w, l.Found.Locks)
	}
}
