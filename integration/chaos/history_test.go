package chaos

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// An action is what a client asks for.
type action string

const (
	acquire action = "acquire"
	extend  action = "extend"
	release action = "release"
)

// An outcome is what a client was told.
type outcome string

const (
	done    outcome = "done"
	refused outcome = "refused" // the lock is somebody else's, or no longer the token's
	unknown outcome = "unknown" // an error or no answer: it may have happened, now or later
)

// A step is one request and its reply. Times are nanoseconds since the history began.
type step struct {
	action   action
	token    string
	outcome  outcome
	returned int64
	until    int64 // of an acquisition or extension that was done: the end of validity, as its client counts
}

// A history is what clients did to each resource. Refused acquisitions are left out: a lock may always be refused.
type history struct {
	began time.Time

	mu  sync.Mutex // guards ops
	ops map[string][]porcupine.Operation
}

func newHistory() *history {
	return &history{began: time.Now(), ops: map[string][]porcupine.Operation{}}
}

// add records a request that client made at called and whose reply came just now.
func (h *history) add(client int, resource, token string, a action, o outcome, called, until time.Time) {
	now := time.Since(h.began).Nanoseconds()
	if a == acquire && o == refused {
		return
	}
	s := step{action: a, token: token, outcome: o, returned: now, until: until.Sub(h.began).Nanoseconds()}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops[resource] = append(h.ops[resource], operation(client, called.Sub(h.began).Nanoseconds(), s))
}

func operation(client int, called int64, s step) porcupine.Operation {
	return porcupine.Operation{ClientId: client, Input: s, Call: called, Return: s.returned}
}

// check returns an error for every resource whose history no lock can have.
func (h *history) check(patience time.Duration) []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []error
	for resource, all := range h.ops {
		ops := prune(all)
		switch verdict, info := porcupine.CheckOperationsVerbose(lockModel, ops, patience); verdict {
		case porcupine.Unknown:
			found = append(found, fmt.Errorf("%s: %d operations were not decided within %v", resource, len(ops), patience))
		case porcupine.Illegal:
			found = append(found, fmt.Errorf("%s: no lock has this history of %d operations; it fails %s", resource, len(ops), where(ops, info)))
		}
	}
	return found
}

// prune leaves out every acquisition of unknown fate, and what its client did about it. It may have happened, but its
// client never trusted in it, and it entitles to nothing: masters that had forgotten the holder may have granted it,
// without their votes being counted, and the release that follows may be told that they had it.
func prune(ops []porcupine.Operation) []porcupine.Operation {
	doubtful := map[string]bool{}
	for _, op := range ops {
		if s := op.Input.(step); s.action == acquire && s.outcome == unknown {
			doubtful[s.token] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(ops), func(op porcupine.Operation) bool { return doubtful[op.Input.(step).token] })
}

// where shows the operations around the point that no order explains.
func where(ops []porcupine.Operation, info porcupine.LinearizationInfo) string {
	longest := 0
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, partial := range partition {
			longest = max(longest, len(partial))
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "after %d:", longest)
	for _, op := range ops[max(0, longest-3):min(len(ops), longest+4)] {
		s := op.Input.(step)
		fmt.Fprintf(&text, "\n  %v to %v: %s by %s: %s, valid until %v",
			time.Duration(op.Call), time.Duration(s.returned), s.action, s.token, s.outcome, time.Duration(s.until))
	}
	return text.String()
}

// A lock is the state of one resource. It is bound until then: before, nobody else may be told that he holds it.
type lock struct {
	holder string // "" if it is free
	bound  int64
}

// free is a bound that binds nobody.
const free = -1 << 63

// lockModel is a lock that expires. An operation takes effect at a moment that nobody knows, between its call and its
// return; so a lock may be taken from a holder whose validity had ended by the time that the new one was told.
var lockModel = porcupine.Model{
	Init: func() any { return lock{bound: free} },
	Step: func(state, input, _ any) (bool, any) {
		l, ok := input.(step).apply(state.(lock))
		return ok, l
	},
}

// apply returns the state that the step leads to; ok is false if it cannot have happened.
func (s step) apply(l lock) (next lock, ok bool) {
	mine := l.holder == s.token
	switch {
	case s.action == acquire:
		return lock{s.token, s.until}, s.returned > l.bound
	case s.action == extend && s.outcome == done:
		return lock{s.token, s.until}, mine
	case s.action == extend && s.outcome == unknown: // its client trusts in what it had before
		return l, true
	case s.action == release && s.outcome == done:
		return lock{bound: free}, mine
	case mine: // it was told that it does not hold the lock, or gave it up without being told
		return lock{s.token, free}, true
	}
	return l, true
}

// The glyphs of a test's history: client, action, token, outcome, called, returned, until.
func parseHistory(t *testing.T, text string) []porcupine.Operation {
	var ops []porcupine.Operation
	for line := range strings.Lines(text) {
		var client int
		var a, token, o string
		var called, returned, until int64
		if strings.TrimSpace(line) == "" {
			continue
		}
		if _, err := fmt.Sscan(line, &client, &a, &token, &o, &called, &returned, &until); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		ops = append(ops, operation(client, called, step{action(a), token, outcome(o), returned, until}))
	}
	return ops
}

func TestTheModelKnowsARightHistoryFromAWrongOne(t *testing.T) {
	for _, c := range []struct {
		name, history string
		want          bool
	}{
		{"one after the other", `
			1 acquire a done 0 10 100
			1 release a done 20 30 0
			2 acquire b done 40 50 140`, true},
		{"the second is told while its wish overlaps the release", `
			1 acquire a done 0 10 100
			1 release a done 20 60 0
			2 acquire b done 30 40 140`, true},
		{"the second is told within the first one's validity", `
			1 acquire a done 0 10 100
			2 acquire b done 20 30 120`, false},
		{"the second is told after the first one's validity", `
			1 acquire a done 0 10 100
			2 acquire b done 20 101 120`, true},
		{"the second is told before the first one asks to release", `
			1 acquire a done 0 10 100
			2 acquire b done 20 30 120
			1 release a done 40 50 0`, false},
		{"an extension keeps others out", `
			1 acquire a done 0 10 100
			1 extend a done 50 60 150
			2 acquire b done 90 120 220`, false},
		{"an extension of unknown fate does not", `
			1 acquire a done 0 10 100
			1 extend a unknown 50 60 0
			2 acquire b done 90 120 220`, true},
		{"an extension of a lock that another has taken", `
			1 acquire a done 0 10 100
			2 acquire b done 101 110 210
			1 extend a done 120 130 220`, false},
		{"whoever was told that the lock is not his, has it no more", `
			1 acquire a done 0 10 100
			1 extend a refused 50 60 0
			2 acquire b done 61 70 160`, true},
		{"whoever asked to release has it no more, whatever came of it", `
			1 acquire a done 0 10 100
			1 release a unknown 50 60 0
			2 acquire b done 51 55 160`, true},
		{"a release of what was never granted", `
			1 acquire a done 0 10 100
			2 release b done 20 30 0`, false},
		{"a release of what is released", `
			1 acquire a done 0 10 100
			1 release a done 20 30 0
			1 release a done 40 50 0`, false},
		{"a wish of unknown fate may have been granted, and is released", `
			1 acquire a done 0 10 100
			2 acquire b unknown 20 30 0
			2 release b done 40 50 0
			3 acquire c done 130 140 230`, true},
		{"a wish of unknown fate does not hide a second holder", `
			1 acquire a done 0 10 100
			2 acquire b unknown 20 30 0
			3 acquire c done 40 50 150`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := porcupine.CheckOperations(lockModel, prune(parseHistory(t, c.history))); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
