package quorum

import (
	"strings"

	"lockproxy/quorum/rules"
	"lockproxy/quorum/vote"
)

// Compiled is the outcome of a Compile.
type Compiled struct {
	Err     error  // *NoQuorum, ErrClosed
	Refusal string // what is wrong, as the masters reply to SCRIPT LOAD; empty if a quorum takes the text
}

// luaCompile ARGV[1]=text: nil, or what its compiler says.
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
