package resp

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/admission"
	"lockproxy/quorum/pubsub"
	"lockproxy/resp/group"
	"lockproxy/resp/slowlog"
	"lockproxy/resp/upstream"
)

// Config has the settings of a server. Zero values get the defaults.
type Config struct {
	// TTLMax is the longest TTL a client may ask for, and the TTL of a key that asks for none. Default 1 h.
	TTLMax time.Duration
	// TTLMin is the shortest TTL of which validity can be left: LOCK and EXTEND refuse less with an error. Default 4 ms.
	TTLMin time.Duration
	// Databases is how many logical databases SELECT reaches. Default 16.
	Databases int
	// Users may log in with AUTH. Empty: nobody needs to. AUTH with a password alone means the user "default".
	Users []User
	// ProtectedMode turns away clients on other machines, where nobody needs to log in.
	ProtectedMode bool
	// Version is lockproxy's version in INFO. Default "dev".
	Version string
	Limits  Limits
	// Database is the database of clients without a SELECT. Default 0.
	Database int
	// CPU is the processor time that the process has used, by itself and in the kernel, for INFO. Default: unknown, 0.
	CPU func() (user, system time.Duration)
	// Upstream gets every command that is not about a lock. Nil: no upstream, and no such commands.
	Upstream *upstream.Redis
	// LockKeys are patterns of the names of locks, as in KEYS. Without Upstream, LockKeys mean nothing.
	LockKeys []string
	// Pause chooses how long, below most, a waiting LOCK does nothing after split votes. Default: at random.
	Pause func(most time.Duration) time.Duration
	// Audit gets the events of locks. Audit must not block. The texts may be parts of larger ones. Nil: no audit.
	Audit func(Event)
	// SlowLog is how long a command takes at least that SLOWLOG shows. Default 10 ms, as in Redis. NoSlowLog: none is shown.
	SlowLog time.Duration
	// LockGroups are the groups by which locks are counted; the first match of a key counts. Empty: no groups.
	LockGroups []group.Rule
	// Logger never gets a token value or a password. Default: none.
	Logger *slog.Logger
}

// NoSlowLog is the Config.SlowLog of an empty slow log.
const NoSlowLog time.Duration = -1

// A User may log in.
type User struct {
	Name     string
	Password func() string // returns the present password
	// ForceUnlock permits FORCEUNLOCK.
	ForceUnlock bool
}

// Limits bound the memory and time that clients can take. Zero values get the defaults; sizes are in bytes.
type Limits struct {
	// Clients is the number of connections. Default 10,000.
	Clients int
	// Args is the number of arguments of one command, its name included. Default 1024.
	Args int
	// Bulk is the size of one argument. Default 1 MiB.
	Bulk int
	// Command is the size of one command as sent. Default 4 MiB.
	Command int
	// Input is how much a client may send ahead while its earlier commands are running. Default 16 MiB.
	Input int
	// Pipeline is how many commands of one client may be under way; a command on several keys counts once for each key. Further commands
	// wait, unparsed. Default 1024.
	Pipeline int
	// Output is how much may wait for a client that does not read. Default 16 MiB.
	Output int
	// Memory bounds all of the above over all clients together; budget.go has the counted sizes. Default 256 MiB.
	Memory int
	// Write ends a connection whose client reads nothing for so long. Default 30 s.
	Write time.Duration
	// Idle ends a connection that sends nothing for so long while none of its commands is running. Default: never.
	Idle time.Duration
	// Auth is how long a client may take to log in, where users are configured. Default 10 s.
	Auth time.Duration
}

// Limits on a client before login, as in Redis.
const (
	inputBeforeAuth = 256 << 10
	depthBeforeAuth = 16 // bounds unread replies, too: replies before login are short
)

func (c Config) withDefaults() Config {
	setDefault(&c.TTLMax, time.Hour)
	setDefault(&c.TTLMin, 4*time.Millisecond)
	setDefault(&c.Databases, 16)
	setDefault(&c.SlowLog, slowlog.Threshold)
	setDefault(&c.Version, "dev")
	if c.CPU == nil {
		c.CPU = func() (user, system time.Duration) { return 0, 0 }
	}
	l := &c.Limits
	setDefault(&l.Clients, 10_000)
	setDefault(&l.Args, 1024)
	setDefault(&l.Bulk, 1<<20)
	setDefault(&l.Command, 4<<20)
	setDefault(&l.Input, 16<<20)
	setDefault(&l.Pipeline, 1024)
	setDefault(&l.Output, 16<<20)
	setDefault(&l.Memory, 256<<20)
	setDefault(&l.Write, 30*time.Second)
	setDefault(&l.Auth, 10*time.Second)
	l.Input = max(l.Input, l.Command) // a command must fit to be run at all
	if c.Pause == nil {
		c.Pause = rand.N[time.Duration]
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// Engine is the part of quorum.Engine used by the commands. No method blocks. Each calls done exactly once, perhaps before the method
// returns, perhaps on a goroutine of the engine.
type Engine interface {
	Acquire(req quorum.AcquireRequest, done func(quorum.Acquired))
	Write(req quorum.WriteRequest, done func(quorum.Written))
	Release(key quorum.Key, token string, done func(quorum.Released))
	HandOver(h quorum.HandOver, released func(quorum.Released), acquired func(quorum.Acquired))
	Extend(req quorum.ExtendRequest, done func(quorum.Extended))
	Get(key quorum.Key, done func(quorum.View))
	Read(key quorum.Key, done func(quorum.View))
	Peek(db int, names []string, done func([]quorum.View, error))
	Present(db int, names []string, done func([]bool, error))
	GetAll(req quorum.GetAllRequest, done func([]quorum.View, error))
	Remove(key quorum.Key, done func(quorum.Changed))
	RemoveAll(db int, names []string, done func(name string, c quorum.Changed))
	Expire(req quorum.ExpireRequest, done func(quorum.Changed))
	Publish(channel, message string, done func(quorum.Published))
	Poll(question []any, done func(quorum.Polled))
	Compile(db int, text string, done func(quorum.Compiled))
	Run(req quorum.RunRequest, done func(quorum.Ran))
	Exec(req quorum.ExecRequest, done func(quorum.Executed))
	Notice(key quorum.Key) *quorum.Notice
	Ask(req quorum.AskRequest, done func(quorum.Asked))
	KillScripts(done func(error))
	Fence(key quorum.Key, done func(quorum.FenceView))
	Views(key quorum.Key, done func(quorum.Viewed))
	Locks(req quorum.LocksRequest, done func(quorum.FoundLocks))
	Break(key quorum.Key, done func(quorum.Changed))
	Admission() *admission.Control
	Masters() []quorum.MasterStatus
	Databases() []quorum.DatabaseStatus
	Stats() quorum.Stats
}

var _ Engine = (*quorum.Engine)(nil)

// Messages is the part of pubsub.Hub used by the commands. No method blocks.
type Messages interface {
	Subscribe(s pubsub.Subscriber, topics []pubsub.Topic, done func(error))
	Unsubscribe(s pubsub.Subscriber, topics []pubsub.Topic)
	Confirmed(t pubsub.Topic) uint64
	Receivers(t pubsub.Topic, match func(pattern string) bool, counts []int64) int64
	Topics(kind pubsub.Kind) []string
}

var _ Messages = (*pubsub.Hub)(nil)

// A lock is a granted acquire on its way to the client: *quorum.Lock, or a test's stand-in.
type lock interface {
	Until() time.Time
	Abandon()
	AppendKeys(to []quorum.Key) []quorum.Key
}
