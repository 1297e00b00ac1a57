package script

import (
	"math"
	"testing"
	"time"
)

const (
	releaseText = `if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end`
	extendText  = "if redis.call('get',KEYS[1]) == ARGV[1] then\nreturn redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end"
	secondsText = `if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('expire',KEYS[1],tonumber(ARGV[2])) else return 0 end`
	expireText  = `if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('expire',KEYS[1],ARGV[2]) else return 0 end`
	acquireText = `return redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2])`
	chooseText  = `if redis.call('get',KEYS[1]) ~= ARGV[1] then return 0 end local t = ARGV[2]
		if ARGV[3] == '0' then t = t + redis.call('pttl',KEYS[1]) end redis.call('pexpire',KEYS[1],t) return 1`
	againText = `if redis.call('get',KEYS[1]) == ARGV[1] then redis.call('pexpire',KEYS[1],ARGV[2]) return redis.call('get',KEYS[1]) == ARGV[1] end return false`
	loopText  = `for _, k in ipairs(KEYS) do if redis.call('get',k) == ARGV[1] then return redis.call('del',k) end end return 0`
)

func TestBindFillsInTheArguments(t *testing.T) {
	keys := []string{"k"}
	for _, c := range []struct {
		text string
		args []string
		want Call
	}{
		{releaseText, []string{"me"}, Call{Op: Release, Key: "k", Token: "me"}},
		{releaseText, []string{"", "unused"}, Call{Op: Release, Key: "k"}},
		{extendText, []string{"me", "1500"}, Call{Op: Extend, Key: "k", Token: "me", TTL: 1500 * time.Millisecond}},
		{secondsText, []string{"me", "30"}, Call{Op: Extend, Key: "k", Token: "me", TTL: 30 * time.Second}},
		{secondsText, []string{"me", " 3e1 "}, Call{Op: Extend, Key: "k", Token: "me", TTL: 30 * time.Second}},
		{secondsText, []string{"me", "0x1e"}, Call{Op: Extend, Key: "k", Token: "me", TTL: 30 * time.Second}},
		{acquireText, []string{"\x00\xff", "1"}, Call{Op: Acquire, Key: "k", Token: "\x00\xff", TTL: time.Millisecond}},
		{acquireText, []string{"me", "9000000000000000000"}, Call{Op: Acquire, Key: "k", Token: "me", TTL: math.MaxInt64 / 1_000_000 * time.Millisecond}},
		{chooseText, []string{"me", "10", "0"}, Call{Op: Extend, Key: "k", Token: "me", TTL: 10 * time.Millisecond, Add: true}},
		{chooseText, []string{"me", "10", "1"}, Call{Op: Extend, Key: "k", Token: "me", TTL: 10 * time.Millisecond}},
		{chooseText, []string{"me", "10", "00"}, Call{Op: Extend, Key: "k", Token: "me", TTL: 10 * time.Millisecond}},
		{loopText, []string{"me"}, Call{Op: Release, Key: "k", Token: "me"}},
		{`return redis.call('setnx',KEYS[1],ARGV[1])`, []string{"me"}, Call{Op: Acquire, Key: "k", Token: "me", Forever: true}},
		{`return redis.call('get',KEYS[1])`, nil, Call{Op: Query, Key: "k"}},
		{`return redis.call('get',KEYS[1]) == ARGV[1]`, []string{"me"}, Call{Op: Query, Key: "k", Token: "me", compares: true}},
		// EXPIRE deletes then, and answers 1.
		{extendText, []string{"me", "0"}, Call{Op: Release, Key: "k", Token: "me"}},
		{secondsText, []string{"me", "-7"}, Call{Op: Release, Key: "k", Token: "me"}},
	} {
		got, err := recognise(c.text, "SHA").Bind(keys, c.args)
		got.Alien = Alien{}
		if err != nil || got != c.want {
			t.Errorf("%q: got %+v, %v; want %+v", c.args, got, err, c.want)
		}
	}
}

func TestBindRefusesWhatRedisWould(t *testing.T) {
	const (
		notInteger = "ERR value is not an integer or out of range script: SHA, on @user_script:"
		invalid    = "ERR invalid expire time in "
	)
	one, me := []string{"k"}, "me"
	for _, c := range []struct {
		text       string
		keys, args []string
		want       string
	}{
		{extendText, one, []string{me, "soon"}, notInteger + "2."},
		{extendText, one, []string{me, ""}, notInteger + "2."},
		{extendText, one, []string{me, "1.5"}, notInteger + "2."},
		{extendText, one, []string{me, "007"}, notInteger + "2."},
		{extendText, one, []string{me, "+7"}, notInteger + "2."},
		{extendText, one, []string{me, " 7"}, notInteger + "2."},
		{extendText, one, []string{me, "-0"}, notInteger + "2."},
		{extendText, one, []string{me, "9223372036854775808"}, notInteger + "2."},
		{secondsText, one, []string{me, "1.5"}, notInteger + "1."},
		{secondsText, one, []string{me, "1e300"}, notInteger + "1."},
		{secondsText, one, []string{me, "soon"}, "ERR script SHA: ARGV[2] is not a number"},
		{secondsText, one, []string{me, "nan"}, "ERR script SHA: ARGV[2] is not a number"},
		{extendText, one, []string{me, "9223372036854775807"}, invalid + "'pexpire' command script: SHA, on @user_script:2."},
		{acquireText, one, []string{me, "0"}, invalid + "'set' command script: SHA, on @user_script:1."},
		{acquireText, one, []string{me, "-1"}, invalid + "'set' command script: SHA, on @user_script:1."},
		{secondsText, one, []string{me, "-9007199254740993000"}, notInteger + "1."},
		{expireText, one, []string{me, "-9223372036854776"}, invalid + "'expire' command script: SHA, on @user_script:1."},
		{"if redis.call('get',KEYS[1]) == ARGV[1] then redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[2]) return 1 end return 0", one,
			[]string{me, "0"}, invalid + "'set' command script: SHA, on @user_script:1."},
		{againText, one, []string{me, "0"}, invalid + "'pexpire' command script: SHA, on @user_script:1."},
		{chooseText, one, []string{me, "-1", "0"}, invalid + "'pexpire' command script: SHA, on @user_script:2."},
		{releaseText, nil, []string{me}, "ERR script SHA needs 1 keys and 1 arguments, got 0 and 1"},
		{releaseText, one, nil, "ERR script SHA needs 1 keys and 1 arguments, got 1 and 0"},
		{chooseText, one, []string{me, "10"}, "ERR script SHA needs 1 keys and 3 arguments, got 1 and 2"},
		{loopText, []string{"k", "l"}, []string{me}, "ERR script SHA was called with 2 keys; it can be run by quorum with one key only"},
	} {
		got, err := recognise(c.text, "SHA").Bind(c.keys, c.args)
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: got %+v, %v; want %s", c.args, got, err, c.want)
		}
		if got.Op == Extend && (got.Key != "k" || got.Token != me) {
			t.Errorf("%q: got %+v, want whose the extension is", c.args, got)
		}
	}
}

func TestAQueryIsAnsweredFromWhatTheKeyHolds(t *testing.T) {
	m := recognise(`local v = redis.call('get',KEYS[1]) if v == ARGV[1] then return {v, redis.call('ttl',KEYS[1])} elseif v then return redis.call('pttl',KEYS[1]) end return v`, "SHA")
	call, err := m.Bind([]string{"k"}, []string{"me"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		exists bool
		value  string
		want   string
	}{
		{true, "me", `["me" 3]`}, // TTL rounds
		{true, "you", "2500"},
		{false, "", "nil"},
	} {
		o := Outcome{Result: call.Result(c.exists, c.value), Value: c.value, TTL: 2500 * time.Millisecond}
		if got := m.Answer(o).describe(); got != c.want {
			t.Errorf("%q: got %s, want %s", c.value, got, c.want)
		}
	}
}

func TestAnswersFallBackToTheNearestResult(t *testing.T) {
	m := recognise(acquireText, "SHA")
	for result, want := range map[Result]string{Done: "+OK", Extended: "+OK", NotMine: "nil", Absent: "nil"} {
		if got := m.Answer(Outcome{Result: result}).describe(); got != want {
			t.Errorf("%d: got %s, want %s", result, got, want)
		}
	}
}
