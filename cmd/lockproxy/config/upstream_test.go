package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestUpstreamIsReadWhole(t *testing.T) {
	l, err := Load([]string{"--upstream", "rediss://app:s%403cret@redis.example.com:6390/2", "--lock-keys", "lock:*, *:{x}"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	u := l.Config.Upstream
	if u.Addr != "redis.example.com:6390" || !u.TLS || u.User != "app" || u.Password.Reveal() != "s@3cret" || u.Database != 2 {
		t.Errorf("got %v, user %q, database %d", u, u.User, u.Database)
	}
	if got := fmt.Sprintf("%q", l.Config.LockKeys); got != `["lock:*" "*:{x}"]` {
		t.Errorf("lock_keys %s", got)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, u); strings.Contains(text, "3cret") {
			t.Errorf("%s shows the password: %s", verb, text)
		}
	}
}
