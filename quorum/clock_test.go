package quorum

import (
	"testing"
	"time"
)

func TestPatienceDoesNotPassWhileTheProcessStandsStill(t *testing.T) {
	var c answerClock
	ms := time.Millisecond
	for _, at := range []instant{10 * ms, 20 * ms, 31 * ms} {
		c.tick(at)
		if got := c.at(at + 5*ms); got != answerTime(at+5*ms) {
			t.Fatalf("at %v it is %v", at+5*ms, got)
		}
	}
	// From 31 ms on it stands still; somebody asks before the tick that comes at 531 ms, and after it.
	if got := c.at(530 * ms); got != answerTime(41*ms) {
		t.Errorf("before the tick: %v", got)
	}
	c.tick(531 * ms)
	if got := c.at(535 * ms); got != answerTime(45*ms) {
		t.Errorf("after the tick: %v", got)
	}
}

func TestAProxyThatStoodStillDoesNotBlameTheMasters(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, f := range w.fakes {
			f.setDelay(80 * time.Millisecond)
		}
		if a := <-w.start(req1("mine", minute)); a.Err == nil {
			t.Errorf("160 ms are more than the masters have: %+v", a)
		}
		w.settle()
		c := w.start(req1("mine", minute))
		time.Sleep(5 * time.Millisecond)
		w.answers.stood.Add(int64(70 * time.Millisecond))
		if a := <-c; a.Lock == nil {
			t.Errorf("70 of them were ours: %+v", a)
		}
	})
}

func TestValidityIsNotMeasuredByPatience(t *testing.T) {
	inWorldWith(t, 3, Config{InstanceTimeout: time.Second, Grace: time.Second}, func(w *world) {
		for _, f := range w.fakes {
			f.setDelay(60 * time.Millisecond)
		}
		w.answers.stood.Add(int64(time.Second))
		if a := w.acquire(key, "mine", 50*time.Millisecond); a.Lock != nil {
			t.Error("granted after its validity was over")
		}
	})
}
