package quorum

import (
	"slices"
	"strings"

	"lockproxy/quorum/masters"
)

// The program of a round is a script that is sent by its SHA-1, over a connection whose master is known to have the script. The
// handshake loads our short scripts. Long scripts (a client's, an Exec's, the script that takes a lock with a fence) are sent as a
// whole the first time. A master that has forgotten a script since, because its script cache was flushed, is sent the whole at once:
// the master has done nothing, and no lock may depend on the contents of a cache (rule 13).

// programsMax bounds how many scripts a connection is known to have. Of the scripts that were sent as a whole, newer masters drop the
// least recently used.
const programsMax = 256

// runs makes a script the program of the round, and returns the command.
func (r *round) runs(l *lua, keys []string, argv ...any) []any {
	r.program = l
	return r.bySHA(keys, argv...)
}

// bySHA returns the command that runs the round's program.
func (r *round) bySHA(keys []string, argv ...any) []any {
	args := r.program.whole(keys, argv...)
	args[0], args[1] = "EVALSHA", &r.program.sha
	return args
}

// written returns a command that runs a script by SHA-1 with the script's text in its place.
func written(args []any, text string) []any {
	args = slices.Clone(args) // other masters may share the args
	args[0], args[1] = "EVAL", text
	return args
}

// has notes that the master has a script.
func (k *connection) has(p *lua) {
	if len(k.programs) >= programsMax || k.programs == nil {
		k.programs = make(map[string]bool)
	}
	k.programs[p.sha] = true
}

// sendAgain is called where the master answered the i-th request of the batch that the script is unknown. sendAgain queues the
// request once more, with the text of the script, and says whether the request was queued.
//
// The request goes before all later requests, so that a release does not overtake the script that takes the lock. But later requests
// of the same batch have run by now: their clients did not wait for this answer, or had enough from other masters. If a later request
// may be about the same lock, nothing is sent again, and the vote is lost: a release must not take the key that the next attempt with
// its token has set meanwhile, nor an extension shorten the promise of a later extension.
func (l *lane) sendAgain(i int) bool {
	en, ok := l.batch.requests[i].(*entry)
	if !ok || l.connection == nil || en.round.program == nil || en.Args[0] != "EVALSHA" {
		return false
	}
	p := en.round.program
	delete(l.connection.programs, p.sha)
	//mutant: what is sent again follows what has overtaken it
	if slices.ContainsFunc(l.batch.requests[i+1:], en.overtakenBy) {
		return false
	}
	for _, later := range l.connection.flight.batches {
		//mutant: what is sent again follows a batch that has overtaken it
		if slices.ContainsFunc(later.requests, en.mayBeOvertakenBy) {
			return false
		}
	}
	en.round.mu.Lock()
	en.Call = masters.Call{Args: written(en.Args, p.text)}
	en.fate = waiting
	en.round.mu.Unlock()
	if cause := l.queue.pushAgain(en); cause != "" {
		en.giveUp(dropped, failure{FailedConnection, cause})
	}
	return true
}

// overtakenBy says that a later request was run, and may be about the same lock: both name the same key and the same token. The token
// of a client's script is unknown: there the key is enough.
func (en *entry) overtakenBy(r request) bool {
	later, ok := r.(*entry)
	return ok && (later.Err == nil || !strings.HasPrefix(later.Err.Error(), "NOSCRIPT")) && en.mayBeOvertakenBy(later)
}

// mayBeOvertakenBy is overtakenBy for a request that perhaps was not answered yet.
func (en *entry) mayBeOvertakenBy(r request) bool {
	later, ok := r.(*entry)
	if !ok || en.round.operation.reads() || later.round.operation.reads() {
		return false
	}
	n := 3 + en.Args[2].(int64)
	return later.names(en.Args[3:n]) && (en.voted() || later.voted() || later.names(en.Args[n:]))
}

// names says that any of the words is a word of the entry's command.
func (en *entry) names(words []any) bool {
	return slices.ContainsFunc(words, func(w any) bool {
		word, ok := wordOf(w)
		return ok && slices.ContainsFunc(en.Args, func(a any) bool {
			arg, ok := wordOf(a)
			return ok && arg == word
		})
	})
}

// wordOf returns an argument that is a text.
func wordOf(arg any) (string, bool) {
	switch arg := arg.(type) {
	case string:
		return arg, true
	case *string:
		return *arg, true
	}
	return "", false
}

// voted says that the entry runs a client's script.
func (en *entry) voted() bool {
	_, ok := en.round.operation.(*scriptRound)
	return ok
}
