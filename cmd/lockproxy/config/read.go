package config

import (
	"fmt"
	"io"
	"os"
)

// Bounds of files. A device, or a pipe, may have no end. The YAML reader needs some hundred times the memory of the
// text.
const (
	settingsMax = 256 << 10
	secretMax   = 64 << 10
	pemMax      = 4 << 20 // the authorities of a whole system are a quarter of a megabyte
)

// A tooLarge error is for a file that goes on after most bytes.
type tooLarge struct {
	path string
	most int
}

func (e tooLarge) Error() string {
	return fmt.Sprintf("%s: is larger than %s, which no such file needs", e.path, sizeText(e.most))
}

// readFile reads a file of at most so many bytes.
func readFile(path string, most int) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // a file that the user named
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	if err == nil && len(text) > most {
		return nil, tooLarge{path, most}
	}
	return text, err
}

// ReadFile reads a file with certificates, a key or a password.
func ReadFile(path string) ([]byte, error) { return readFile(path, pemMax) }
