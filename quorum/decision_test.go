package quorum

import (
	"errors"
	"testing"
)

// patterns calls f with every tally that n masters can give.
func patterns(n int, f func(tally)) {
	for g := 0; g <= n; g++ {
		for r := 0; g+r <= n; r++ {
			for x := 0; g+r+x <= n; x++ {
				f(tally{Masters: n, Granted: g, Refused: r, Failed: x})
			}
		}
	}
}

// futures calls f with every complete tally that t can become.
func futures(t tally, f func(tally)) {
	if t.Pending() == 0 {
		f(t)
		return
	}
	for _, v := range []Vote{Granted, Refused, Failed} {
		next := t
		next.Add(v)
		futures(next, f)
	}
}

func TestEveryRoundEndsWithADecision(t *testing.T) {
	for n := 1; n <= 7; n++ {
		patterns(n, func(v tally) {
			if v.Pending() == 0 && (decideAcquire(v) == Undecided || decideRelease(v) == Undecided || decideExtend(v) == Undecided) {
				t.Errorf("%+v: acquire %v, release %v, extend %v", v, decideAcquire(v), decideRelease(v), decideExtend(v))
			}
		})
	}
}

func TestNoLaterVoteOverturnsADecisionAndNoneComesLate(t *testing.T) {
	rules := map[string]func(tally) Decision{"acquire": decideAcquire, "release": decideRelease, "extend": decideExtend}
	for name, rule := range rules {
		for n := 1; n <= 7; n++ {
			patterns(n, func(v tally) {
				outcomes := make(map[Decision]bool)
				futures(v, func(f tally) { outcomes[rule(f)] = true })
				now := rule(v)
				if now != Undecided && (len(outcomes) != 1 || !outcomes[now]) {
					t.Errorf("%s %+v: decided %v, but it can still become %v", name, v, now, outcomes)
				}
				if now == Undecided && len(outcomes) == 1 {
					t.Errorf("%s %+v: undecided, although only %v is left", name, v, outcomes)
				}
			})
		}
	}
}

// The model says in the plainest words what a complete set of votes means.
func TestDecisionsMeanWhatTheyShould(t *testing.T) {
	for n := 1; n <= 7; n++ {
		patterns(n, func(v tally) {
			if v.Pending() > 0 {
				return
			}
			majority := func(k int) bool { return 2*k > n }
			var acquire, release, extend Decision
			switch {
			case majority(v.Granted):
				acquire, release, extend = Won, Won, Won
			case !majority(v.Granted + v.Refused):
				acquire, release, extend = Unanswered, Unanswered, Unanswered
			default:
				acquire, release, extend = Lost, Lost, Lost
				if v.Granted > 0 && majority(v.Granted+v.Failed) {
					release, extend = Won, Unanswered
				}
			}
			if decideAcquire(v) != acquire || decideRelease(v) != release || decideExtend(v) != extend {
				t.Errorf("%+v: %v, %v and %v, want %v, %v and %v", v, decideAcquire(v), decideRelease(v), decideExtend(v), acquire, release, extend)
			}
		})
	}
}

// assignments calls f with every way in which n masters hold a, b or nothing, or b in an older copy, fail, or have not answered.
func assignments(n int, f func(told []sighting, t tally)) {
	kinds := 6
	total := 1
	for range n {
		total *= kinds
	}
	for code := range total {
		t := tally{Masters: n}
		var told []sighting
		for i, c := 0, code; i < n; i, c = i+1, c/kinds {
			switch c % kinds {
			case 0:
				told = append(told, sighting{})
			case 1:
				told = append(told, sighting{opinion: opinion{true, "string", "a"}})
			case 2:
				told = append(told, sighting{opinion: opinion{true, "string", "b"}})
			case 3:
				told = append(told, sighting{opinion: opinion{true, "string", "b"}, old: true})
			case 4:
				t.Add(Failed)
			}
		}
		t.Granted = len(told)
		f(told, t)
	}
}

func TestAReadSaysWhatAQuorumHoldsAndNothingElse(t *testing.T) {
	for n := 1; n <= 6; n++ {
		assignments(n, func(told []sighting, v tally) {
			count := make(map[opinion]int)
			most, could := 0, 0 // could: with what may be older copies
			for _, s := range told {
				count[s.opinion]++
				most = max(most, count[s.opinion])
			}
			for is, n := range count {
				for _, s := range told {
					if s.old && s.opinion != is {
						n++
					}
				}
				could = max(could, n)
			}
			got, d := decideRead(v, told)
			q := Quorum(n)
			switch d {
			case Won:
				if count[got] < q {
					t.Errorf("%v %+v: %v has no quorum", told, v, got)
				}
			case Lost:
				if could+v.Failed+v.Pending() >= q {
					t.Errorf("%v %+v: said that nobody can hold it", told, v)
				}
			case Unanswered:
				if most >= q || v.Answered() >= q && could+v.Failed < q {
					t.Errorf("%v %+v: the answer was known", told, v)
				}
			case Undecided:
				if v.Pending() == 0 || most >= q || could+v.Failed+v.Pending() < q || v.Failed > n-q {
					t.Errorf("%v %+v: undecided for nothing", told, v)
				}
			}
		})
	}
}

// The end of a long cause is cut off, and Redis 6 has the error itself there.
func TestTheCauseOfAScriptsErrorIsThatOfItsCommand(t *testing.T) {
	for text, want := range map[string]string{
		"ERR Error running script (call to f_0e0438139bab1f654da0fe7f2f001ba8b2f869b8): @user_script:1: -OOM command not allowed":                                                            "answered OOM command not allowed",
		"ERR Error running script (call to f_d223ed8c7345b684e8ed044ed472601f536fa58b): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.":           "answered OOM command not allowed when used memory > 'maxmemory'.",
		"ERR Error running script (call to f_fd758d1589d044dd850a6f05d52f2eefd27f033f): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand": "answered The user executing the script can't run this command or subcommand",
		"OOM command not allowed: -x": "answered OOM command not allowed: -x",
	} {
		if got := failureText(errors.New(text)); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
