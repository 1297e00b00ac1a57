package wire

import (
	"bytes"
	"fmt"
	"math"
)

// LineMax is the longest inline command and the longest length line, as in Redis.
const LineMax = 64 << 10

// Limits bound one request.
type Limits struct {
	Args    int // arguments, with the command's name
	Bulk    int // bytes of one argument
	Command int // bytes of the whole request
}

// The limits of a client before the login, as in Redis.
const (
	ArgsBeforeAuth = 10
	BulkBeforeAuth = 16 << 10
)

// Redis's own limits. A larger request is refused in Redis's words; a request that exceeds only Limits is refused in ours.
const (
	redisArgsMax = math.MaxInt32
	redisBulkMax = 512 << 20
)

// A protocolError is told to the client, and ends the connection. The texts are Redis's; the texts about our own limits stand where the
// limits are checked.
type protocolError string

func (e protocolError) Error() string { return "ERR Protocol error: " + string(e) }

const (
	errMultibulkLength   protocolError = "invalid multibulk length"
	errBulkLength        protocolError = "invalid bulk length"
	errMultibulkString   protocolError = "too big mbulk count string"
	errBulkString        protocolError = "too big bulk count string"
	errInlineSize        protocolError = "too big inline request"
	errInlineQuotes      protocolError = "unbalanced quotes in request"
	errUnauthedMultibulk protocolError = "unauthenticated multibulk length"
	errUnauthedBulk      protocolError = "unauthenticated bulk length"
)

// A Parser finds commands in bytes that arrive in any pieces. The parser keeps its place in an incomplete command, so no
// byte of an argument is read twice. The parser allocates once for each command: the arguments are substrings of a single
// string.
type Parser struct {
	Limits Limits
	Authed bool // the client may use all of Limits

	Args []string // of the command found by the latest Next
	Size int      // bytes of memory held by Args

	left  int    // arguments still to come; 0: between commands
	pos   int    // where the next unseen part of the command begins
	bulk  int    // length of the argument at pos, or -1 if its length line has not arrived
	spans []span // arguments seen
}

type span struct{ from, to int }

// SpanSize is the memory of an argument beside the text.
const SpanSize = 32

// keepArgs is the most arguments for which the parser of an idle connection keeps space.
const keepArgs = 64

// Next looks for a command at the beginning of b; b must begin where the bytes consumed so far ended. Next returns the
// command's length in bytes, or 0 for an incomplete command. A complete command may have no Args: empty commands are
// legal. After an error the parser is of no more use.
func (p *Parser) Next(b []byte) (int, error) {
	p.Args = p.Args[:0]
	if p.left == 0 {
		if len(b) == 0 {
			return 0, nil
		}
		if b[0] != '*' {
			return p.inline(b)
		}
		if n, err := p.begin(b); p.left == 0 {
			return n, err
		}
	}
	for ; p.left > 0; p.left-- {
		ok, err := p.argument(b)
		if !ok || err != nil {
			return 0, err
		}
	}
	p.finish(b)
	return p.pos, nil
}

// begin reads the line with the number of arguments.
func (p *Parser) begin(b []byte) (int, error) {
	line, ok := lengthLine(b)
	if !ok {
		return 0, tooLong(b, errMultibulkString)
	}
	n, ok := ParseInt(string(line[1:]))
	switch {
	case !ok || n > redisArgsMax:
		return 0, errMultibulkLength
	case n > int64(p.Limits.Args):
		return 0, p.tooMany()
	case n > ArgsBeforeAuth && !p.Authed:
		return 0, errUnauthedMultibulk
	}
	p.pos = len(line) + 2
	if n <= 0 {
		return p.pos, nil
	}
	p.left, p.bulk, p.spans = int(n), -1, p.spans[:0]
	return 0, nil
}

// argument reads an argument, and says whether the whole argument was in b.
func (p *Parser) argument(b []byte) (bool, error) {
	if p.bulk < 0 {
		rest := b[p.pos:]
		line, ok := lengthLine(rest)
		if !ok {
			return false, tooLong(rest, errBulkString)
		}
		if len(line) == 0 || line[0] != '$' {
			return false, protocolError(fmt.Sprintf("expected '$', got '%s'", rest[:1]))
		}
		n, ok := ParseInt(string(line[1:]))
		switch {
		case !ok || n < 0 || n > redisBulkMax:
			return false, errBulkLength
		case n > int64(p.Limits.Bulk):
			return false, protocolError("argument of more than " + SizeText(p.Limits.Bulk) + " (max_bulk)")
		case n > BulkBeforeAuth && !p.Authed:
			return false, errUnauthedBulk
		}
		p.bulk = int(n)
		p.pos += len(line) + 2
	}
	if p.pos+p.bulk+2 > p.Limits.Command {
		return false, protocolError("command of more than " + SizeText(p.Limits.Command) + " (max_command)")
	}
	if len(b) < p.pos+p.bulk+2 {
		return false, nil
	}
	p.spans = append(p.spans, span{p.pos, p.pos + p.bulk})
	p.pos += p.bulk + 2 // the two bytes behind an argument are not checked, as in Redis
	p.bulk = -1
	return true, nil
}

// finish makes Args of spans.
func (p *Parser) finish(b []byte) {
	base := p.spans[0].from
	text := string(b[base:p.spans[len(p.spans)-1].to])
	for _, s := range p.spans {
		p.Args = append(p.Args, text[s.from-base:s.to-base])
	}
	p.Size = len(text)
	if len(p.spans) > keepArgs {
		p.Size += len(p.spans) * SpanSize
	}
	if cap(p.spans) > keepArgs {
		p.spans = nil
	}
}

// inline reads a command as a person types it.
func (p *Parser) inline(b []byte) (int, error) {
	end := bytes.IndexByte(b, '\n')
	if end > LineMax || end < 0 && len(b) > LineMax {
		return 0, errInlineSize
	}
	if end < 0 {
		return 0, nil
	}
	args, ok := splitArgs(p.Args, bytes.TrimSuffix(b[:end], []byte{'\r'}))
	if !ok {
		return 0, errInlineQuotes
	}
	if len(args) > p.Limits.Args {
		return 0, p.tooMany()
	}
	p.Args, p.Size = args, end
	return end + 1, nil
}

// tooMany refuses more arguments than max_args.
func (p *Parser) tooMany() protocolError {
	return protocolError(fmt.Sprintf("command of more than %d arguments (max_args)", p.Limits.Args))
}

// Forget drops the arguments, so an idle connection holds no text.
func (p *Parser) Forget() {
	clear(p.Args)
	if cap(p.Args) > keepArgs {
		p.Args = nil
	}
}

// lengthLine returns the line at the beginning of b without the line end: '\r' and any byte, as in Redis.
func lengthLine(b []byte) ([]byte, bool) {
	end := bytes.IndexByte(b, '\r')
	if end < 0 || end+2 > len(b) {
		return nil, false
	}
	return b[:end], true
}

// tooLong returns err if b is longer than a length line may be; no length line ends in b.
func tooLong(b []byte, err protocolError) error {
	if len(b) > LineMax {
		return err
	}
	return nil
}
