package resp

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// errorCounts counts the errors that clients were answered, by code, for INFO.
type errorCounts struct {
	mu    sync.Mutex // guards all
	all   int64
	codes map[string]int64
}

// Bounds of the codes, since scripts make up errors of their own; the first is that of Redis.
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

// A seldom is a line that the log has at most once in seldomEvery, however often there is cause for it.
type seldom struct{ told atomic.Int64 } // when, by the server's clock; 0: never

const seldomEvery = time.Minute

func (s *seldom) may(clock int64) bool {
	told := s.told.Load()
	return (told == 0 || clock-told >= seldomEvery.Milliseconds()) && s.told.CompareAndSwap(told, clock)
}

// warnTTL logs that the client asked for a TTL beyond ttl_max. Who uses phpredis may not hear of it: an error is false
// there, as is a lock that somebody else has, so that Laravel's scheduler would leave out a job for ever.
func (s *session) warnTTL(e Error) {
	if !strings.HasPrefix(string(e), ttlMaxPrefix) {
		return
	}
	if s.server.ttlWarned.may(s.server.clock.Load()) {
		s.server.log.Warn("a lock was refused: its TTL exceeds ttl_max", "client", s.addr(), "id", s.id, "reply", string(e))
	}
}
