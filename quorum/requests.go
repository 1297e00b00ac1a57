package quorum

import (
	"errors"
	"time"

	"lockproxy/quorum/rules"
)

// A Key names a resource: a Redis key in one logical database.
type Key struct {
	DB   int
	Name string
}

// Errors other than *NoQuorum.
var (
	// ErrWrongType says that a quorum holds a key of another type than a string.
	ErrWrongType = errors.New("WRONGTYPE Operation against a key holding the wrong kind of value")
	// ErrTooLong says that an extension would outlive Config.TTLMax.
	ErrTooLong = errors.New("the lock would outlive ttl_max")
	// ErrUnclear says that a value was set, but the replaced value is not clear: others wrote at the same time, or had left different
	// values on a few masters each. If the answer were that the key was absent, two clients could both believe to be first.
	ErrUnclear = errors.New("NOQUORUM it is set, but no quorum of masters agrees on what was there before; GET tells what is there now")
	// ErrLate says that a quorum granted too late to leave any validity. The keys that were set have been undone. An extension has not
	// been undone: masters may hold the lock still.
	ErrLate = errors.New("NOQUORUM no validity is left of the TTL: it is too short, or the masters answered too late")
	// ErrTooShort says that an Exec or a script would have made a new key with a TTL below TTLMin: a lock that is over when the lock is
	// granted. An Exec has done nothing, and a script has been undone.
	ErrTooShort = errors.New("the TTL is too short: less than 1 ms of validity would be left")
	// ErrClosed says that the engine was closed before the outcome was known.
	ErrClosed = errors.New("lockproxy is shutting down")
)

// AcquireRequest asks for a lock. TTL must be positive and at most Config.TTLMax.
type AcquireRequest struct {
	Key   Key
	Token string
	TTL   time.Duration
	// Reentrant extends the lock, instead of refusing, where Token holds the lock already.
	Reentrant bool
	// WantFree asks, if the lock is refused, when the lock will be free by itself. WantFree is for clients that wait.
	WantFree bool
	// Fenced asks for a fence. Of the other options, Fenced goes with WantFree and with Insist alone.
	Fenced bool
	// WantHolder asks, if the lock is refused, for the holder (SET … NX GET).
	WantHolder bool
	// Insist, if not nil, is called when attempts at the same moment may have split the votes, so that perhaps no attempt wins. If
	// Insist returns true, the attempt is made once more, a little later; askedMax times at most in all. Insist must not block.
	Insist func() bool
}

// A HandOver asks for the release of the lock that Token holds, and for the attempt Next on the same key. The release's bells carry the
// text Bell, so that a client knows them from the bells of other releases.
type HandOver struct {
	Token string
	Bell  string
	Next  AcquireRequest
}

// Acquired is the outcome of an acquire. Exactly one of Err, Lock and Refused is set.
type Acquired struct {
	Err  error // *NoQuorum, ErrWrongType, ErrClosed
	Lock *Lock // granted by a quorum, with validity left
	// Held says, after a Reentrant request, that a quorum granted because the token held the lock already.
	Held bool
	// Refused says that no quorum can be won now: somebody holds the lock, or the votes were split, or the quorum answered too late to
	// leave any validity. The attempt's keys have been undone.
	Refused bool
	// Holder is, on a refusal with WantHolder, the token that a quorum agrees on; "" if no quorum agrees.
	Holder string
	// Fence is, of a lock with Fenced, larger than every fence that was given out in this database before the attempt began.
	Fence int64
	// Unfounded says that Fence rests on the clocks of proxies alone: too few masters know the fences that were given out
	// before.
	Unfounded bool
	// FreeIn is, on a refusal with WantFree, for how long each master will hold another lock, unless the lock is released or extended: 0
	// for a master that granted, negative for a master that told nothing. Nil if the quorum granted too late.
	FreeIn []time.Duration
}

// WriteRequest asks for a quorum write that replaces the key. TTL as in AcquireRequest.
type WriteRequest struct {
	Key      Key
	Value    string
	TTL      time.Duration
	IfExists bool // SET … XX: only if a quorum holds the key, whatever its value
	KeepTTL  bool // keep the remaining TTL of an existing key; TTL is for a missing key
	WantOld  bool // SET … GET: ErrWrongType if the key is no string
}

// Written is the outcome of a write.
type Written struct {
	Err    error // *NoQuorum, ErrWrongType, ErrUnclear, ErrClosed
	Done   bool  // false: with IfExists, the key was not there
	Old    string
	HadOld bool
}

// Released is the outcome of a compare-and-delete.
type Released struct {
	Err    error // *NoQuorum, ErrWrongType, ErrClosed
	Held   bool  // the token held the lock, and holds it no longer
	Absent bool  // if not Held: the key was absent on a quorum
}

// ExtendRequest asks to set the remaining TTL of a lock that Token holds to TTL, or with Add to add TTL to it.
type ExtendRequest struct {
	Key   Key
	Token string
	TTL   time.Duration
	Add   bool
	// Fenced lets the record of the lock's fence live as long, and the client is told the validity. Fenced does not go with Add.
	Fenced bool
}

// Extended is the outcome of a compare-and-expire.
type Extended struct {
	Err    error     // *NoQuorum, ErrWrongType, ErrTooLong, ErrLate, ErrClosed
	Held   bool      // a quorum extended the lock, and validity is left, or the client gives the lock up by so short a TTL
	Absent bool      // if not Held: the key was absent on a quorum
	Until  time.Time // when the promised validity ends (monotonic), as known when it was decided; zero if none is promised
	Lock   *Lock     // the promise, to be asked when the reply is written, nil if there is none; abandoning it does nothing
}

// View is a quorum's view of a key. If no answer can have a quorum, nobody holds the key: Exists is false.
type View struct {
	Err    error // *NoQuorum, ErrClosed; ErrWrongType from Get only; errNoAgreement, never for a client, in a search for locks
	Exists bool
	Type   string        // "string", "hash", …; "none" if not Exists
	Value  string        // of a string; "" if the value is long and was not asked for
	Length int           // of a string in bytes, of anything else in entries (not from Get)
	TTL    time.Duration // how long a quorum will still hold the key, as the client that set it would count (Read only)
	// TTLMost is the longest TTL that a master has told. TTL may come from a master that has missed an extension, but in every quorum
	// there is a master that has made the extension. So a time that must not be shorter than the lock goes by TTLMost.
	TTLMost time.Duration
	seen    rules.Opinion // as masters told it
	head    string        // the first bytes of a long value, if they were asked for
	told    []sighting    // the sightings behind the view, for its Mark
}

// ExpireCondition says when EXPIRE applies, as the options NX, XX, GT and LT of Redis 7.
type ExpireCondition uint8

// The conditions of an Expire; they combine as in Redis (XX with GT or LT).
const (
	IfNoTTL   ExpireCondition = 1 << iota // NX: never true, every key has a TTL
	IfTTL                                 // XX
	IfGreater                             // GT
	IfLess                                // LT
)

// ExpireRequest asks to change the TTL of the key that a quorum holds. A TTL of zero, or a negative TTL, deletes the key.
type ExpireRequest struct {
	Key       Key
	TTL       time.Duration
	Condition ExpireCondition
}

// Changed is the outcome of Remove, Expire and Break.
type Changed struct {
	Err     error  // *NoQuorum, ErrClosed
	Applied bool   // the key was there, the condition held, and a quorum applied it
	Token   string // of the lock that Remove or Break deleted; "" if unknown, if longer than 512 bytes, or a hash with several fields
}

// A Lock stands for the keys that an acquire or an Exec has taken, or an extension has made longer.
type Lock struct {
	engine *Engine
	taken  takings
	until  instant
}

// takings are the keys that an operation has taken, or made longer.
type takings interface {
	undo(after func()) // of an extension does nothing
	appendKeys(to []Key) []Key
}

// AppendKeys appends the keys that the lock consists of. The names are the request's.
func (l *Lock) AppendKeys(to []Key) []Key { return l.taken.appendKeys(to) }

// Until returns when the promised validity ends, on the monotonic clock. The monotonic clock stands still while the machine is suspended,
// so Until is earlier, after each suspend, by the time of the suspend.
func (l *Lock) Until() time.Time {
	l.engine.catchUp()
	return l.engine.timeAt(l.until)
}

// Abandon undoes the lock, because its client is gone or the reply would come too late. A lock that was extended stays.
// Abandon does not wait, and only the first call does anything.
func (l *Lock) Abandon() {
	//mutant: an abandoned lock is not undone
	l.taken.undo(func() {})
}
