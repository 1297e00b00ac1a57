package quorum

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func (w *world) ask(unordered int, command ...string) Asked {
	c := make(chan Asked, 1)
	w.Ask(AskRequest{Key: Key{Name: command[1]}, Command: command, Unordered: unordered}, func(a Asked) { c <- a })
	return <-c
}

func TestAskTellsTheAnswerOfAQuorum(t *testing.T) {
	none := errors.New("")
	for _, c := range []struct {
		replies   []any // none: the master is down
		unordered int
		want      string
	}{
		{[]any{int64(1), int64(1), int64(0)}, 0, "1"},
		{[]any{int64(1), "1", "1"}, 0, "1"},
		{[]any{nil, nil, "x"}, 0, "<nil>"},
		{[]any{"a", "b", "c"}, 0, "<nil>"},
		{[]any{"a", "a", none}, 0, "a"},
		{[]any{"a", "b", none}, 0, "no quorum"},
		{[]any{"a", none, none}, 0, "no quorum"},
		{[]any{[]any{"a", "1", "b", "2"}, []any{"b", "2", "a", "1"}, []any{"a", "2", "b", "1"}}, 2, "[a 1 b 2]"},
		{[]any{[]any{"a", "1", "b", "2"}, []any{"b", "2", "a", "1"}, []any{"c"}}, 0, "<nil>"},
		{[]any{[]any{"a", "b"}, []any{"b", "a"}, []any{}}, 1, "[a b]"},
		{[]any{[]any{"ab"}, []any{"a", "b"}, []any{"$1 a"}}, 1, "<nil>"},
		{[]any{errors.New("WRONGTYPE x"), errors.New("WRONGTYPE x"), int64(1)}, 0, "wrong type"},
		{[]any{errors.New("ERR x"), errors.New("OOM x"), int64(1)}, 0, "no quorum"},
	} {
		inWorld(t, 3, func(w *world) {
			for i, reply := range c.replies {
				switch err, isErr := reply.(error); {
				case reply == none:
					w.fakes[i].die()
				case isErr:
					w.fakes[i].answer("HGET", nil, err.Error())
				default:
					w.fakes[i].answer("HGET", reply, "")
				}
			}
			w.fakes[0].setDelay(0) // so that the first master's order of items is the one that is told
			a := w.ask(c.unordered, "HGET", key)
			got := fmt.Sprint(a.Reply)
			var no *NoQuorum
			switch {
			case errors.As(a.Err, &no):
				got = "no quorum"
			case errors.Is(a.Err, ErrWrongType):
				got = "wrong type"
			}
			if got != c.want {
				t.Errorf("%v: %q, want %q", c.replies, got, c.want)
			}
		})
	}
}

// What a master in quarantine has counts, what it has not proves nothing.
func TestAskDoesNotBelieveTheAbsenceOnAMasterInQuarantine(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "mine", minute)
		w.fakes[0].die()
		w.fakes[0].comeBack()
		w.fakes[1].die()
		w.settle()
		w.expectStates("q.c")
		for _, reply := range []any{nil, int64(0), []any{}, []any{"a", nil}} {
			for _, f := range w.fakes {
				f.answer("HGET", reply, "")
			}
			if a := w.ask(0, "HGET", key); a.Err == nil || !strings.Contains(a.Err.Error(), "quarantined") {
				t.Errorf("%v: %+v", reply, a)
			}
		}
		for _, f := range w.fakes {
			f.answer("HGET", "1", "")
		}
		if a := w.ask(0, "HGET", key); a.Reply != "1" {
			t.Errorf("%+v", a)
		}
	})
}

func TestExecDoesNotTakeWhatAMasterInQuarantineMayHaveForgotten(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.acquire(key, "mine", minute)
		w.fakes[0].die()
		w.fakes[0].comeBack()
		w.fakes[1].die()
		w.settle()
		w.expectStates("q.c")
		old, x := w.getSet("free", "x", minute)
		if x.Err == nil || !strings.Contains(x.Err.Error(), "quarantined") {
			t.Errorf("%q, %+v", old, x)
		}
	})
}

// answer steers what the fake answers to a command on hashes: a reply, or an error if that is not empty.
func (f *fake) answer(command string, reply any, fault string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fault != "" {
		f.fail[command] = fault
		return
	}
	f.hashes = map[string]any{command: reply}
}
