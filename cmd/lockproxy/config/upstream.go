package config

import (
	"fmt"
	"log/slog"
	"net/url"
)

// An Upstream is the Redis for all commands that are not about locks.
type Upstream struct {
	Master          // its address, in the form of a master's
	User     string // empty: the default user
	Password Secret
}

// LogValue keeps slog from showing the password.
func (u Upstream) LogValue() slog.Value { return slog.StringValue(u.Master.String()) }

// setUpstream takes a URL. A blank text means no upstream. The returned fault, if any, shows no password.
func setUpstream(c *Config, text string) string {
	up := Upstream{}
	if !blank(text) {
		m, wrong := parseMaster(text)
		if wrong != "" {
			return wrong
		}
		up.Master = m
		if u, err := url.Parse(m.URL.Reveal()); err == nil && u.User != nil {
			password, _ := u.User.Password()
			up.User, up.Password = u.User.Username(), NewSecret(password)
		}
	}
	c.Upstream = up
	return ""
}

// setLockKeys takes a list of patterns, or in a variable or flag a text with commas.
func setLockKeys(c *Config, in raw) []fault {
	if in.fields != nil {
		return []fault{{in.line, `is no list; write the patterns as ["lock:*", "*:lock"]`}}
	}
	all := []string{}
	for i, item := range in.list() {
		if in.items == nil && item.text == "" { // two commas, or a comma at the end
			continue
		}
		if item.items != nil || item.fields != nil || item.text == "" {
			return []fault{{item.line, fmt.Sprintf("pattern %d is no text; write one such as \"lock:*\"", i+1)}}
		}
		all = append(all, item.text)
	}
	c.LockKeys = all
	return nil
}
