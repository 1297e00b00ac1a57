package quorum

import (
	"crypto/sha1" //nolint:gosec // the name that Redis gives a script, not a safeguard
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

// A Script is a client's Lua text, ready to be run by vote.
type Script struct {
	sha     string
	text    string
	wrapped *lua
	noWrite bool // its first line declares the flag no-writes
}

// NewScript prepares a text, which must be a whole piece of Lua by itself: what a parser does not accept, a wrapper
// must not be put around.
func NewScript(text string) *Script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	s := &Script{sha: hex.EncodeToString(sum[:]), text: text}
	if strings.HasPrefix(text, "#!") {
		first, rest, _ := strings.Cut(text, "\n")
		s.noWrite = strings.Contains(first, "no-writes")
		text = "\n" + rest
	}
	s.wrapped = wrap(text)
	return s
}

// raised returns an error that was raised on a line of the script, in Redis's words.
func (s *Script) raised(text, line string) string {
	if line == "0" {
		line = s.tailCallLine()
	}
	return text + " script: " + s.sha + ", on @user_script:" + line + "."
}

var tailCall = regexp.MustCompile(`\breturn\s+[\w.]+\s*\(`)

// tailCallLine guesses where an error was raised that does not know. It was in a call whose result is returned as it
// is: by then Lua has forgotten who called.
func (s *Script) tailCallLine() string {
	at := tailCall.FindStringIndex(s.text)
	if at == nil {
		return "1"
	}
	return strconv.Itoa(1 + strings.Count(s.text[:at[1]], "\n"))
}
