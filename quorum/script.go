package quorum

import (
	"strings"

	"lockproxy/quorum/vote"
)

// A Script is a client's Lua text, ready to be run by vote.
type Script struct {
	vote.Source
	wrapped *lua
	noWrite bool // its first line declares the flag no-writes
}

// NewScript prepares a text, which must compile by itself (Engine.Compile): a wrapper must not be put around one that does not.
func NewScript(text string) *Script {
	s := &Script{Source: vote.Source{SHA: shaOf(text), Text: text}}
	if body := withoutShebang(text); body != text {
		s.noWrite = strings.Contains(text[:len(text)-len(body)], "no-writes")
		text = body
	}
	s.wrapped = wrap(text)
	return s
}

// withoutShebang returns the text with its first line emptied, if that says what is to run it.
func withoutShebang(text string) string {
	if !strings.HasPrefix(text, "#!") {
		return text
	}
	if at := strings.IndexByte(text, '\n'); at >= 0 {
		return text[at:]
	}
	return ""
}
