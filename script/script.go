// Package script knows which Lua texts mean what.
//
// Lock libraries release and extend their locks with small Lua scripts. Such a text cannot simply be sent to every
// master: the masters' replies would have to be merged by somebody who knows what they mean. So a text that arrives
// is first understood:
//
//	text ── Cache ── SHA-1 seen before? ──────────────────────────────────────────────► Script
//	          │                                                                           ▲
//	          └─ new: tokens ── syntax tree ── run in three worlds ── effects, replies ── Meaning
//
// The worlds are all that a lock script can find: its key is absent, or holds the script's token, or holds something
// else. The text is run once in each of them with symbols in the place of KEYS and ARGV. What it did to the key says
// what it is: "nothing, deleted, nothing" is a release, whatever it was written like. What it returned is the dialect
// in which its library wants to be answered. A condition on an argument, such as ARGV[3] == "0", splits the runs, and
// each side is understood for itself.
//
// Promises: a Meaning holds for all keys and arguments that its Bind accepts, so that carrying out the operation and
// returning its answer is what Redis would have done on a key that always has a TTL. Whatever goes beyond the subset
// of Lua and of commands known here is not recognised; nothing is guessed. Recognising takes bounded time and memory
// for any text.
//
// Not promised: other types than strings, functions, PUBLISH, calls with several keys. (A loop over KEYS is understood
// for calls with one key; Bind refuses others.) A script that tells who holds the lock, or for how long, is understood
// only if it does nothing else.
//
// A Script that is not recognised may be of a known Family, which says how the replies of N masters to it merge. The replies
// to any other Script merge only if they are equal.
//
// A shape stands for texts that differ on the surface only. It leads to a Family, or to the name of a text for people to read;
// never to a Meaning.
package script

// A Script is a Lua text and what it means.
type Script struct {
	SHA     string   // SHA-1 of Text, 40 lower-case hex digits
	Text    string   // as the client sent it
	Meaning *Meaning // nil: not recognised
	Family  *Family  // nil: not in the table

	// Compiles says that the text is known to be Lua. If not, the masters are to say so before it is used.
	Compiles bool
}
