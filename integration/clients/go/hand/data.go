package main

import (
	"fmt"
	"reflect"
)

const double = `return redis.call("incrby", KEYS[1], redis.call("get", KEYS[1]))`

// steps are uses of a library, one after the other.
type steps struct {
	used string
	err  error
}

// step notes what was used, and what is wrong with it: anything but what is wanted.
func (s *steps) step(what string, got, want any, err error) {
	if s.err != nil {
		return
	}
	if err == nil && fmt.Sprint(got) != fmt.Sprint(want) && !reflect.DeepEqual(got, want) {
		err = fmt.Errorf("got %v, want %v", got, want)
	}
	if err != nil {
		s.err = fmt.Errorf("%s: %w", what, err)
		return
	}
	if s.used != "" {
		s.used += ", "
	}
	s.used += what
}
