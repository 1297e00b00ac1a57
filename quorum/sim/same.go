package sim

import (
	"fmt"
	"hash/fnv"
)

// samePairs is how often a world is run twice before a seed is said not to decide it. On a busy machine, the runtime
// interrupts a goroutine that has not paused for 10 ms, though others had the processor meanwhile. Then another
// goroutine goes on first, and the run goes another way, whatever the seed. A difference that the seed does not decide
// shows in each pair, except for a coin that is tossed once in a world: there all pairs differ in one world of 32.
const samePairs = 5

// Differs says that play, which runs one plan, gave two different worlds in each pair of runs, by the trace or by the
// report. If load makes one pair in five differ, Differs errs on one plan in 3,000, and on two plans in thirty once in
// 20,000 times.
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
