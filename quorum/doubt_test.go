package quorum

import "testing"

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
