// Package vouch says when the votes of a master count. The package is pure: it reads no clock and speaks to nobody.
//
// A vote counts only if it proves three things: the same process answered, with the same data, on a clock that ran as
// ours did. Clock follows a master's clock. A Canary is the mark on a master's data, and Assess says what the mark
// proves. A master that may have forgotten locks is in Quarantine until none of these locks can still be held.
// Standstill tells a suspended proxy from masters whose clocks jumped.
package vouch
