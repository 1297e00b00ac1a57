package shell

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// A HotKey is a key that clients contend for.
type HotKey struct {
	Key       string  `json:"key"`
	DB        int64   `json:"db"`
	PerMinute float64 `json:"per_minute"`
}

// Hottest are the hottest keys of the last minutes.
type Hottest struct {
	Refused []HotKey `json:"hot_refused"` // by refused attempts a minute
	Waited  []HotKey `json:"hot_waited"`  // by seconds of waiting a minute
}

// hotMax is how many keys a list has at most.
const hotMax = 10

// read takes the lines of INFO lockproxy. A proxy of an earlier version has none.
func (h *Hottest) read(lines map[string]string) {
	for i := range hotMax {
		if line, ok := lines[fmt.Sprint("hot_refused", i)]; ok {
			h.Refused = append(h.Refused, hotKeyOf(line))
		}
		if line, ok := lines[fmt.Sprint("hot_waited", i)]; ok {
			h.Waited = append(h.Waited, hotKeyOf(line))
		}
	}
}

// hotKeyOf reads a line such as per_minute=3.50,db=0,key="job:7". The key is last, because the key may hold any bytes.
func hotKeyOf(line string) HotKey {
	var k HotKey
	rest, quoted, _ := strings.Cut(line, ",key=")
	rate, db, _ := strings.Cut(rest, ",db=")
	_, rate, _ = strings.Cut(rate, "=")
	k.PerMinute, _ = strconv.ParseFloat(rate, 64)
	k.DB = integer(db)
	if key, err := strconv.Unquote(quoted); err == nil {
		k.Key = key
	}
	return k
}

// hottestOf sums the lists of all proxies.
func hottestOf(proxies []*Status) Hottest {
	var refused, waited [][]HotKey
	for _, p := range proxies {
		refused, waited = append(refused, p.Refused), append(waited, p.Waited)
	}
	return Hottest{Refused: summed(refused), Waited: summed(waited)}
}

// summed adds up the rates of equal keys. The hottest key is first.
func summed(lists [][]HotKey) []HotKey {
	all := []HotKey{}
	for _, k := range slices.Concat(lists...) {
		same := func(of HotKey) bool { return of.DB == k.DB && of.Key == k.Key }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].PerMinute += k.PerMinute
		} else {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b HotKey) int {
		return cmp.Or(cmp.Compare(b.PerMinute, a.PerMinute), cmp.Compare(a.DB, b.DB), strings.Compare(a.Key, b.Key))
	})
	return all[:min(len(all), hotMax)]
}

// hotNameMax is how many bytes of a name a proxy tells in its lists of the hottest keys.
const hotNameMax = 256

// refusals returns the refused attempts a minute for a lock; 0 if the lock is not among the hottest keys.
func (h *Hottest) refusals(lock string, db int) float64 {
	for _, k := range h.Refused {
		if k.DB == int64(db) && k.Key == lock[:min(len(lock), hotNameMax)] {
			return k.PerMinute
		}
	}
	return 0
}

// sideBySide is how many columns two lists need beside each other.
const sideBySide = 100

// write prints the lists, beside each other in a wide window, and as many keys as leave most of a window to the locks. Without hot keys,
// write prints nothing.
func (h *Hottest) write(w io.Writer, in room) {
	most := hotMax
	if in.rows > 0 {
		most = min(max(in.rows/6, 1), hotMax)
	}
	wide := in.columns >= sideBySide
	if in.rows > 0 && !wide {
		most = max(most/2, 1)
	}
	refused := hotLines("REFUSED/MIN", h.Refused, most)
	waited := hotLines("WAITED S/MIN", h.Waited, most)
	if !wide || len(refused) == 0 || len(waited) == 0 {
		for _, line := range slices.Concat(refused, waited) {
			fmt.Fprintln(w, line)
		}
		return
	}
	half := in.columns/2 - 1
	for i := range max(len(refused), len(waited)) {
		var left, right string
		if i < len(refused) {
			left = cut(refused[i], half-1)
		}
		if i < len(waited) {
			right = waited[i]
		}
		fmt.Fprintln(w, strings.TrimRight(left+strings.Repeat(" ", half-utf8.RuneCountInString(left))+right, " "))
	}
}

// hotLines returns a list's header and its first keys as lines; none for an empty list. The key is last: a narrow window cuts the key, not
// the rate.
func hotLines(title string, keys []HotKey, most int) []string {
	if len(keys) == 0 {
		return nil
	}
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(table, "%s\tDB\tKEY\n", title)
	for _, k := range keys[:min(len(keys), most)] {
		fmt.Fprintf(table, "%.1f\t%d\t%s\n", k.PerMinute, k.DB, printable(k.Key))
	}
	_ = table.Flush()
	return strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
}
