package quorum

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"lockproxy/quorum/masters"
)

// A roster holds the epoch of each master in one database, as far as this proxy knows: the largest that any master, or
// another one on its behalf, has told. A grant that a master gave in an earlier epoch is void.
type roster []atomic.Int64

// latestEpoch is the roster's epoch of the lane's own master.
func (l *lane) latestEpoch() *atomic.Int64 { return &l.roster[l.master.slot] }

// learn raises the epochs to those in a roster's text.
func (r roster) learn(text string) {
	for i, f := range strings.Fields(text) {
		if epoch, err := strconv.ParseInt(f, 10, 64); err == nil && i < len(r) {
			raise(&r[i], epoch)
		}
	}
}

// args returns the epochs as arguments of a script.
func (r roster) args() []any {
	args := make([]any, len(r))
	for i := range r {
		args[i] = r[i].Load()
	}
	return args
}

// isIn says that a roster's text has no earlier epoch of any master.
func (r roster) isIn(text string) bool {
	told := strings.Fields(text)
	for i := range r {
		if i >= len(told) {
			return false
		}
		if epoch, err := strconv.ParseInt(told[i], 10, 64); err != nil || epoch < r[i].Load() {
			return false
		}
	}
	return true
}

// nextEpoch returns an epoch greater than known and, unless clocks are far wrong, greater than any that is not known: microseconds
// since 1970. Different servers and proxies get different epochs: if an address leads proxies to different servers, and each is
// marked, one of these servers is behind.
func (l *lane) nextEpoch(known int64, runID string) int64 {
	apart := hash(fmt.Sprint(l.engine.started.UnixNano(), runID, known)) % epochsApart
	return max(known+1, time.Now().UnixMicro()) + int64(apart)
}

// epochsApart is how far apart epochs that are made at the same moment may be.
const epochsApart = 1_000_000

// slots returns the places of masters in a deployment's rosters: by address, or, where the deployment has a name because the
// proxies know its masters by different addresses, as they are listed.
func slots(ms []masters.Master, deployment string) []int {
	order := make([]int, len(ms))
	for i := range order {
		order[i] = i
	}
	if deployment == "" {
		slices.SortFunc(order, func(a, b int) int { return strings.Compare(ms[a].Addr(), ms[b].Addr()) })
	}
	place := make([]int, len(ms))
	for slot, i := range order {
		place[i] = slot
	}
	return place
}

// luaMerge raises the epochs in the roster KEYS[1] to those in ARGV.
const luaMerge = `
local was, n = redis.call('GET', KEYS[1]) or '', 0
local merged = {}
for e in string.gmatch(was, '%d+') do n = n + 1 merged[n] = e end
for i = 1, #ARGV do
  if not merged[i] or tonumber(ARGV[i]) > tonumber(merged[i]) then merged[i] = ARGV[i] end
end
local roster = table.concat(merged, ' ')
if roster ~= was then redis.call('SET', KEYS[1], roster) end
`

// luaTell KEYS[1]=roster ARGV=the epochs of all masters that the teller knows: adds them to the roster.
var luaTell = newLua(luaMerge)
