package contest

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// A mutex is a lock that is handed over after a while.
type mutex struct {
	*sync.Mutex
	handover time.Duration
}

func (m mutex) Lock() error {
	m.Mutex.Lock()
	time.Sleep(m.handover)
	return nil
}

func (m mutex) Unlock() error {
	m.Mutex.Unlock()
	return nil
}

func (m mutex) Close() {}

func TestHandoversAreMeasuredOnOneKey(t *testing.T) {
	var one sync.Mutex
	var keys []string
	open := func(_ int, key string) (Locker, error) {
		keys = append(keys, key)
		return mutex{&one, 2 * time.Millisecond}, nil
	}
	got, err := Contest{Clients: 4, Keys: 1, Duration: 100 * time.Millisecond}.Run(open)
	if err != nil {
		t.Fatal(err)
	}
	if got.Locks == 0 || got.Locks > 50 || got.HandoverP50 < 2*time.Millisecond || got.LockP50 < got.HandoverP50 || got.Most < got.Locks/4 || got.Fewest > got.Locks/4 {
		t.Errorf("%+v", got)
	}
	if names := strings.Join(keys, " "); names != "contest:0 contest:0 contest:0 contest:0" {
		t.Error(names)
	}
}

func TestOnKeysOfTheirOwnNothingIsHandedOver(t *testing.T) {
	var keys []string
	open := func(_ int, key string) (Locker, error) {
		keys = append(keys, key)
		return mutex{new(sync.Mutex), time.Millisecond}, nil
	}
	got, err := Contest{Clients: 3, Keys: 3, Duration: 20 * time.Millisecond}.Run(open)
	if err != nil || got.Locks == 0 || got.HandoverP50 != 0 || got.HandoverP99 != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if names := strings.Join(keys, " "); names != "contest:0 contest:1 contest:2" {
		t.Error(names)
	}
}

type broken struct{ mutex }

func (broken) Unlock() error { return errors.New("gone") }

func TestAClientThatFailsFailsTheContest(t *testing.T) {
	open := func(int, string) (Locker, error) { return broken{mutex{new(sync.Mutex), 0}}, nil }
	if _, err := (Contest{Clients: 1, Keys: 1, Duration: time.Millisecond}).Run(open); err == nil || !strings.Contains(err.Error(), "unlock: gone") {
		t.Error(err)
	}
}
