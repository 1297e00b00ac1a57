package main

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"lockproxy/integration/harness"
)

// lockKeys are the lock_keys of a proxy that has an upstream: the scenarios' own names, and what libraries make of them.
var lockKeys = []string{
	"lock:*",
	"*:lock:*",                // django-redis
	"redlock:*",               // pottery
	"mutex:*",                 // redis-semaphore
	"rueidislock:*",           //
	"registry:*",              // Spring Integration, the registry's key
	"job-lock:*",              // ShedLock
	"PHPREDIS_SESSION:*_LOCK", // the sessions themselves are data
	"qo_*",                    // celery-once
}

// startUpstream starts it and returns what flags the proxy must have for it.
func (s *stack) startUpstream() ([]string, error) {
	var err error
	if s.upstream, err = harness.StartRedis(); err != nil {
		return nil, err
	}
	return []string{"--upstream", "redis://" + s.upstream.Addr, "--lock-keys", strings.Join(lockKeys, ",")}, nil
}

// clearUpstream removes all data from the upstream, which must not have been given a lock.
func (s *stack) clearUpstream() error {
	if s.upstream == nil {
		return nil
	}
	err := s.noLockUpstream()
	_, clearing := s.upstream.Clear()
	return errors.Join(err, clearing)
}

func (s *stack) noLockUpstream() error {
	keys, err := s.upstream.LockKeys()
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(keys, isLock); i >= 0 {
		err = fmt.Errorf("the upstream has a lock's key: %q", keys[i])
	}
	return err
}

// apart says what is on the wrong side.
func (s *stack) apart() error {
	if s.upstream == nil {
		return errors.New("there is no upstream")
	}
	keys, err := s.upstream.LockKeys()
	if err == nil && len(keys) == 0 {
		err = errors.New("the upstream has no data")
	}
	if err = errors.Join(err, s.noLockUpstream()); err != nil {
		return err
	}
	for _, m := range s.masters {
		if keys, err = m.LockKeys(); err != nil {
			return err
		}
		if i := slices.IndexFunc(keys, func(k string) bool { return !isLock(k) }); i >= 0 {
			return fmt.Errorf("the master %s has data: %q", m.Addr, keys[i])
		}
	}
	return nil
}

// isLock says whether that is a lock's name, or one that belongs to a lock by its {tag}.
func isLock(name string) bool {
	_, rest, _ := strings.Cut(name, "{")
	tag, _, _ := strings.Cut(rest, "}")
	return slices.ContainsFunc(lockKeys, func(pattern string) bool { return fits(pattern, name) || fits(pattern, tag) })
}

func fits(pattern, name string) bool {
	matches, _ := path.Match(pattern, strings.ReplaceAll(name, "/", "."))
	return matches
}
