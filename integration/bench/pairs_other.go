//go:build !linux

package main

import "errors"

// pairs is measured with epoll.
func pairs(string) func(load) (result, error) {
	return func(load) (result, error) { return result{}, errors.New("lock and unlock are measured on Linux only") }
}

func lockPairs(addr string) func(load) (result, error) { return pairs(addr) }
