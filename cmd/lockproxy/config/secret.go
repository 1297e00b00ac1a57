package config

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// A Secret is a password. No printing, logging or marshalling shows the password. fmt calls no methods for a wrong verb
// or an unexported field; then fmt prints the pointer.
type Secret struct{ text *string }

const redacted = "[redacted]"

// NewSecret returns a secret. An empty text makes the zero Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the password itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty says that there is no password.
func (s Secret) Empty() bool { return s.text == nil }

func (s Secret) String() string {
	if s.Empty() {
		return ""
	}
	return redacted
}

// GoString keeps %#v from showing the password.
func (s Secret) GoString() string { return s.String() }

// LogValue keeps slog from showing the password.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps JSON and YAML from showing the password.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// WithoutPassword returns a word of a command line without the part that may be the user and password of a URL.
func WithoutPassword(word string) string {
	at := strings.LastIndexByte(word, '@')
	if at < 0 {
		return word
	}
	scheme, _, isURL := strings.Cut(word[:at], "://")
	if !isURL {
		return redacted + word[at:]
	}
	return scheme + "://" + redacted + word[at:]
}

var (
	_ fmt.Stringer   = Secret{}
	_ fmt.GoStringer = Secret{}
	_ slog.LogValuer = Secret{}
)

// ReadSecret reads a password from a file, as the settings that name a file do.
func ReadSecret(path string) (Secret, error) {
	s, wrong := readSecret(path)
	if wrong != "" {
		return s, errors.New(wrong)
	}
	return s, nil
}

// readSecret reads a password from a file. One newline at the end of the file is not part of the password.
func readSecret(path string) (Secret, string) {
	text, err := readFile(path, secretMax)
	if err != nil {
		return Secret{}, "cannot be read: " + cause(err) + "; name a file that holds the password and nothing else"
	}
	s := NewSecret(strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"))
	if s.Empty() {
		return Secret{}, path + " is empty; it must hold the password"
	}
	return s, ""
}
