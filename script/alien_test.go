package script

import (
	"testing"
	"time"
)

// Each is what redis-server 7.0.15 answers where the key is a hash.
func TestAKeyThatHoldsNoString(t *testing.T) {
	const fails = "-" + wrongType + " script: SHA, on @user_script:"
	for _, c := range []struct{ text, want string }{
		{releaseText, fails + "1."},
		{"\n\n" + extendText, fails + "3."},
		{"local c = redis.call\r\n\n\r\rreturn c(\n'get', KEYS[1])", fails + "4."},
		{"--[[\r\n\r]]return redis.call('get',KEYS[1])", fails + "3."},
		{"if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return 1\nelseif redis.call('get',KEYS[1]) == ARGV[1] then redis.call('pexpire',KEYS[1],ARGV[2]) return 1 end return 0", fails + "2."},
		{acquireText, "nil"},
		{"return redis.call('setnx',KEYS[1],ARGV[1])", "0"},
		{"return redis.call('pttl',KEYS[1])", "1500"},
		{"return redis.pcall('get',KEYS[1])", "-" + wrongType},
		{"if redis.pcall('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end", "0"},
		{"if redis.pcall('get',KEYS[1]) then return 5 end return 6", "5"},
	} {
		call, err := recognise(c.text, "SHA").Bind([]string{"k"}, []string{"me", "1000"})
		if err != nil || !call.Alien.Known() {
			t.Fatalf("%q: %v", c.text, err)
		}
		if got := call.Alien.Answer(1500 * time.Millisecond).describe(); got != c.want {
			t.Errorf("%q: got %s, want %s", c.text, got, c.want)
		}
		if fails := c.want[0] == '-'; call.Alien.Fails() != fails {
			t.Errorf("%q: fails %v", c.text, !fails)
		}
	}
}

// What a script makes of such a key after it has looked at it, or of the error, is left to the masters.
func TestWhatIsDoneToAKeyThatHoldsNoStringIsNotGuessed(t *testing.T) {
	for _, text := range []string{
		"local v = redis.pcall('get',KEYS[1]) if v ~= ARGV[1] and v then if type(v) == 'table' then redis.call('del',KEYS[1]) end return 0 end return redis.call('del',KEYS[1])",
		"local v = redis.pcall('get',KEYS[1]) return v.err",
		"return redis.pcall('get',KEYS[1]) .. 'x'",
	} {
		if m := recognise(text, "SHA"); m != nil {
			t.Errorf("%q is understood: %s", text, describe(m))
		}
	}
}
