package wire

import (
	"slices"
	"testing"
)

var requests = []string{
	"PING\r\n", "*1\r\n$4\r\nPING\r\n", "SET \"a\\x41\" 'b'\r\n", "*-1\r\n*0\r\n\r\n", "*2147483647\r\n", "*2\r\n$9223372036854775807\r\n",
	string(AppendCommand(AppendCommand(nil, "SET", "k", "v", "NX", "PX", "1000"), "GET", "k")),
	"SET a 'b\r\n", "*1\r\n:4\r\n", "*17\r\n", "*1\r\n$600\r\n", "*5\r\n$512\r\n", "*x\r\n", "*1\r\n$-1\r\n",
}

// chunks cuts b into pieces whose sizes are the bytes of cuts, over and over.
func chunks(b, cuts []byte) [][]byte {
	var pieces [][]byte
	for i := 0; len(b) > 0; i++ {
		n := len(b)
		if len(cuts) > 0 {
			n = min(n, 1+int(cuts[i%len(cuts)]))
		}
		pieces = append(pieces, b[:n])
		b = b[n:]
	}
	return pieces
}

// parse feeds pieces to a parser as a connection does, and returns the commands and the error that ended the parsing.
func parse(pieces [][]byte, limits Limits) (commands [][]string, err error) {
	p := Parser{Limits: limits, Authed: true}
	var in []byte
	for _, piece := range pieces {
		in = append(in, piece...)
		for {
			n, err := p.Next(in)
			if err != nil {
				return commands, err
			}
			if n == 0 {
				break
			}
			in = slices.Clone(in[n:])
			if len(p.Args) > 0 {
				commands = append(commands, slices.Clone(p.Args))
			}
		}
	}
	return commands, nil
}

// However a request is cut into pieces, the same commands come out of it, within the limits.
func FuzzParser(f *testing.F) {
	for _, seed := range requests {
		f.Add([]byte(seed), []byte{0})
		f.Add([]byte(seed), []byte{3, 0, 7})
	}
	limits := Limits{Args: 16, Bulk: 512, Command: 2048}
	f.Fuzz(func(t *testing.T, b, cuts []byte) {
		whole, err1 := parse(chunks(b, nil), limits)
		cut, err2 := parse(chunks(b, cuts), limits)
		if err1 != err2 && (err1 == nil || err2 == nil || err1.Error() != err2.Error()) && len(b) < LineMax {
			t.Fatalf("whole: %v, cut: %v", err1, err2)
		}
		if !slices.EqualFunc(whole, cut, slices.Equal) {
			t.Fatalf("whole: %q, cut: %q", whole, cut)
		}
		for _, args := range whole {
			size := 0
			for _, arg := range args {
				size += len(arg)
			}
			if len(args) > limits.Args || size > len(b) {
				t.Fatalf("%d arguments of %d bytes out of %d", len(args), size, len(b))
			}
		}
	})
}
