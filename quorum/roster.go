package quorum

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
	"lockproxy/quorum/vouch"
)

// A roster holds the epoch of each master in one database, as far as this proxy knows: the largest epoch that the master, or
// another master on its behalf, has told. A grant that a master gave in an earlier epoch is void.
type roster []atomic.Int64

// learn raises the epochs to the epochs in a roster's text.
func (r roster) learn(text string) {
	for i, epoch := range parseRoster(text) {
		if i < len(r) {
			//mutant: what masters tell of epochs is not heard
			raise(&r[i], epoch)
		}
	}
}

// parseRoster returns the epochs in a roster's text, with 0 for a word that is no number.
func parseRoster(text string) (epochs []int64) {
	for f := range strings.FieldsSeq(text) {
		epoch, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			epoch = 0
		}
		epochs = append(epochs, epoch)
	}
	return epochs
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
	told := parseRoster(text)
	for i := range r {
		if i >= len(told) || told[i] < r[i].Load() {
			return false
		}
	}
	return true
}

// nextEpoch returns an epoch greater than known and, unless clocks are far wrong, greater than any unknown epoch: microseconds
// since 1970. Different servers and proxies get different epochs: if an address leads proxies to different servers, and each is
// marked, all but one of these servers are behind.
func (t target) nextEpoch(known int64, runID string) int64 {
	apart := hash(fmt.Sprint(t.engine.started.UnixNano(), runID, known)) % epochsApart
	//mutant: servers that come to an epoch at once come to the same one
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

// A master's new epoch is told to the other masters, as soon as each can be reached, so that a proxy which meets the master with
// older data learns from the others that the data is old. There are two cases that a survey does not cover:
//
//   - The master keeps less on disk than it did (rule 7b). It has forgotten nothing, and so gets a new epoch without a quarantine.
//     But from now on its file may be old, and have a mark of the epoch before.
//   - Other masters were away during the master's quarantine, and the quarantine ended by ttl_max (rule 7a). The address may still
//     lead back to the former server.

// An epochs is a lane's knowledge of epochs, and whether its master has the same knowledge.
type epochs struct {
	examiner
	slot   int         // of the master
	roster roster      // of the database, in common to its lanes
	peers  laneSet     // the lanes of the database, this lane included
	behind atomic.Bool // the master is to be told the epochs
	shown  string      // the master's own roster, as last read; of the lane's loop
}

// latest is the roster's epoch of the lane's own master.
func (e *epochs) latest() *atomic.Int64 { return &e.roster[e.slot] }

// tellOthers has the other masters told the epochs, except the masters in told, by slot, which know. It is called when this master
// has come to a new epoch.
func (e *epochs) tellOthers(told map[int]vouch.Report) {
	for _, other := range e.peers {
		o := &other.epochs
		if _, knows := told[o.slot]; o != e && !knows {
			o.behind.Store(true)
			o.tell()
		}
	}
}

// tell tells the master the epochs of all masters. Until the master has all epochs, tell is repeated with each heartbeat.
func (e *epochs) tell() {
	e.ask(luaTell.whole([]string{rosterKey}, e.roster.args()...), e.wasTold)
}

func (e *epochs) wasTold(any) {
	e.behind.Store(false)        // before the epochs are compared: a later epoch may come meanwhile
	if !e.roster.isIn(e.shown) { // the marks were read behind the command that told
		e.behind.Store(true)
	}
}

// A proxy that has just started, or comes to a new database, may meet a master on an older file before any other master has told
// the proxy of the later epoch. Until the proxy has heard the others it leaves the former run id in the mark. So the mark goes on
// showing that the server has started on a file, and the first proxy that hears the others will know.

// heardOthers says that enough other masters are connected: any later epoch is known to one of them (rule 7b).
func (e *epochs) heardOthers() bool {
	n := 0
	for _, other := range e.peers {
		// Once a master is connected, its roster has been read.
		if up, _ := other.queue.connection(); up && &other.epochs != e {
			n++
		}
	}
	return n >= rules.Quorum(len(e.roster))-1
}

// luaMerge raises the epochs in the roster KEYS[1] to the epochs in ARGV.
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
