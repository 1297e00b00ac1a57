package masters

import (
	"slices"
	"testing"
)

// As some proxies do upon what they do not know. It may be an upstream all the same.
func TestAServerMayHangUpWhenItIsAskedWhetherItIsALockproxy(t *testing.T) {
	l := scripted(t, func(_ int, cmd []string) string {
		if slices.Equal(cmd, []string{"INFO", "lockproxy"}) {
			return ""
		}
		return "+PONG\r\n"
	})
	m, err := NewRedis(l.Addr().String(), RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := m.Probe(t.Context()); err != nil || info.Server != "redis" {
		t.Errorf("%+v, %v", info, err)
	}
}
