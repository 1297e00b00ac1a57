package vouch

import (
	"fmt"
	"strconv"
	"time"
)

// Bounds are the settings on which the locks of all proxies of a deployment rest. Every mark has the Bounds, and every
// proxy keeps to the strictest. Otherwise a proxy that tolerates larger steps of a clock than another proxy's locks can
// bear would grant these locks a second time.
type Bounds struct {
	// Kept is the longest time for which any proxy lets masters keep a lock.
	Kept time.Duration
	// Grace and DriftFactor are the least allowances of any proxy: for clocks that step, and for clocks that run
	// differently.
	Grace       time.Duration
	DriftFactor float64
	// Patience is the longest time for which any proxy waits for an answer. A command that a quorum has answered may
	// reach the other masters after the whole Patience.
	Patience time.Duration
}

// Unbound are the bounds in a mark with which no proxy has voted yet.
var Unbound = Bounds{Grace: longest, DriftFactor: 1}

// longest is more than any setting is.
const longest = 10 * 365 * 24 * time.Hour

// And returns the bounds that satisfy both b and c.
func (b Bounds) And(c Bounds) Bounds {
	return Bounds{
		Kept: max(b.Kept, c.Kept), Grace: min(b.Grace, c.Grace), DriftFactor: min(b.DriftFactor, c.DriftFactor),
		Patience: max(b.Patience, c.Patience),
	}
}

// String returns the bounds as marks have them: four words.
func (b Bounds) String() string {
	return fmt.Sprintf("%v %v %s %v", b.Kept, b.Grace, strconv.FormatFloat(b.DriftFactor, 'g', -1, 64), b.Patience)
}

// parseBounds reads four words.
func parseBounds(f []string) (Bounds, bool) {
	kept, err1 := time.ParseDuration(f[0])
	grace, err2 := time.ParseDuration(f[1])
	factor, err3 := strconv.ParseFloat(f[2], 64)
	patience, err4 := time.ParseDuration(f[3])
	ok := err1 == nil && err2 == nil && err3 == nil && err4 == nil && kept >= 0 && kept <= longest && grace >= 0 &&
		factor >= 0 && factor <= 1 && patience >= 0 && patience <= longest
	return Bounds{kept, grace, factor, patience}, ok
}
