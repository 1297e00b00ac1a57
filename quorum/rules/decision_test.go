package rules

import (
	"testing"
)

// patterns calls f with every Tally that n masters can give.
func patterns(n int, f func(Tally)) {
	for g := 0; g <= n; g++ {
		for r := 0; g+r <= n; r++ {
			for x := 0; g+r+x <= n; x++ {
				f(Tally{Masters: n, Granted: g, Refused: r, Failed: x})
			}
		}
	}
}

// futures calls f with every complete Tally that t can become.
func futures(t Tally, f func(Tally)) {
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
		patterns(n, func(v Tally) {
			if v.Pending() == 0 && (DecideAcquire(v) == Undecided || DecideRelease(v) == Undecided || DecideExtend(v) == Undecided) {
				t.Errorf("%+v: acquire %v, release %v, extend %v", v, DecideAcquire(v), DecideRelease(v), DecideExtend(v))
			}
		})
	}
}

func TestNoLaterVoteOverturnsADecisionAndNoneComesLate(t *testing.T) {
	rules := map[string]func(Tally) Decision{"acquire": DecideAcquire, "release": DecideRelease, "extend": DecideExtend}
	for name, rule := range rules {
		for n := 1; n <= 7; n++ {
			patterns(n, func(v Tally) {
				outcomes := make(map[Decision]bool)
				futures(v, func(f Tally) { outcomes[rule(f)] = true })
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
		patterns(n, func(v Tally) {
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
			if DecideAcquire(v) != acquire || DecideRelease(v) != release || DecideExtend(v) != extend {
				t.Errorf("%+v: %v, %v and %v, want %v, %v and %v", v, DecideAcquire(v), DecideRelease(v), DecideExtend(v), acquire, release, extend)
			}
		})
	}
}

// assignments calls f with every way in which n masters hold a, b or nothing, or b in an older copy, fail, or have not answered.
func assignments(n int, f func(told []Told, t Tally)) {
	kinds := 6
	total := 1
	for range n {
		total *= kinds
	}
	for code := range total {
		t := Tally{Masters: n}
		var told []Told
		for i, c := 0, code; i < n; i, c = i+1, c/kinds {
			switch c % kinds {
			case 0:
				told = append(told, Told{})
			case 1:
				told = append(told, Told{Opinion: Opinion{true, "string", "a"}})
			case 2:
				told = append(told, Told{Opinion: Opinion{true, "string", "b"}})
			case 3:
				told = append(told, Told{Opinion: Opinion{true, "string", "b"}, Old: true})
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
		assignments(n, func(told []Told, v Tally) {
			count := make(map[Opinion]int)
			most, could := 0, 0 // could: with what may be older copies
			for _, s := range told {
				count[s.Opinion]++
				most = max(most, count[s.Opinion])
			}
			for is, n := range count {
				for _, s := range told {
					if s.Old && s.Opinion != is {
						n++
					}
				}
				could = max(could, n)
			}
			got, d := DecideRead(v, told)
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
