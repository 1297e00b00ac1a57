package main

import (
	"cmp"
	"context"
	"sync"

	"lockproxy/cmd/lockproxy/config"
	"lockproxy/quorum/masters"
)

// A gone master did not answer when it was asked whether it is there. Nobody waits for it again.
type gone struct {
	masters.Master
	err error
}

// Dial fails at once.
func (g gone) Dial(context.Context, int) (masters.Conn, error) { return nil, g.err }

// answering returns the masters, with a gone one in place of each that does not answer within the time for connecting. Looking at
// all databases of slow masters may take long; a master that is stopped must not take all that time.
func answering(cfg *config.Config, ms []*masters.Redis) []masters.Master {
	all := make([]masters.Master, len(ms))
	var asked sync.WaitGroup
	for i, m := range ms {
		asked.Go(func() {
			all[i] = m
			if err := answers(cfg, m); err != nil {
				all[i] = gone{m, err}
			}
		})
	}
	asked.Wait()
	return all
}

func answers(cfg *config.Config, m *masters.Redis) error {
	ctx, cancel := context.WithTimeout(context.Background(), max(cfg.DialTimeout, cfg.InstanceTimeout))
	defer cancel()
	conn, err := m.Dial(ctx, 0)
	if err != nil {
		return cmp.Or(ctx.Err(), err) // when the time is over, err only says that the connection was closed
	}
	return conn.Close()
}
