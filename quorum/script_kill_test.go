package quorum

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lockproxy/quorum/vote"
)

func TestOfTheAnswersToScriptKillTheOneThatMattersMostIsTold(t *testing.T) {
	var ms []*master
	for i := range 3 {
		ms = append(ms, &master{Master: newFake(i)})
	}
	notBusy, unkillable := errors.New("NOTBUSY No scripts in execution right now."), errors.New("UNKILLABLE Sorry")
	for _, c := range []struct {
		errs []error
		want string
	}{
		{[]error{notBusy, nil, unkillable}, ""},
		{[]error{notBusy, notBusy, syscall.ECONNREFUSED}, "NOTBUSY"},
		{[]error{notBusy, unkillable, notBusy}, "UNKILLABLE"},
		{[]error{unkillable, notBusy, syscall.ECONNREFUSED}, "UNKILLABLE"},
		{[]error{syscall.ECONNREFUSED, syscall.ECONNREFUSED, errors.New("NOPERM no")},
			"NOQUORUM 0 of 3 masters answered, 2 needed: m1 connection refused; m2 connection refused; m3 NOPERM no"},
	} {
		err := mergeKills(ms, c.errs)
		if c.want == "" && err == nil {
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.errs, err, c.want)
		}
	}
}

func TestNoScriptIsKilledByAnEngineThatIsClosed(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.Close()
		c := make(chan error, 1)
		w.KillScripts(func(err error) { c <- err })
		if err := <-c; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// A script whose votes were split is run again after a pause: that is not left to run when nobody is there any more.
func TestCloseEndsAScriptThatWaitsToBeRunAgain(t *testing.T) {
	one := func(v vote.Value) bool { return v.Kind == vote.IntValue && v.Int == 1 }
	inWorld(t, 3, func(w *world) {
		s := NewScript("return 1")
		for i, f := range w.fakes { // one grants, each of the others refuses
			f.vote(map[string]any{s.wrapped.text: []any{fmt.Sprintf(":%d;", 1-min(i, 1)), ""}})
		}
		const runs = 20
		var ended atomic.Int32
		for i := range runs {
			w.Run(RunRequest{Script: s, Keys: []string{fmt.Sprint(i)}, Rule: vote.Rule{Merge: vote.Taking, Granted: one}}, func(Ran) { ended.Add(1) })
		}
		time.Sleep(2*time.Millisecond + time.Microsecond) // there and back: all have lost, and pause for up to 4 ms
		w.Close()
		if n := ended.Load(); n != runs {
			t.Errorf("%d of %d have ended", n, runs)
		}
	})
}
