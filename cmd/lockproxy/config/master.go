package config

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// A Master is the address of one master, with credentials if the URL has any.
type Master struct {
	Addr string // host:port, with no secret
	TLS  bool   // rediss://
	URL  Secret // without the database, as masters.NewRedis takes URLs

	Database int // of clients that have not selected another
}

func (m Master) String() string {
	scheme := "redis://"
	if m.TLS {
		scheme = "rediss://"
	}
	if u, err := url.Parse(m.URL.Reveal()); err == nil && u.User != nil {
		scheme += u.User.Username() + ":" + redacted + "@"
	}
	return scheme + m.Addr
}

// LogValue keeps slog from showing the password.
func (m Master) LogValue() slog.Value { return slog.StringValue(m.String()) }

// setMasters takes a list, or in a variable or flag a text with commas.
func setMasters(c *Config, in raw) []fault {
	if in.fields != nil {
		return []fault{{in.line, "is no list; write the masters as [10.0.0.1:6379, 10.0.0.2:6379, 10.0.0.3:6379]"}}
	}
	var faults []fault
	all := []Master{}
	for i, item := range in.list() {
		m, wrong := parseMaster(item.text)
		if item.text == "" { // most likely a variable was not set, and the lock would have fewer masters
			wrong = "is empty; write host:port, or remove the comma"
		}
		if item.items != nil || item.fields != nil {
			wrong = "is no address; write host:port or a redis:// URL"
		}
		if wrong != "" {
			faults = append(faults, fault{item.line, fmt.Sprintf("master %d %s", i+1, wrong)})
			continue
		}
		all = append(all, m)
	}
	if len(faults) == 0 {
		c.Masters = all
	}
	return faults
}

// parseMaster returns the fault of a bad address, in words that show no password.
func parseMaster(text string) (Master, string) {
	if !strings.Contains(text, "://") {
		text = "redis://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || cutInPassword(u) || !isHost(u.Hostname()):
		// The error of url.Parse quotes the whole text, with the password.
		return Master{}, "is no URL; write redis://user:password@host:port, with %-escapes for what is special in a password"
	case u.Scheme != "redis" && u.Scheme != "rediss":
		return Master{}, fmt.Sprintf("has the scheme %q; write redis:// or, for TLS, rediss://", u.Scheme)
	case u.Hostname() == "":
		return Master{}, "names no host; write host:port or redis://user:password@host:port"
	case u.RawQuery != "" || u.Fragment != "":
		return Master{}, u.Host + " has parameters after the address; leave them out, the settings of lockproxy stand for them"
	}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return Master{}, fmt.Sprintf("%s has the port %q; ports go from 1 to 65535", u.Host, port)
	}
	path := u.Path
	u.Host, u.Path = net.JoinHostPort(u.Hostname(), port), ""
	db, wrong := parseDatabase(u.Host, path)
	if wrong != "" {
		return Master{}, wrong
	}
	return Master{Addr: u.Host, TLS: u.Scheme == "rediss", URL: NewSecret(u.String()), Database: db}, ""
}

// cutInPassword says that the password has an unescaped / ? or #. For url.Parse this character ends the address, and
// the rest of the password looks like a database or parameters. An error would quote the rest.
func cutInPassword(u *url.URL) bool { return strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") }

// isHost says whether a host may be called so: url.Parse lets h:1 through, as in h:1:2.
func isHost(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil || !strings.Contains(name, ":")
}

// parseDatabase reads the path of a URL, and returns the fault of a bad path.
func parseDatabase(host, path string) (int, string) {
	text := strings.Trim(path, "/")
	if text == "" {
		return 0, ""
	}
	db, err := strconv.Atoi(text)
	if err != nil || db < 0 {
		return 0, fmt.Sprintf("%s names the database %q; write a number, such as redis://%s/1", host, text, host)
	}
	return db, ""
}
