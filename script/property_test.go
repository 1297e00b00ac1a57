package script

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// idioms are recognised texts, each with what it means.
var idioms = map[string]string{
	releaseText: "release KEYS[1] ARGV[1] | 1 - 0 0",
	extendText:  "extend KEYS[1] ARGV[1] ARGV[2]ms | 1 - 0 0",
	acquireText: "acquire KEYS[1] ARGV[1] ARGV[2]ms | +OK - nil -",
	loopText:    "release KEYS[1] ARGV[1] | 1 - 0 0",
	chooseText:  `if ARGV[3] == "0": extend KEYS[1] ARGV[1] +ARGV[2]ms; if ARGV[3] not == "0": extend KEYS[1] ARGV[1] ARGV[2]ms | 1 - 0 0`,
	`local lock, me = KEYS[1], ARGV[1] local held = redis.call('get', lock)
	 if not held or held == me then redis.call('set', lock, me, 'PX', ARGV[2]) return true end return false`: "acquire or extend KEYS[1] ARGV[1] ARGV[2]ms | 1 1 nil -",
	`local left = redis.call('pttl', KEYS[1]) if redis.call('get', KEYS[1]) ~= ARGV[1] or left < 0 then return -3 end return left`: "query KEYS[1] ARGV[1] | PTTL - -3 -3",
}

// A surface writes a text's tokens in other ways that mean the same to Lua and Redis.
type surface struct {
	t     *rapid.T
	names map[string]string
}

func (s *surface) flip(label string) bool { return rapid.IntRange(0, 2).Draw(s.t, label) == 0 }

func (s *surface) write(text string) string {
	tokens, err := tokenize(text)
	if err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	for i, t := range tokens[:len(tokens)-1] {
		condition := i > 0 && (tokens[i-1].is("if") || tokens[i-1].is("elseif"))
		if condition {
			b.WriteString("(")
		}
		if t.is("then") {
			b.WriteString(")")
		}
		b.WriteString(s.blank(t))
		b.WriteString(s.token(tokens, i))
		if t.is("end") && s.flip("semicolon") {
			b.WriteString(";")
		}
	}
	return b.String()
}

// blank separates tokens. A line may not end before a parenthesis in Lua 5.1.
func (s *surface) blank(next token) string {
	kinds := []string{" ", "\t ", " --[[ комментарий ]] ", " --[=[ ]] ]=]", "\n", " -- 'end\n", "\r\n"}
	if next.is("(") {
		kinds = kinds[:4]
	}
	return rapid.SampledFrom(kinds).Draw(s.t, "blank")
}

func (s *surface) token(tokens []token, i int) string {
	t := tokens[i]
	switch t.kind {
	case tokString:
		if i > 1 && tokens[i-1].is("(") && (tokens[i-2].text == "call" || tokens[i-2].text == "pcall") || setOptions[t.text] {
			return s.quote(s.anyCase(t.text))
		}
		return s.quote(t.text)
	case tokName:
		switch {
		case i > 0 && tokens[i-1].is("."):
			if t.text == "call" && s.flip("pcall") {
				return "pcall"
			}
			return t.text
		case t.text == "redis" && s.flip("server"):
			return "server"
		case globals[t.text].kind != symNil:
			return t.text
		}
		if s.names[t.text] == "" {
			s.names[t.text] = fmt.Sprintf("%s_%d", rapid.StringMatching("[A-Za-z_]{1,3}").Draw(s.t, "name"), len(s.names))
		}
		return s.names[t.text]
	}
	return t.text
}

func (s *surface) quote(text string) string {
	switch rapid.IntRange(0, 3).Draw(s.t, "quote") {
	case 0:
		return `'` + text + `'`
	case 1:
		return `"` + text + `"`
	case 2:
		return "[[" + text + "]]"
	}
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, `\%03d`, text[i])
	}
	return `"` + b.String() + `"`
}

func (s *surface) anyCase(text string) string {
	b := []byte(strings.ToLower(text))
	for i := range b {
		if s.flip("upper") {
			b[i] = strings.ToUpper(string(b[i]))[0]
		}
	}
	return string(b)
}

func TestTheSurfaceOfATextDoesNotMatter(t *testing.T) {
	for text, want := range idioms {
		id, _ := shapeOf(text)
		rapid.Check(t, func(t *rapid.T) {
			s := &surface{t: t, names: map[string]string{}}
			variant := s.write(text)
			if got := describe(recognise(variant, "SHA")); got != want {
				t.Fatalf("got %s\nwant %s\nfor\n%s", got, want, variant)
			}
			if got, _ := shapeOf(variant); got != id {
				t.Fatalf("shape %s, want %s, for\n%s", got, id, variant)
			}
		})
	}
}

// What is exchanged here changes what a script does or answers.
var exchanges = [][2]string{
	{"==", "~="}, {"get", "strlen"}, {"get", "exists"}, {"del", "persist"}, {"del", "get"}, {"pexpire", "expire"}, {"NX", "XX"},
	{"PX", "EX"}, {"return 0", "return 2"}, {"return 1", "return 3"}, {"return true", "return 7"}, {"return false", "return 7"},
	{"ARGV[1]", "ARGV[4]"}, {"ARGV[2]", "ARGV[4]"}, {"KEYS[1]", "KEYS[2]"}, {"'0'", "'5'"}, {"pttl", "ttl"}, {"-3", "-4"},
	{"not held", "held"}, {" or ", " and "}, {"redis.call(", "redis.sha1hex("},
}

func TestOneChangeOfMeaningIsNoticed(t *testing.T) {
	changed := 0
	for text, want := range idioms {
		for _, x := range exchanges {
			for at := 0; ; at++ {
				next := strings.Index(text[at:], x[0])
				if next < 0 {
					break
				}
				at += next
				variant := text[:at] + x[1] + text[at+len(x[0]):]
				if got := describe(recognise(variant, "SHA")); got == want {
					t.Errorf("%s was not noticed: %s\n%s", x, got, variant)
				}
				changed++
			}
		}
	}
	if changed < 70 {
		t.Errorf("only %d changes were tried", changed)
	}
}
