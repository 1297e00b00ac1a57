package quorum

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestFailedVotesAreCountedByCause(t *testing.T) {
	for kind, fault := range map[FailureKind]func(w *world, f *fake){
		FailedLate:       func(_ *world, f *fake) { f.stall() },
		FailedConnection: func(w *world, f *fake) { f.leave(); w.settle() },
		FailedError: func(_ *world, f *fake) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.fail["SET"] = "OOM command not allowed when used memory > 'maxmemory'."
		},
		FailedForgot: func(_ *world, f *fake) { f.flush() },
		FailedQuarantined: func(w *world, f *fake) {
			w.acquire("another", "mine", minute) // else there is nothing that it can have forgotten
			f.flush()
			w.settle()
		},
		FailedClock: func(_ *world, f *fake) { f.step(minute) },
	} {
		inWorld(t, 3, func(w *world) {
			fault(w, w.fakes[0])
			if a := w.acquire(key, "mine", minute); a.Lock == nil {
				t.Fatalf("%v: not granted: %+v", kind, a)
			}
			w.settle()
			got, want := w.Masters()[0].Votes, Failures{}
			want[kind] = 1
			if got.Failures != want || got.Failed != 1 {
				t.Errorf("%v: %+v", kind, got)
			}
		})
	}
}

func TestAMasterThatAnswersWithErrorsIsLoggedOnceAMinute(t *testing.T) {
	var log bytes.Buffer
	inWorldWith(t, 3, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(w *world) {
		for _, refusal := range []string{"ERR unknown command", "OOM of secret"} {
			f := w.fakes[0]
			f.mu.Lock()
			f.fail["SET"] = refusal
			f.mu.Unlock()
			for range 150 {
				w.acquire(key, "mine", time.Second)
				time.Sleep(time.Second)
			}
		}
		told := strings.Count(log.String(), `msg="answers with an error: its votes fail" master=`)
		if told != 3 || !strings.Contains(log.String(), "error=OOM\n") || strings.Contains(log.String(), "secret") {
			t.Errorf("%d lines in two and a half minutes, want 3 with the code alone:\n%s", told, log.String())
		}
	})
}
