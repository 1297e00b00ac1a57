package sim

import (
	"fmt"
	"hash/fnv"
)

// samePairs is how often a world is run twice before a seed is said not to decide it. Where a machine is busy, the runtime
// interrupts a goroutine that has not paused for 10 ms, though others had the processor meanwhile: then another goes on
// first, and a run goes another way, whichever seed it is. What a seed does not decide differs each time, but for a
// coin that is tossed once in a world: all pairs differ in one world of 32.
const samePairs = 5

// Differs says that play, which runs one plan, came to two different worlds each time that it was called twice: in what is
// traced, or in what is reported. Where load makes one pair in five differ, it says so of one plan in 3,000, and of
// two in thirty once in 20,000 times.
func Differs(play func(trace func(string)) Report) bool {
	for range samePairs {
		once := worldOf(play)
		if again := worldOf(play); again == once {
			return false
		}
	}
	return true
}

// worldOf runs a plan and returns a hash of its world.
func worldOf(play func(trace func(string)) Report) uint64 {
	h := fnv.New64a()
	r := play(func(line string) { _, _ = fmt.Fprintln(h, line) })
	_, _ = fmt.Fprint(h, r) // its map of faults in order of the keys
	return h.Sum64()
}
