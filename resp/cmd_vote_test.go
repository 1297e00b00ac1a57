package resp

import (
	"log/slog"
	"strings"
	"testing"

	"lockproxy/quorum/vote"
	"lockproxy/script"
)

func TestRepliesOfVotedScriptsInBothProtocols(t *testing.T) {
	one := vote.Value{Kind: vote.IntValue, Int: 1}
	list := func(encoded string) vote.Value {
		v, err := vote.ParseValue(encoded)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		reply        vote.Value
		resp2, resp3 string
	}{
		{vote.Value{}, "$-1\r\n", "_\r\n"},
		{one, ":1\r\n", ":1\r\n"},
		{vote.Value{Kind: vote.BulkValue, Text: "a\r\n"}, "$3\r\na\r\n\r\n", "$3\r\na\r\n\r\n"},
		{vote.Value{Kind: vote.StatusValue, Text: "OK"}, "+OK\r\n", "+OK\r\n"},
		{vote.Value{Kind: vote.ErrorValue, Text: "MY error\r\nx\r\n"}, "-MY error  x\r\n", "-MY error  x\r\n"},
		{vote.Value{Kind: vote.TrueValue}, ":1\r\n", "#t\r\n"},
		{vote.Value{Kind: vote.FalseValue}, ":0\r\n", "#f\r\n"},
		{vote.Value{Kind: vote.DoubleValue, Text: "1.5"}, "$3\r\n1.5\r\n", ",1.5\r\n"},
		{vote.Value{Kind: vote.BigNumberValue, Text: "12\r\n"}, "$4\r\n12  \r\n", "(12  \r\n"},
		{vote.Value{Kind: vote.VerbatimValue, Text: "mkd# x"}, "$3\r\n# x\r\n", "=7\r\nmkd:# x\r\n"},
		{list("*2;:1;_"), "*2\r\n:1\r\n$-1\r\n", "*2\r\n:1\r\n_\r\n"},
		{list("~1;:1;"), "*1\r\n:1\r\n", "~1\r\n:1\r\n"},
		{list("%1;:1;:1;"), "*2\r\n:1\r\n:1\r\n", "%1\r\n:1\r\n:1\r\n"},
		{list("*2;*1;$1:a%1;*0;t"), "*2\r\n*1\r\n$1\r\na\r\n*2\r\n*0\r\n:1\r\n", "*2\r\n*1\r\n$1\r\na\r\n%1\r\n*0\r\n#t\r\n"},
	} {
		if got := string(runReply(c.reply).AppendTo(nil, false)); got != c.resp2 {
			t.Errorf("%+v in RESP2: got %q, want %q", c.reply, got, c.resp2)
		}
		if got := string(runReply(c.reply).AppendTo(nil, true)); got != c.resp3 {
			t.Errorf("%+v in RESP3: got %q, want %q", c.reply, got, c.resp3)
		}
	}
}

const unheardOf = "return {KEYS[1], 1}"

func TestAScriptThatNobodyKnowsIsRunByVote(t *testing.T) {
	r := newRig(t, Config{})
	r.engine.reply = vote.Value{Kind: vote.IntValue, Int: 7}
	c := r.dial()
	for _, words := range [][]string{
		{"EVAL", unheardOf, "2", "k", "j", "a", "b"},
		{"EVAL_RO", unheardOf, "2", "k", "j", "a", "b"},
		{"EVAL", unheardOf, "0"},
	} {
		if got := c.ask(words...); got != ":7\r\n" {
			t.Errorf("%q: got %q", words, got)
		}
	}
	if len(r.engine.ran) != 3 {
		t.Fatalf("%d runs", len(r.engine.ran))
	}
	first := r.engine.ran[0]
	if strings.Join(first.Keys, " ") != "k j" || strings.Join(first.Args, " ") != "a b" || first.ReadOnly ||
		first.Rule.Merge != vote.Agreeing {
		t.Errorf("ran %+v", first)
	}
	if !r.engine.ran[1].ReadOnly {
		t.Error("EVAL_RO may write")
	}
}

// A release that is sent with two keys is not the release that was understood, and a read-only one must not delete.
func TestAKnownTextIsRunByVoteWhereItsMeaningDoesNotFit(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	loop := "for i, key in ipairs(KEYS) do if redis.call('get', key) == ARGV[1] then redis.call('del', key) end end return 0"
	for _, words := range [][]string{
		{"EVAL", loop, "2", "k", "j", "t"},
		{"EVAL_RO", releaseText, "1", "k", "t"},
		{"EVAL", releaseText, "0"},
	} {
		before := len(r.engine.ran)
		c.ask(words...)
		if len(r.engine.ran) != before+1 {
			t.Errorf("%q did not run by vote", words)
		}
	}
}

// With two permits a majority of masters may each have room for a third holder.
func TestASemaphoreIsALockIfItHasOnePermit(t *testing.T) {
	log := &logged{}
	r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	const text = "return redis.call('zadd', KEYS[1], ARGV[1], ARGV[2])"
	row, _ := r.server.scripts.Load(text)
	r.server.scripts = script.NewCache(10, script.Family{SHA: row.SHA, Kind: script.Takes, Permits: 2, Library: "own"})
	c := r.dial()
	for _, args := range [][]string{{"5", "2"}, {"1", "0"}, {"1", "01"}, {"1"}, {}} {
		got := c.ask(append([]string{"EVAL", text, "1", "k"}, args...)...)
		if !strings.HasPrefix(got, "-ERR script "+row.SHA+" (own) is refused: its count would diverge") {
			t.Errorf("%q: got %q", args, got)
		}
	}
	if len(r.engine.ran) > 0 {
		t.Errorf("ran %+v", r.engine.ran)
	}
	if n := strings.Count(log.String(), "a script was refused: masters cannot vote on it"); n != 1 || !strings.Contains(log.String(), row.SHA) {
		t.Errorf("logged %d times: %s", n, log)
	}
	c.ask("EVALSHA", row.SHA, "1", "k", "5", "1")
	if len(r.engine.ran) != 1 || r.engine.ran[0].Rule.Merge != vote.Taking {
		t.Errorf("with one permit it is no lock: ran %+v", r.engine.ran)
	}
}

// As that of Redisson's RLock: masters that differ by a hold that was counted once more do not grant together.
func TestOfALockThatCountsHoldsTheHolderIsTold(t *testing.T) {
	r := newRig(t, Config{})
	const take = "if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then " +
		"redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; return redis.call('pttl', KEYS[1]);"
	r.dial().ask("EVAL", take, "1", "k", "30000", "me")
	if len(r.engine.ran) != 1 || r.engine.ran[0].Rule.Merge != vote.Taking || r.engine.ran[0].Rule.Field != "me" {
		t.Errorf("ran %+v", r.engine.ran)
	}
}

// As MediaWiki's RedisLockManager, whose locks are at keys that it derives from its KEYS. It takes the error for a lock that somebody
// else has.
func TestAScriptThatMastersFindNotFitForAVoteIsLogged(t *testing.T) {
	log := &logged{}
	r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	const refused = "ERR script 28ec cannot be run by quorum: it "
	for says, told := range map[string]string{
		"uses the key 's3cret', which is not one of its KEYS":  "uses a key that is not one of its KEYS",
		"calls 'scan', which blocks, scans, administers, or …": "calls 'scan', which blocks, scans, administers, or …",
	} {
		r.engine.reply = vote.Value{Kind: vote.ErrorValue, Text: refused + says}
		c := r.dial()
		for range 2 {
			if got := c.ask("EVAL", unheardOf, "1", "k"); got != "-"+refused+says+"\r\n" {
				t.Fatalf("got %q", got)
			}
		}
		line := `level=WARN msg="a script was refused: masters cannot vote on it" client=` + c.LocalAddr().String()
		if n := strings.Count(log.String(), line); n != 1 || !strings.Contains(log.String(), refused+told+`"`) {
			t.Errorf("logged %d times: %s", n, log)
		}
		r.tellAgain("a script was refused: masters cannot vote on it")
	}
	if strings.Contains(log.String(), "s3cret") {
		t.Errorf("what may be a token is logged: %s", log)
	}
}

func TestAScriptThatNobodyKnowsIsLoggedOnce(t *testing.T) {
	var log logged
	r := newRig(t, Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	const known = "return redis.call('incr', KEYS[1])"
	unknown, _ := r.server.scripts.Load(unheardOf)
	row, _ := r.server.scripts.Load(known)
	r.server.scripts = script.NewCache(10, script.Family{SHA: row.SHA, Kind: script.Takes})
	c := r.dial()
	for _, text := range []string{unheardOf, known, releaseText, unheardOf} {
		c.ask("EVAL", text, "1", "k", "t")
	}
	if got := log.String(); strings.Count(got, "nobody knows") != 1 || !strings.Contains(got, "sha1="+unknown.SHA) {
		t.Errorf("got %s", got)
	}
}

func TestALockThatAScriptTookIsGivenBackIfItsReplyComesTooLate(t *testing.T) {
	r := newRig(t, Config{})
	e := r.engine
	e.late, e.locking = true, true
	if got, want := r.dial().ask("EVAL", unheardOf, "1", "k"), "-NOQUORUM no validity is left of the TTL: it is too short, or the masters answered too late\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !e.onlyLock(t).isAbandoned() {
		t.Error("the lock is kept")
	}
}

func TestWhichRepliesGrant(t *testing.T) {
	integer := func(n int64) vote.Value { return vote.Value{Kind: vote.IntValue, Int: n} }
	null, ok := vote.Value{}, vote.Value{Kind: vote.StatusValue, Text: "OK"}
	list := func(text string) vote.Value {
		v, err := vote.ParseValue(text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		grant   script.Grant
		yes, no []vote.Value
		late    vote.Value
	}{
		{script.GrantNil, []vote.Value{null}, []vote.Value{integer(0), integer(1), ok}, integer(1)},
		{script.GrantNotNil, []vote.Value{integer(0), ok}, []vote.Value{null}, null},
		{script.GrantOK, []vote.Value{ok, {Kind: vote.BulkValue, Text: "OK"}}, []vote.Value{null, integer(1)}, null},
		{script.GrantPositive, []vote.Value{integer(1), integer(9)}, []vote.Value{integer(0), integer(-1), null, ok}, integer(0)},
		{script.GrantKeys, []vote.Value{integer(2)}, []vote.Value{integer(0), integer(1), null}, integer(0)},
		{script.GrantFirst, []vote.Value{list("*1;:1;"), list("*2;:1;:-5;")},
			[]vote.Value{list("*0;"), list("*2;:0;:1;"), list("*2;:-1;:9;"), list("*2;*1;:1;:1;"), integer(1), null}, list("*1;:0;")},
	} {
		granted, late := grants(c.grant, 2), lateReply(c.grant)
		for _, v := range c.yes {
			if !granted(v) {
				t.Errorf("%v: %+v does not grant", c.grant, v)
			}
		}
		for _, v := range append(c.no, late) {
			if granted(v) {
				t.Errorf("%v: %+v grants", c.grant, v)
			}
		}
		if late.Kind != c.late.Kind || late.Int != c.late.Int {
			t.Errorf("%v: late is %+v", c.grant, late)
		}
	}
}
