package quorum

import "strings"

// Compile asks the masters whether a text is Lua, and if not, what is wrong with it, in their words. They compile the text and
// do not keep it: some masters would keep texts that nobody runs in their script caches for ever.
//
// A text that compiles by itself may be put into a wrapper (see Script).
func (e *Engine) Compile(db int, text string, done func(Compiled)) {
	c := &compileRound{done: done}
	e.begin(c, Key{DB: db}, []any{"EVAL", luaCompile.text, int64(0), withoutShebang(text)})
}

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

func (c *compileRound) read(en *entry) ballot {
	switch refusal, refuses := en.Reply.(string); {
	case en.Err != nil:
		return failed(failureText(en.Err))
	case refuses:
		if c.refusal == "" {
			c.refusal = "ERR Error compiling script (new function): " + oneLine(strings.TrimRight(refusal, "\r\n"))
		}
		return refused
	case en.Reply != nil:
		return unexpected
	}
	return granted
}

// oneLine is a text as a status or an error can have it.
func oneLine(text string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
}

func (*compileRound) reads() bool { return true }

func (c *compileRound) decide(t tally) Decision { return decideAcquire(t) }
func (c *compileRound) ended(d Decision) {
	switch d {
	case Won:
		c.done(Compiled{})
	case Lost:
		c.mu.Lock()
		refusal := c.refusal
		c.mu.Unlock()
		c.done(Compiled{Refusal: refusal})
	default:
		c.done(Compiled{Err: c.failure()})
	}
}
