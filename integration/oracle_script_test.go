package integration

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The scripts in testdata/oracle are read as follows, line by line:
//
//	let NAME = TEXT      a text for @{NAME}, from here to the end of the file
//	== TITLE             begins a case: a new connection, new keys
//	SET @k a NX          a command; its raw reply must be that of the oracle
//	TTL @k ~ ttl         a command whose reply may differ in the way that loosenings calls "ttl"
//	direct HSET @k f v   a command sent past the proxy to the oracle and to every master, in database 0
//	raw N "BYTES"        bytes to send as they are, and how many replies to read
//	closed               the server must have closed the connection
//	# …                  a comment
//
// Words are separated by blanks; "quoted words" are Go strings. In words stand
//
//	@k @k1 … @k9         key names of this case, and @l for the length of @k
//	@{NAME} @sha{NAME} @SHA{NAME}   a text and its SHA-1
//	@x{N}                the letter x N times
//	@s+N @s-N @ms+N @ms-N  the Unix time now plus or minus N, in seconds and milliseconds

// An oracleCase is one case of a script.
type oracleCase struct {
	file, title string
	lets        map[string]string
	steps       []oracleStep
}

// An oracleStep is one line of a case.
type oracleStep struct {
	line    int
	kind    stepKind
	words   []string // of a command or direct; the bytes to send for raw
	replies int      // of raw
	loose   string   // a key of loosenings, or empty
}

type stepKind int

const (
	stepCommand stepKind = iota
	stepDirect
	stepRaw
	stepClosed
)

// readOracleScripts reads all cases of testdata/oracle.
func readOracleScripts(t *testing.T) []oracleCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "oracle", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	var cases []oracleCase
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		more, err := parseOracleScript(filepath.Base(file), string(text))
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, more...)
	}
	return cases
}

func parseOracleScript(file, text string) ([]oracleCase, error) {
	var cases []oracleCase
	lets := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "let "):
			name, value, found := strings.Cut(line[len("let "):], " = ")
			if !found {
				return nil, fmt.Errorf("%s:%d: let without =", file, i+1)
			}
			lets[name] = value
		case strings.HasPrefix(line, "== "):
			cases = append(cases, oracleCase{file: file, title: line[len("== "):], lets: lets})
		case len(cases) == 0:
			return nil, fmt.Errorf("%s:%d: a step before the first case", file, i+1)
		default:
			step, err := parseStep(line)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
			}
			step.line = i + 1
			last := &cases[len(cases)-1]
			last.steps = append(last.steps, step)
		}
	}
	return cases, nil
}

func parseStep(line string) (oracleStep, error) {
	words, loose, err := splitWords(line)
	if err != nil {
		return oracleStep{}, err
	}
	if _, known := loosenings[loose]; loose != "" && !known {
		return oracleStep{}, fmt.Errorf("no loosening is called %q", loose)
	}
	step := oracleStep{kind: stepCommand, words: words, loose: loose}
	switch words[0] {
	case "direct":
		step.kind, step.words = stepDirect, words[1:]
	case "closed":
		step.kind = stepClosed
	case "raw":
		step.kind, step.words = stepRaw, words[2:]
		step.replies, err = strconv.Atoi(words[1])
	}
	return step, err
}

// splitWords splits a line into its words and the name after the ~, if there is one.
func splitWords(line string) (words []string, loose string, err error) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		if name, found := strings.CutPrefix(line, "~ "); found {
			return words, strings.TrimSpace(name), nil
		}
		if line[0] != '"' {
			word, rest, _ := strings.Cut(line, " ")
			words, line = append(words, word), rest
			continue
		}
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			return nil, "", fmt.Errorf("%w: %s", err, line)
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, "", fmt.Errorf("%w: %s", err, line)
		}
		words, line = append(words, word), line[len(quoted):]
	}
	return words, "", nil
}

var placeholder = regexp.MustCompile(`@(k[1-9]?|l|s[+-]\d+|ms[+-]\d+|x\{\d+\}|sha\{\w+\}|SHA\{\w+\}|\{\w+\})`)

// expand replaces the placeholders of a step's words. The prefix makes the key names of this run of the case.
func (c oracleCase) expand(words []string, prefix string, now time.Time) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = placeholder.ReplaceAllStringFunc(w, func(p string) string {
			return c.value(p[1:], prefix, now)
		})
	}
	return all
}

func (c oracleCase) value(p, prefix string, now time.Time) string {
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			panic(err) // the pattern lets nothing else through
		}
		return n
	}
	sha := func(name string) string {
		sum := sha1.Sum([]byte(c.lets[name]))
		return hex.EncodeToString(sum[:])
	}
	inner := strings.TrimSuffix(p[strings.IndexByte(p, '{')+1:], "}")
	switch {
	case p[0] == 'k':
		return prefix + p
	case p == "l":
		return strconv.Itoa(len(prefix) + len("k"))
	case strings.HasPrefix(p, "ms"):
		return strconv.FormatInt(now.UnixMilli()+number(p[2:]), 10)
	case strings.HasPrefix(p, "x{"):
		return strings.Repeat("x", int(number(inner)))
	case strings.HasPrefix(p, "sha{"):
		return sha(inner)
	case strings.HasPrefix(p, "SHA{"):
		return strings.ToUpper(sha(inner))
	case p[0] == 's':
		return strconv.FormatInt(now.Unix()+number(p[1:]), 10)
	}
	return c.lets[inner]
}
