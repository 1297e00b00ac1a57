package resp

import (
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/admission"
	"lockproxy/quorum/pubsub"
)

// Engine is the part of quorum.Engine used by the commands. No method blocks. Each calls done exactly once, perhaps before the method
// returns, perhaps on a goroutine of the engine.
type Engine interface {
	Acquire(req quorum.AcquireRequest, done func(quorum.Acquired))
	Write(req quorum.WriteRequest, done func(quorum.Written))
	Release(key quorum.Key, token string, done func(quorum.Released))
	Extend(req quorum.ExtendRequest, done func(quorum.Extended))
	Get(key quorum.Key, done func(quorum.View))
	Read(key quorum.Key, done func(quorum.View))
	Peek(db int, names []string, done func([]quorum.View, error))
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
