//go:build !linux

package main

import "time"

// unconfirmedMax does nothing: the system goes by its own patience.
func unconfirmedMax(int, time.Duration) {}
