package resp

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// errorCounts counts the error replies by code, for INFO.
type errorCounts struct {
	mu    sync.Mutex // guards all
	all   int64
	codes map[string]int64
}

// Bounds of the codes, because scripts make up errors of their own; the first bound is Redis's.
const (
	errorCodesMost = 128
	errorCodeSize  = 64
)

func (c *errorCounts) add(e Error) {
	code, _, _ := strings.Cut(string(e[:min(len(e), errorCodeSize)]), " ")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all++
	if c.codes == nil {
		c.codes = map[string]int64{}
	}
	if _, known := c.codes[code]; !known {
		if len(c.codes) == errorCodesMost {
			return
		}
		code = strings.Clone(code) // and not all of the error
	}
	c.codes[code]++
}

// reset forgets all errors.
func (c *errorCounts) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.codes = 0, nil
}

// each calls f for each code, in order.
func (c *errorCounts) each(f func(code string, n int64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, code := range slices.Sorted(maps.Keys(c.codes)) {
		f(code, c.codes[code])
	}
}

func (c *errorCounts) total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}
