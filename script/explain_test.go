package script

import (
	"strings"
	"testing"
)

func TestExplanations(t *testing.T) {
	mayVote := func(command string) bool { return command != "spop" && command != "frob" }
	for _, c := range []struct{ text, want string }{
		{`if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`,
			"becomes a quorum operation|release KEYS[1], token ARGV[1]|done 1; somebody else's 0; nobody's 0|known  as a text of redis.io"},
		{`redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', 5000) return redis.call('spop', KEYS[2])`,
			"runs by vote|will be refused where it calls SPOP"},
		{`return redis.call('frob', KEYS[1])`, "will be refused where it calls FROB, which scripts by vote may not call"},
		{`return {1, cjson.encode(ARGV)}`, "If masters can compile it, it runs by vote"},
		{`this is no Lua`, "If masters can compile it, it runs by vote"},
		{`return loadstring(ARGV[1])()`, "will be refused where it calls loadstring"},
		{`redis.set_repl(0) return 1`, "will be refused where it calls set_repl, because what the script does"},
		{`return getmetatable("")`, "will be refused where it calls getmetatable"},
	} {
		lines, err := Explain(c.text, mayVote)
		got := strings.Join(lines, "\n")
		for part := range strings.SplitSeq(c.want, "|") {
			if err != nil || !strings.Contains(got, part) {
				t.Errorf("%s\ndoes not say %q: %v\n%s", c.text, part, err, got)
			}
		}
	}
	for _, text := range []string{"#!ruby\nputs 1", "return 1 --" + strings.Repeat("x", textMax)} {
		if _, err := Explain(text, mayVote); err == nil {
			t.Errorf("%.20s: what is refused is explained", text)
		}
	}
	for _, text := range []string{`return ARGV.load`, `local set_repl = 1 return set_repl`} {
		if lines, err := Explain(text, mayVote); err != nil || strings.Contains(strings.Join(lines, "\n"), "refused") {
			t.Errorf("%s\nis said to be refused: %v", text, err)
		}
	}
	lines, err := Explain(`return redis.call('s' .. 'pop', KEYS[1])`, func(command string) bool { return command != "s" })
	if got := strings.Join(lines, "\n"); err != nil || strings.Contains(got, "refused") {
		t.Errorf("a part of a command's name is taken for one: %s, %v", got, err)
	}
}

func TestRowsOfOnesOwnGoFirst(t *testing.T) {
	const text = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	row := Family{SHA: shaOf(text), Kind: Takes, Granted: GrantNil, Holder: 2, Permits: 3}
	s, err := NewCache(1, row).Load(text)
	if err != nil || s.Meaning != nil || s.Family == nil || s.Family.Kind != Takes {
		t.Errorf("got %+v, %v", s, err)
	}
	lines, err := Explain(text, func(string) bool { return true }, row)
	if got := strings.Join(lines, "\n"); err != nil || !strings.Contains(got, "to take a lock; a reply grants if it is: nil") ||
		!strings.Contains(got, "ARGV[2]") || !strings.Contains(got, "refused where ARGV[3]") {
		t.Errorf("explained as %s, %v", got, err)
	}
}

func TestTheNameOfAFamilyHasNoEmptyParts(t *testing.T) {
	for f, want := range map[Family]string{
		{Library: "a", Does: "b"}: "a, b", {Library: "a"}: "a", {Does: "b"}: "b", {}: "",
	} {
		if got := f.Name(); got != want {
			t.Errorf("%+v is called %q", f, got)
		}
	}
}

func TestTheTableOfFamilies(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Families() {
		id := f.SHA + f.Shape
		switch {
		case seen[id]:
			t.Errorf("%s is there twice", id)
		case f.SHA != "" && len(f.SHA) != 40, f.SHA == "" && len(f.Shape) != 12:
			t.Errorf("%q is no SHA-1 and no shape", id)
		case f.Library == "" || f.Does == "":
			t.Errorf("%s does not say what it is", id)
		case (f.Kind == Refused) != (f.Why != ""):
			t.Errorf("%s does not say why it is refused, or is not", id)
		case f.Permits > 0 && f.Kind != Takes && f.Kind != Extends:
			t.Errorf("%s takes no lock, and has permits", id)
		case f.Blind != (f.Kind == Releases && strings.Contains(f.Does, "forceUnlock")):
			t.Errorf("%s releases a lock of anybody's, and is not said to, or the other way round", id)
		case f.Derived != (f.Library == "Redisson RReadWriteLock" && f.Kind != Asks):
			t.Errorf("%s makes names of further keys, and is not said to, or the other way round", id)
		case f.Queues != (f.Library == "Redisson RFairLock" && f.Kind == Takes), f.Queues && f.Holder == 0:
			t.Errorf("%s waits in a queue, and is not said to, or the other way round", id)
		}
		seen[id] = true
	}
	for k := Agrees; k <= Refused; k++ {
		if got, err := ParseFamilyKind(k.String()); err != nil || got != k {
			t.Errorf("%v is read as %v", k, got)
		}
	}
	for g := GrantPositive; g <= GrantFirst; g++ {
		if got, err := ParseGrant(g.String()); err != nil || got != g {
			t.Errorf("%v is read as %v", g, got)
		}
	}
}

// Its numbers are fences on one Redis; here they would begin at 1 again after ttl_max.
func TestALockThatItsScriptNumbersIsRefused(t *testing.T) {
	s, err := NewCache(1).Understand(`if redis.call('exists',KEYS[1]) == 1 then return false end
		local number = redis.call('incr',KEYS[2])
		if redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[2],'NX') then return number end
		return false`)
	if err != nil || s.Family == nil || s.Family.Kind != Refused || s.Family.Why != whyFence {
		t.Errorf("got %+v, %v; want it refused as what numbers locks", s, err)
	}
}
