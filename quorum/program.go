package quorum

import (
	"slices"
	"strings"

	"lockproxy/quorum/masters"
)

// A program is the command that runs a long script: a client's, or one that takes a lock with a fence. It is sent as a whole
// the first time that it goes over a connection, and by SHA-1 afterwards. A master that has forgotten it since, because its
// script cache was flushed, is sent the whole at once: it has done nothing, and no attempt may depend on what a cache keeps
// (rule 13).
type program struct {
	sha          string
	whole, short []any // nil if a timed owner builds the whole for each master
}

// programsMax bounds how many programs a connection is known to have run. Newer masters drop scripts that were not used
// for longest, of those that they were sent as a whole.
const programsMax = 256

// newProgram takes the arguments of the EVAL.
func newProgram(l *lua, whole []any) *program {
	p := &program{sha: l.sha, whole: whole, short: slices.Clone(whole)}
	p.short[0], p.short[1] = "EVALSHA", l.sha
	return p
}

// choose is called by the entry's lane, just before it is written.
func (p *program) choose(en *entry) {
	k := en.lane.link
	known := k != nil && k.programs[p.sha]
	switch {
	case p.whole == nil && known:
		en.Args[0], en.Args[1] = "EVALSHA", p.sha
	case p.whole == nil:
	case known:
		en.Args = p.short
	default:
		en.Args = p.whole
	}
}

// again is called by the entry's lane with the answer. It sends the whole if the master does not have the program, and
// says whether it did.
//
// That goes before all that came since, so a release does not overtake the script that takes the lock. What went in the
// same batch has overtaken it: the client did not wait for its answer, or somebody else was faster. Then this master may
// vote otherwise than the others, or keep what the script took until its TTL; no vote counts twice, and no lock has
// fewer than it was granted with. Where all masters have forgotten the program they agree on another order than the one
// in which commands were sent without waiting.
func (p *program) again(en *entry) bool {
	k := en.lane.link
	if k == nil {
		return false
	}
	if en.Err == nil {
		if len(k.programs) >= programsMax || k.programs == nil {
			k.programs = make(map[string]bool)
		}
		k.programs[p.sha] = true
		return false
	}
	if !strings.HasPrefix(en.Err.Error(), "NOSCRIPT") || en.Args[0] == "EVAL" {
		return false
	}
	delete(k.programs, p.sha)
	en.round.mu.Lock()
	en.Call = masters.Call{Args: p.whole}
	en.fate = waiting
	en.round.mu.Unlock()
	if cause := en.lane.pushAgain(en); cause != "" {
		en.giveUp(dropped, doubt{FailedConnection, cause})
	}
	return true
}

// pushAgain queues a request of the batch that is being handed out before all others, but after those that it did the
// same to: they had their place in the queue, so queue_max is no matter. If there is no connection it returns the cause.
func (l *lane) pushAgain(r request) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cause := l.refuses(); cause != "" {
		return cause
	}
	l.queue = slices.Insert(l.queue, l.repeated, r)
	l.repeated++
	return ""
}
