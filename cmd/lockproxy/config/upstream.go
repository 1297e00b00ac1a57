package config

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
)

// An Upstream is the Redis that gets whatever is not about a lock.
type Upstream struct {
	Master          // its address, as that of a master
	User     string // empty: the default user
	Password Secret
}

// LogValue keeps slog from showing the password.
func (u Upstream) LogValue() slog.Value { return slog.StringValue(u.Master.String()) }

// upstreamValue takes a URL. Where nothing is named there is no upstream.
func upstreamValue() value {
	return scalar("redis://user:password@host:port/database, or rediss:// for TLS", func(c *Config, text string) string {
		if strings.TrimSpace(text) == "" {
			c.Upstream = Upstream{}
			return ""
		}
		u, wrong := parseUpstream(text)
		if wrong != "" {
			return wrong
		}
		c.Upstream = u
		return ""
	})
}

// parseUpstream returns what is wrong with the URL, in words that show no password.
func parseUpstream(text string) (Upstream, string) {
	if !strings.Contains(text, "://") {
		text = "redis://" + text
	}
	m, wrong := parseMaster(text)
	if wrong != "" {
		return Upstream{}, wrong
	}
	up := Upstream{Master: m}
	if u, err := url.Parse(text); err == nil && u.User != nil {
		password, _ := u.User.Password()
		up.User, up.Password = u.User.Username(), NewSecret(password)
	}
	return up, ""
}

// lockKeysValue takes a list of patterns, or in a variable or flag a text with commas.
func lockKeysValue() value {
	accepts := "patterns of names as in KEYS, with commas between, such as lock:*,*:lock"
	return value{accepts: accepts, set: func(c *Config, in raw) []fault {
		all := []string{}
		items := in.items
		switch {
		case in.fields != nil:
			return []fault{{in.line, `is no list; write the patterns as ["lock:*", "*:lock"]`}}
		case in.items == nil:
			for part := range strings.SplitSeq(in.text, ",") {
				if part = strings.TrimSpace(part); part != "" {
					items = append(items, raw{text: part, line: in.line})
				}
			}
		}
		for i, item := range items {
			if item.items != nil || item.fields != nil || item.text == "" {
				return []fault{{item.line, fmt.Sprintf("pattern %d is no text; write one such as \"lock:*\"", i+1)}}
			}
			all = append(all, item.text)
		}
		c.LockKeys = all
		return nil
	}}
}
