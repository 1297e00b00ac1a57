// Command rueidislock locks through rueidislock, which keeps what it took and has three keys for each lock.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"clients/scenarios"
)

// Its times, wider than its defaults, because the machine of the tests may be busy.
const (
	validity = 5 * time.Second
	period   = time.Second
	tryFor   = 500 * time.Millisecond // one of the three keys, and before it tries again
)

func main() {
	for _, disableCache := range []bool{true, false} {
		name := "rueidislock"
		if disableCache {
			name += ", DisableCache"
		}
		scenarios.Run(scenarios.Library{
			Name: name, Module: "github.com/redis/rueidis", Mute: true, Kept: validity,
			Open: func() (scenarios.Client, error) {
				locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
					ClientOption: rueidis.ClientOption{InitAddress: []string{scenarios.Addr}, DisableCache: disableCache},
					KeyValidity:  validity, ExtendInterval: period, TryNextAfter: tryFor,
				})
				return client{locker}, err
			},
		})
	}
}

type client struct{ rueidislock.Locker }

func (c client) Lock(name string, ttl time.Duration, _ []byte) scenarios.Lock {
	return &lock{locker: c.Locker, name: name, ttl: ttl}
}

type lock struct {
	locker  rueidislock.Locker
	name    string
	ttl     time.Duration
	release context.CancelFunc
}

// Acquire takes the lock until the TTL is over: the library has no other way to say so than a deadline.
func (l *lock) Acquire(wait time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), l.ttl)
	take := l.locker.TryWithContext
	if wait > 0 {
		take = l.locker.WithContext
		defer time.AfterFunc(wait, cancel).Stop()
	}
	_, release, err := take(ctx, l.name)
	if err != nil {
		cancel()
		if errors.Is(err, rueidislock.ErrNotLocked) {
			return false, nil
		}
		return false, err
	}
	l.release = func() { release(); cancel() }
	return true, nil
}

func (l *lock) Release() (bool, error) {
	l.release()
	return true, nil
}

func (l *lock) Extend(time.Duration) (bool, error) { panic("it has no such thing") }
