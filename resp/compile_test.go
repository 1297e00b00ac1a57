package resp

import (
	"errors"
	"strings"
	"testing"

	"lockproxy/quorum/vote"
)

func TestTheMastersCompileATextOnce(t *testing.T) {
	r := newRig(t, Config{})
	r.engine.reply = vote.Value{Kind: vote.IntValue, Int: 7}
	arrived := r.engine.hold()
	c := r.dial()
	c.send(words("EVAL return{} 0") + words("PING"))
	for _, want := range []string{"compile", "run"} {
		if got := <-arrived; got != want { // PING does not overtake
			t.Fatalf("%s came to the engine, want %s", got, want)
		}
		r.engine.release(0)
	}
	c.want(":7\r\n+PONG\r\n")
	c.send(words("EVAL return{} 0") + words("SCRIPT LOAD return{}") + words("SCRIPT LOAD "+recognisedText))
	if got := <-arrived; got != "run" {
		t.Errorf("%s came to the engine, want run alone", got)
	}
	r.engine.release(0)
	c.want(":7\r\n$40\r\n")
	if len(arrived) > 0 {
		t.Errorf("then %s", <-arrived)
	}
}

const recognisedText = "return(redis.call('get',KEYS[1]))"

func TestWhatIsNotLuaIsRefusedInTheMastersWordsAndNotKept(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	const refusal = "-ERR Error compiling script (new function): user_script:1: " + notLua + "\r\n"
	for range 2 {
		for _, command := range [][]string{{"EVAL", notLua, "0"}, {"SCRIPT", "LOAD", notLua}, {"EVAL_RO", notLua, "1", "k"}} {
			if got := c.ask(command...); got != refusal {
				t.Errorf("%q: got %q", command, got)
			}
		}
	}
	if len(r.engine.ran) > 0 {
		t.Error("it was run")
	}
	r.engine.fail(errors.New("NOQUORUM nobody"))
	for _, command := range [][]string{{"EVAL", unheardOf, "0"}, {"SCRIPT", "LOAD", unheardOf}} {
		if got := c.ask(command...); got != "-NOQUORUM nobody\r\n" {
			t.Errorf("%q: got %q", command, got)
		}
	}
	r.engine.fail(nil)
	if got := c.ask("SCRIPT", "LOAD", unheardOf); got[0] != '$' {
		t.Errorf("with a quorum again: %q", got)
	}
}

// If the text is all right it cannot be part of the transaction, so until that is known the others must not take place.
func TestATextThatNobodyCompilesEndsTheTransaction(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	for _, command := range [][]string{{"EVAL", unheardOf, "0"}, {"SCRIPT", "LOAD", unheardOf}} {
		c.ask("MULTI")
		c.ask("SET", "k", "v")
		r.engine.fail(errors.New("NOQUORUM nobody"))
		if got := c.ask(command...); got != "-NOQUORUM nobody\r\n" {
			t.Errorf("%q: got %q", command, got)
		}
		r.engine.fail(nil)
		if got := c.ask("EXEC"); got != "-EXECABORT Transaction discarded because of previous errors.\r\n" {
			t.Errorf("%q: EXEC: %q", command, got)
		}
	}
	if got := c.ask("EXISTS", "k"); got != ":0\r\n" {
		t.Errorf("half of it took place: %q", got)
	}
}

func TestAClientMayGoWhileItsTextIsCompiled(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(words("EVAL return{} 0"))
	<-arrived
	_ = c.Close()
	r.awaitGone()
	r.engine.release(0)
	if len(r.engine.ran) > 0 {
		t.Error("it was run for nobody")
	}
}

func TestATransactionKnowsItsScriptsBeforeExec(t *testing.T) {
	r := newRig(t, Config{})
	c := r.dial()
	const refusal = "-ERR Error compiling script (new function): user_script:1: " + notLua + "\r\n"
	c.ask("MULTI")
	for _, command := range [][]string{{"EVAL", notLua, "0"}, {"SCRIPT", "LOAD", notLua}, {"SCRIPT", "LOAD", "return 1"}, {"EVAL", "return 1", "x"},
		{"EVALSHA", strings.Repeat("0", 40), "1", "k"}} {
		if got := c.ask(command...); got != "+QUEUED\r\n" {
			t.Errorf("%q: got %q", command, got)
		}
	}
	want := "*5\r\n" + refusal + refusal + "$40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db\r\n" +
		"-ERR value is not an integer or out of range\r\n-NOSCRIPT No matching script. Please use EVAL.\r\n"
	if got := c.ask("EXEC"); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// A recognised script may name its key elsewhere than in KEYS.
func TestAScriptMayHaveItsKeyAmongItsArguments(t *testing.T) {
	c := newRig(t, Config{}).dial()
	const text = "if redis.call('get',ARGV[1]) == ARGV[2] then return redis.call('del',ARGV[1]) end return 0"
	c.ask("SET", "k", "me", "PX", "60000")
	c.ask("MULTI")
	c.ask("EVAL", text, "0", "k", "you")
	c.ask("EVAL", text, "0", "k", "me")
	if got := c.ask("EXEC"); got != "*2\r\n:0\r\n:1\r\n" {
		t.Errorf("got %q", got)
	}
	for _, queued := range []bool{false, true} {
		if queued {
			c.ask("MULTI")
		}
		if got := c.ask("EVAL", text, "0", "lockproxy:fence:k", "me"); !strings.HasPrefix(got, "-ERR lockproxy keeps the key ") {
			t.Errorf("a key of lockproxy's own, queued %v: %q", queued, got)
		}
	}
}
