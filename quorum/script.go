package quorum

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
	"lockproxy/quorum/vote"
)

// A Script is a client's Lua text, ready to be run by vote.
type Script struct {
	vote.Source
	wrapped *lua
	noWrite bool // the text's first line declares the flag no-writes
}

// NewScript prepares a text. The text must compile by itself (Engine.Compile), because a text that does not compile could
// break out of the wrapper.
func NewScript(text string) *Script {
	s := &Script{Source: vote.Source{SHA: shaOf(text), Text: text}}
	if body := withoutShebang(text); body != text {
		s.noWrite = strings.Contains(text[:len(text)-len(body)], "no-writes")
		text = body
	}
	s.wrapped = wrap(text)
	return s
}

// withoutShebang returns the text with its first line emptied, if the first line is a shebang.
func withoutShebang(text string) string {
	if !strings.HasPrefix(text, "#!") {
		return text
	}
	if at := strings.IndexByte(text, '\n'); at >= 0 {
		return text[at:]
	}
	return ""
}

// Compiled is the outcome of a Compile.
type Compiled struct {
	Err     error  // *NoQuorum, ErrClosed
	Refusal string // the masters' error, as in reply to SCRIPT LOAD; empty if a quorum takes the text
}

// luaCompile ARGV[1]=text: nil, or the error of the compiler.
var luaCompile = newLua(`local _, refusal = loadstring(ARGV[1], '@user_script') return refusal`)

type compileRound struct {
	round
	done    func(Compiled)
	refusal string // of the first master that refused; guarded by round.mu
}

func (c *compileRound) ask(e *Engine, db int, text string) {
	begin(e, c, Key{DB: db}, []any{"EVAL", luaCompile.text, int64(0), withoutShebang(text)})
}

func (c *compileRound) read(en *entry) ballot {
	switch refusal, refuses := en.Reply.(string); {
	case en.Err != nil:
		return failed(failureText(en.Err))
	case refuses:
		if c.refusal == "" {
			c.refusal = "ERR Error compiling script (new function): " + vote.OneLine(strings.TrimRight(refusal, "\r\n"))
		}
		return refused
	case en.Reply != nil:
		return unexpected
	}
	return granted
}

func (*compileRound) reads() bool { return true }

func (c *compileRound) decide(t rules.Tally) rules.Decision { return rules.DecideAcquire(t) }
func (c *compileRound) ended(d rules.Decision) {
	switch d {
	case rules.Won:
		c.done(Compiled{})
	case rules.Lost:
		c.mu.Lock()
		refusal := c.refusal
		c.mu.Unlock()
		c.done(Compiled{Refusal: refusal})
	default:
		c.done(Compiled{Err: c.failure()})
	}
}

// A scriptKiller is a master that can end its running script, although the script keeps the master busy.
type scriptKiller interface {
	KillScript(ctx context.Context) error
}

// killScripts is Engine.KillScripts. It waits for the masters.
func killScripts(e *Engine) error {
	ctx, cancel := context.WithTimeout(e.ctx, 2*e.cfg.MasterDeadAfter) // a master takes SCRIPT KILL only some seconds into a script
	defer cancel()
	errs := make([]error, len(e.masters))
	var all sync.WaitGroup
	for i, m := range e.masters {
		all.Go(func() {
			errs[i] = errors.New("cannot be told to end a script")
			if k, ok := m.Master.(scriptKiller); ok {
				errs[i] = k.KillScript(ctx)
			}
		})
	}
	all.Wait()
	return mergeKills(e.masters, errs)
}

// mergeKills returns the most important answer: a script was ended, else a script cannot be ended, else no script runs.
func mergeKills(ms []*master, errs []error) error {
	failure := &NoQuorum{Masters: len(errs)}
	var answer error
	for i, err := range errs {
		switch {
		case err == nil:
			return nil
		case strings.HasPrefix(err.Error(), "UNKILLABLE"):
			answer = err
		case strings.HasPrefix(err.Error(), "NOTBUSY"):
			answer = cmp.Or(answer, err)
		default:
			failure.Causes = append(failure.Causes, Cause{ms[i].Addr(), masters.Describe(err)})
		}
	}
	return cmp.Or(answer, error(failure))
}
