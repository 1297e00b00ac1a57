package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// The pages ask for no password, so a browser on this machine, or near it, can open them. A web page from elsewhere
// cannot read our pages, because their host differs from its own. But the server of a web page may let the page's name
// mean our address ("DNS rebinding"). Then the browser still sends the page's name, in Host. So only these hosts are
// answered:
//
//   - an IP address, which is nobody's name: probes and Prometheus ask so
//   - localhost and all names below it
//   - names that the operator knows: of this machine, and of the setting admin_hosts
//   - no host: old probes send no Host, and every browser does

// An allowed has the other host names that are answered.
type allowed struct {
	names    map[string]bool
	suffixes []string // each begins with a dot
	any      bool
}

// allow takes names, "*.domain" for all below a domain, and "*" for any.
func allow(patterns []string) allowed {
	a := allowed{names: map[string]bool{"localhost": true}, suffixes: []string{".localhost"}}
	for _, p := range patterns {
		p = canonical(p)
		switch suffix, below := strings.CutPrefix(p, "*"); {
		case p == "":
		case p == "*":
			a.any = true
		case below:
			a.suffixes = append(a.suffixes, suffix)
		default:
			a.names[p] = true
		}
	}
	return a
}

// canonical is a name in lower case, without the dot at the end of a full name.
func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// answers says whether a request with this Host is answered.
func (a allowed) answers(host string) bool {
	if host == "" || a.any {
		return true
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	name = canonical(name)
	for _, suffix := range a.suffixes {
		if len(name) > len(suffix) && strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return a.names[name]
}

// guard answers only requests for allowed hosts.
func (a allowed) guard(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.answers(r.Host) {
			http.Error(w, fmt.Sprintf("lockproxy does not answer for the host %.100q; ask by an IP address, or add that name to the setting admin_hosts", r.Host),
				http.StatusMisdirectedRequest)
			return
		}
		pages.ServeHTTP(w, r)
	})
}
