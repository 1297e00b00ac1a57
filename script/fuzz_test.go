package script

import (
	"strings"
	"testing"
	"time"
)

// seeds are texts near to what is recognised.
var seeds = []string{
	releaseText, extendText, secondsText, acquireText, chooseText, againText, loopText,
	`local r = redis.call if not r('get',KEYS[1]) then return {ok='OK'} end -- [[ x ]]`,
	`return {redis.call("get", KEYS[1]), redis.call("pttl", KEYS[1])}`,
	"local a = [==[\n]] ]==] return redis.error_reply(a) --[[",
	`if tonumber(ARGV[2]) >= 1.5e3 then return #KEYS else return -(0x10 / 4) % 3 end`,
	`return "\065\n\"" .. '\'' .. [[x]]`,
}

func FuzzRecognise(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, "0")
	}
	f.Fuzz(func(t *testing.T, text, arg string) {
		var m *Meaning
		if d := quickest(5*time.Second, func() { m = recognise(text, "SHA") }); d > 5*time.Second {
			t.Fatalf("took %v", d)
		}
		if m == nil {
			return
		}
		checkBind(t, m, arg)
	})
}

// checkBind binds arguments and makes sure that what comes out can be carried out.
func checkBind(t *testing.T, m *Meaning, arg string) {
	keys, args := make([]string, m.keys), make([]string, m.args)
	for i := range args {
		args[i] = arg
	}
	call, err := m.Bind(keys, args)
	if err != nil {
		if !strings.HasPrefix(err.Error(), "ERR ") || strings.Contains(err.Error(), "no case fits") {
			t.Fatalf("error %q", err)
		}
		return
	}
	if key, ok := m.Key(keys, args); !ok || key != call.Key {
		t.Fatalf("the key is %q, not %q", key, call.Key)
	}
	limited := call.Op == Extend || call.Op == Acquire || call.Op == AcquireOrExtend
	switch {
	case call.Op < Release || call.Op > Query,
		call.TTL < 0,
		limited && call.Forever != (call.TTL == 0),
		!limited && (call.TTL != 0 || call.Forever || call.Add),
		call.Add && call.Op != Extend:
		t.Fatalf("cannot be carried out: %+v", call)
	}
	for r := range results {
		if v := m.Answer(Outcome{Result: r, Value: "v", TTL: time.Second}); !v.constant() {
			t.Fatalf("answer %+v", v)
		}
	}
}

// A shape is the same for what the lexer cannot tell apart, and does not depend on white space around a text.
func FuzzShape(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := shapeOf(text)
		if !ok || len(text) > maxRecognised-100 {
			return
		}
		for _, variant := range []string{" \t\n" + text + "\n", "-- comment\n" + text + "\n--[[ comment ]] ", text + "\n"} {
			if got, ok := shapeOf(variant); !ok || got != id {
				t.Fatalf("%q has shape %s, %q has %s", text, id, variant, got)
			}
		}
	})
}

// The costliest texts there are: as long as allowed, with as many questions as allowed, each asked at the end.
func TestRecognisingTakesBoundedTime(t *testing.T) {
	questions := ""
	for i := range questionsMax {
		questions += strings.Repeat(" ", i) + "if ARGV[" + string(rune('2'+i)) + "] == 'x' then redis.call('get',KEYS[1]) end "
	}
	for _, text := range []string{
		fill("local v = redis.call('get',KEYS[1]) == ARGV[1] ", questions+"return 1"),
		fill("local v=1+1*2 ", questions+"return 1"),
		fill("if(", ""), fill("(", ""), fill("[=", ""), fill("--[[]]", ""), fill("{", ""), fill("not ", ""),
		fill("do ", ""), fill("if v then ", ""), fill("'\\1'..", ""), fill("a.", ""), fill("local v=1+1 ", "return 1"+strings.Repeat("+1", 1000)),
	} {
		if d := quickest(time.Second, func() {
			recognise(text, "SHA")
			shapeOf(text)
			FindString(text, func(string) bool { return false })
		}); d > time.Second {
			t.Errorf("took %v: %.40s", d, text)
		}
	}
}

// quickest times f, again if it took too long: the machine may have been busy with something else.
func quickest(max time.Duration, f func()) time.Duration {
	best := time.Hour
	for range 5 {
		start := time.Now()
		f()
		if best = min(best, time.Since(start)); best <= max {
			break
		}
	}
	return best
}

func fill(part, end string) string {
	return strings.Repeat(part, (maxRecognised-len(end))/len(part)) + end
}
