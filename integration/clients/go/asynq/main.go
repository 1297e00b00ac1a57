// Command asynq runs a job queue: asynq's client, server, scheduler and inspector, beside a lock of redsync.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"clients/scenarios"
)

const soon = 30 * time.Second // within which a job is done, on a busy machine

func main() {
	scenarios.Run(scenarios.Library{Name: "asynq", Module: "github.com/hibiken/asynq", Open: func() (scenarios.Client, error) {
		return client{redis.NewClient(&redis.Options{Addr: scenarios.Addr})}, nil
	}})
}

type client struct{ redis *redis.Client }

func (c client) Close() { _ = c.redis.Close() }

// Lock makes a lock, which a job or a scheduler would take.
func (c client) Lock(name string, ttl time.Duration, _ []byte) scenarios.Lock {
	return lock{redsync.New(goredis.NewPool(c.redis)).NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(1))}
}

type lock struct{ *redsync.Mutex }

func (l lock) Acquire(time.Duration) (bool, error) {
	err := l.Mutex.Lock()
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) {
		return false, nil
	}
	return err == nil, err
}

func (l lock) Release() (bool, error)             { return l.Unlock() }
func (l lock) Extend(time.Duration) (bool, error) { return l.Mutex.Extend() }

func (c client) UseData(_, _ string) (string, error) {
	w := newWork(c.redis)
	if err := w.server.Start(asynq.HandlerFunc(w.handle)); err != nil {
		return "", err
	}
	defer w.server.Shutdown()
	var used []string
	for _, s := range []struct {
		name string
		act  func() error
	}{
		{"jobs", w.jobs},
		{"delayed and unique jobs", w.later},
		{"retries", w.retries},
		{"cancelling by pub/sub", w.cancel},
		{"scheduler", w.scheduler},
		{"inspector", w.inspect},
	} {
		if err := s.act(); err != nil {
			return "", fmt.Errorf("%s: %w", s.name, err)
		}
		used = append(used, s.name)
	}
	return strings.Join(used, ", "), nil
}

// work is a worker, and what gives it work.
type work struct {
	server    *asynq.Server
	client    *asynq.Client
	inspector *asynq.Inspector
	planner   *asynq.Scheduler
	done      chan string // type and payload of what was done
}

func newWork(r *redis.Client) *work {
	return &work{
		server: asynq.NewServerFromRedisClient(r, asynq.Config{
			Concurrency: 4, LogLevel: asynq.FatalLevel, ShutdownTimeout: time.Second,
			TaskCheckInterval: 100 * time.Millisecond, DelayedTaskCheckInterval: 100 * time.Millisecond,
			RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 0 },
		}),
		client: asynq.NewClientFromRedisClient(r), inspector: asynq.NewInspectorFromRedisClient(r),
		planner: asynq.NewSchedulerFromRedisClient(r, &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel}),
		done:    make(chan string, 1000),
	}
}

func (w *work) handle(ctx context.Context, t *asynq.Task) error {
	switch tries, _ := asynq.GetRetryCount(ctx); {
	case t.Type() == "fails twice" && tries < 2:
		return errors.New("not yet")
	case t.Type() == "for ever":
		w.done <- "started"
		<-ctx.Done()
		w.done <- "cancelled"
		return ctx.Err()
	}
	w.done <- string(t.Payload())
	return nil
}

func (w *work) enqueue(kind, payload string, options ...asynq.Option) (*asynq.TaskInfo, error) {
	return w.client.Enqueue(asynq.NewTask(kind, []byte(payload)), options...)
}

// await waits until that many jobs are done, and returns the last one.
func (w *work) await(n int) (last string, err error) {
	timeout := time.After(soon)
	for range n {
		select {
		case last = <-w.done:
		case <-timeout:
			return "", errors.New("not done in time")
		}
	}
	return last, nil
}

func (w *work) expect(want string) error {
	got, err := w.await(1)
	if err == nil && got != want {
		err = fmt.Errorf("got %q, want %q", got, want)
	}
	return err
}

func (w *work) jobs() error {
	for i := range 50 {
		if _, err := w.enqueue("plain", fmt.Sprint(i)); err != nil {
			return err
		}
	}
	_, err := w.await(50)
	return err
}

func (w *work) later() error {
	unique := []asynq.Option{asynq.ProcessIn(time.Second), asynq.Unique(time.Minute)}
	if _, err := w.enqueue("plain", "later", unique...); err != nil {
		return err
	}
	if _, err := w.enqueue("plain", "later", unique...); !errors.Is(err, asynq.ErrDuplicateTask) {
		return fmt.Errorf("the second of a unique job: %w", err)
	}
	return w.expect("later")
}

func (w *work) retries() error {
	if _, err := w.enqueue("fails twice", "at last"); err != nil {
		return err
	}
	return w.expect("at last")
}

func (w *work) cancel() error {
	job, err := w.enqueue("for ever", "", asynq.MaxRetry(0))
	if err == nil {
		err = w.expect("started")
	}
	if err != nil {
		return err
	}
	cancelled, err := scenarios.Poll(soon, func() (bool, error) { // the server may not have subscribed yet
		return len(w.done) > 0, w.inspector.CancelProcessing(job.ID)
	})
	if err == nil && !cancelled {
		err = errors.New("not cancelled in time")
	}
	if err == nil {
		err = w.expect("cancelled")
	}
	return err
}

func (w *work) scheduler() error {
	if _, err := w.planner.Register("@every 1s", asynq.NewTask("plain", []byte("again"))); err != nil {
		return err
	}
	if err := w.planner.Start(); err != nil {
		return err
	}
	defer w.planner.Shutdown()
	return errors.Join(w.expect("again"), w.expect("again"))
}

func (w *work) inspect() error {
	_, err := scenarios.Poll(soon, func() (bool, error) { // the cancelled job, which is not tried again
		queue, err := w.inspector.GetQueueInfo("default")
		return err == nil && queue.Archived == 1, err
	})
	if err != nil {
		return err
	}
	archived, err := w.inspector.DeleteAllArchivedTasks("default")
	if err == nil && archived != 1 {
		err = fmt.Errorf("%d jobs were archived, want 1", archived)
	}
	return err
}
