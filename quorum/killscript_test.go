package quorum

import (
	"errors"
	"strings"
	"syscall"
	"testing"
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
