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

func TestAMasterThatAnswersWithErrorsIsLoggedOnceAMinuteForEachCode(t *testing.T) {
	var log bytes.Buffer
	inWorldWith(t, 3, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(w *world) {
		for _, refusal := range []string{"ERR unknown command", "OOM of secret", "MISCONF of secret"} {
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
		if told != 6 || strings.Count(log.String(), "error=OOM\n") != 3 || strings.Contains(log.String(), "secret") {
			t.Errorf("%d lines in five minutes, want 3 of each with the code alone:\n%s", told, log.String())
		}
	})
}

// A second fault that comes within a minute of the first is news.
func TestAnotherErrorOfAMasterIsLoggedAtOnce(t *testing.T) {
	var log bytes.Buffer
	inWorldWith(t, 3, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(w *world) {
		for range 3 { // two in turn, as where each command is refused in its own way
			for _, refusal := range []string{"MISCONF no disk", "OOM no memory"} {
				f := w.fakes[0]
				f.mu.Lock()
				f.fail["SET"] = refusal
				f.mu.Unlock()
				w.acquire(key, "mine", time.Second)
				time.Sleep(time.Second)
			}
		}
		if text := log.String(); strings.Count(text, "error=MISCONF\n") != 1 || strings.Count(text, "error=OOM\n") != 1 {
			t.Errorf("want each once:\n%s", text)
		}
	})
}

// Where a master does not let its canary or clock be read, or its horizon be extended, no vote counts, though it answers all else: it
// says why, and it is the error that counts.
func TestWhyAMasterDoesNotVouchIsTold(t *testing.T) {
	for question, want := range map[string]string{
		"MGET":    "did not show its canary: answered NOPERM this user",
		"TIME":    "did not tell the time: answered NOPERM this user",
		"horizon": "has no horizon: answered NOPERM this user",
	} {
		t.Run(question, func(t *testing.T) {
			var log bytes.Buffer
			inWorldWith(t, 3, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(w *world) {
				for _, f := range w.fakes {
					f.mu.Lock()
					f.fail[question] = "NOPERM this user has no permissions"
					f.mu.Unlock()
				}
				if a := w.acquire(key, "mine", minute); a.Err == nil || !strings.Contains(a.Err.Error(), want) {
					t.Errorf("%v, want %q", a.Err, want)
				}
				w.settle()
				for _, m := range w.Masters() {
					if got := m.Votes.Failures; got != (Failures{FailedError: 1}) {
						t.Errorf("%s: %+v, want one error", m.Addr, got)
					}
				}
				if told := strings.Count(log.String(), "error=NOPERM\n"); told != 3 {
					t.Errorf("%d lines, want one of each master:\n%s", told, log.String())
				}
			})
		})
	}
}

// A permission that a script lacks is told without the code, by each version in words of its own.
func TestAPermissionThatScriptsLackIsLogged(t *testing.T) {
	for version, refusal := range map[string]string{
		"6.2": "ERR Error running script (call to f_0): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand",
		"7.0": "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: 0, on @user_script:1.",
		"7.4": "ERR ACL failure in script: User locks has no permissions to run the 'get' command script: 0, on @user_script:1.",
	} {
		t.Run(version, func(t *testing.T) {
			var log bytes.Buffer
			inWorldWith(t, 3, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(w *world) {
				f := w.fakes[0]
				f.mu.Lock()
				f.fail["SET"] = refusal
				f.mu.Unlock()
				w.acquire(key, "mine", minute)
				w.settle()
			})
			if strings.Count(log.String(), "error=NOPERM\n") != 1 {
				t.Errorf("want one line:\n%s", log.String())
			}
		})
	}
}
