//go:build !linux

package main

import "errors"

func pin(int, int) error { return errors.New("processes are kept on a processor on Linux only") }
