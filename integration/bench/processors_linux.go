package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// pin keeps the threads that a process has, and those that they make, on one processor: the first of this program's own, or the
// second.
func pin(pid, nth int) error {
	processor, err := processorOf(nth)
	if err != nil {
		return err
	}
	var only unix.CPUSet
	only.Set(processor)
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, &only); err != nil {
			return fmt.Errorf("keeping process %d on processor %d: %w", pid, processor, err)
		}
	}
	return nil
}

// processorOf returns the number of the nth processor that this program may use, from 0.
func processorOf(nth int) (int, error) {
	var ours unix.CPUSet
	if err := unix.SchedGetaffinity(0, &ours); err != nil {
		return 0, err
	}
	for i, left := 0, ours.Count(); left > 0; i++ {
		if !ours.IsSet(i) {
			continue
		}
		if nth == 0 {
			return i, nil
		}
		nth, left = nth-1, left-1
	}
	return 0, errors.New("this part takes two processors")
}
