// Package vouch says when the votes of a master count. It is pure: it reads no clock and speaks to nobody.
//
// A vote proves three things or it does not count: the same process answered, with the same data, on a clock that ran as
// ours did. Clock follows a master's clock. A Canary is the mark on a master's data; Judge says what the mark proves.
// A master that may have forgotten locks is in Quarantine until none that it forgot can still be held. Standstill tells
// a proxy that was suspended from masters whose clocks jumped.
package vouch
