package integration

import (
	"testing"
)

// A script reaches the masters through its wrapper only, whatever it names.
func TestNoScriptReachesAroundItsWrapper(t *testing.T) {
	s := startSplit(t)
	for _, reach := range []string{
		`__lockproxy[1]`, `_G.redis`, `_G._G.redis`, `_G.server`, `rawget(_G, 'redis')`, `getmetatable(_G).__index.redis`,
		`loadstring('return redis')()`, `getfenv(0).redis`, `getfenv(redis.call).redis`, `setfenv(1, {}).redis`,
	} {
		reply, err := s.client.Do("EVAL", "return "+reach+".call('SET', 'elsewhere', 'x')", "1", "mine")
		if err != nil || reply[0] != '-' {
			t.Errorf("%s: %q, %v", reach, reply, err)
		}
	}
	s.everywhere([]string{":0\r\n", ":0\r\n", ":0\r\n"}, "EXISTS", "elsewhere")
}
