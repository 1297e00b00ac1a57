package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// hostPattern is a name by which admin may be asked: the name of one host, of all hosts below a domain, or of any host.
var hostPattern = regexp.MustCompile(`^(\*|(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?)$`)

// hostMax is how long a host name may be.
const hostMax = 253

// setProxyProtocol takes a list of networks or addresses, or in a variable or flag a text with commas.
func setProxyProtocol(c *Config, in raw) []fault {
	if in.fields != nil {
		return []fault{{in.line, "is no list; write the networks as [10.0.0.0/8]"}}
	}
	all := []netip.Prefix{}
	for i, item := range in.list() {
		if in.items == nil && item.text == "" { // two commas, or one at the end
			continue
		}
		network, err := netip.ParsePrefix(item.text)
		if addr, isAddr := netip.ParseAddr(item.text); isAddr == nil {
			network, err = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
		}
		if item.items != nil || item.fields != nil || err != nil {
			return []fault{{item.line, fmt.Sprintf("network %d is no network; write one such as 10.0.0.0/8, or the address of the balancer", i+1)}}
		}
		all = append(all, network.Masked())
	}
	c.ProxyProtocol = all
	return nil
}

// setAdminHosts takes a list of names, or in a variable or flag a text with commas.
func setAdminHosts(c *Config, in raw) []fault {
	if in.fields != nil {
		return []fault{{in.line, `is no list; write the names as [lockproxy, "*.svc.cluster.local"]`}}
	}
	all := []string{}
	for i, item := range in.list() {
		if in.items == nil && item.text == "" { // two commas, or a comma at the end
			continue
		}
		if item.items != nil || item.fields != nil || len(item.text) > hostMax || !hostPattern.MatchString(item.text) {
			return []fault{{item.line, fmt.Sprintf(
				"name %d is no host name; write one such as lockproxy or *.svc.cluster.local, without a port, or * for any", i+1)}}
		}
		all = append(all, strings.ToLower(item.text))
	}
	c.AdminHosts = all
	return nil
}
