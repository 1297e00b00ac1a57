package main

import (
	"fmt"

	"lockproxy/cmd/lockproxy/admin"
)

// filesBesides is how many files the process has open besides the connections of clients and masters: some ten for the log, doors
// and the like, 16 for clients that are being turned away, and those of operators.
const filesBesides = 32 + admin.ConnectionsMax

// clientsMax returns max_clients, or fewer if the process may not open as many files (0: nobody knows how many). A process that
// has none left cannot reach a master that is back, nor show its pages to anybody. So clients must not take the last.
func (p *process) clientsMax(files int) (int, error) {
	besides := filesBesides + len(p.addrs)*(p.cfg.Databases+1) // a lane for each database, and one that listens
	each := 1
	if p.cfg.Upstream.Addr != "" {
		each = 2
	}
	most := (files - besides) / each
	switch {
	case files == 0 || most >= p.cfg.MaxClients:
		return p.cfg.MaxClients, nil
	case most < 1:
		return 0, fmt.Errorf("the process may open %d files, and needs %d besides its clients'; raise ulimit -n", files, besides)
	}
	p.log.Warn("max_clients is lowered, because the process may not open enough files: raise ulimit -n",
		"max_clients", p.cfg.MaxClients, "lowered_to", most, "files", files)
	return most, nil
}
