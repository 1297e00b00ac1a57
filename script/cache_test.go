package script

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestACacheFindsWhatItLoaded(t *testing.T) {
	c := NewCache(10)
	s, err := c.Load(releaseText)
	if err != nil || s.Text != releaseText || s.Meaning == nil {
		t.Fatalf("got %+v, %v", s, err)
	}
	again, _ := c.Load(strings.Clone(releaseText))
	if again != s {
		t.Error("a text was recognised twice")
	}
	for _, sha := range []string{s.SHA, strings.ToUpper(s.SHA)} {
		if found, ok := c.Lookup(sha); !ok || found != s || !c.Exists(sha) {
			t.Errorf("%s is not found", sha)
		}
	}
	for _, sha := range []string{"", "x", s.SHA[1:], s.SHA + "0", strings.Repeat("0", 40), "z" + s.SHA[1:]} {
		if _, ok := c.Lookup(sha); ok || c.Exists(sha) {
			t.Errorf("%q is found", sha)
		}
	}
	c.Flush()
	if c.Exists(s.SHA) {
		t.Error("found after Flush")
	}
}

// The SHA-1 is Redis's: EVALSHA of what SCRIPT LOAD answered, and of what clients computed themselves.
func TestTheNameOfAScriptIsItsSHA1(t *testing.T) {
	s, _ := NewCache(1).Load("return 1")
	if s.SHA != "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" || s.Meaning != nil {
		t.Errorf("got %+v", s)
	}
}

func TestWhatMayNotBeLuaIsKeptWhenItIsKnownToBe(t *testing.T) {
	c := NewCache(4)
	const text = "return 1 +"
	s, err := c.Load(text)
	if err != nil || s.Compiles || c.Exists(s.SHA) {
		t.Fatalf("got %+v, %v", s, err)
	}
	c.Keep(s)
	c.KeepCompiled(s)
	c.Keep(s)
	s, _ = c.Lookup(s.SHA)
	if again, _ := c.Load(text); !s.Compiles || again != s || c.bytes != len(text) {
		t.Errorf("got %+v and %+v, %d bytes", s, again, c.bytes)
	}
}

// What is recognised, or known by its SHA-1, costs no question to the masters.
func TestWhatIsKnownCompiles(t *testing.T) {
	rlock := Script{SHA: "6866459238a13a701d42f4971f12d9f3a50e2442"}
	if s, err := understand("the text of unlock", rlock.SHA, newFamilies(nil)); err != nil || !s.Compiles || s.Family == nil {
		t.Errorf("got %+v, %v", s, err)
	}
	if s, _ := NewCache(1).Load(releaseText); !s.Compiles {
		t.Error("a release is not known to compile")
	}
	own := Family{SHA: shaOf("x ="), Kind: Takes}
	if s, _ := NewCache(1, own).Load("x ="); s.Compiles || s.Family == nil {
		t.Errorf("got %+v", s)
	}
	if s, _ := NewCache(1).Load(strings.Repeat("local a ", 201) + "return redis.call('get',KEYS[1])"); s.Compiles {
		t.Error("too many variables for Lua are taken for a script")
	}
}

func TestACacheForgetsTheLeastRecentlyUsed(t *testing.T) {
	c := NewCache(2)
	a, _ := c.Load("return 1")
	b, _ := c.Load("return 2")
	c.KeepCompiled(a)
	c.KeepCompiled(b)
	c.Lookup(a.SHA)
	c.Exists(b.SHA) // does not count as use
	s, _ := c.Load("return 3")
	c.KeepCompiled(s)
	if !c.Exists(a.SHA) || c.Exists(b.SHA) {
		t.Error("forgot the wrong one")
	}
}

func TestACacheIsBoundedInBytes(t *testing.T) {
	c := NewCache(1 << 20)
	if _, err := c.Load(strings.Repeat("x", textMax+1)); !errors.Is(err, ErrTextTooLong) {
		t.Errorf("got %v", err)
	}
	for i := range 2 * textsMax / textMax {
		text := "--" + fmt.Sprintf("%0*d", textMax-2, i)
		s, err := c.Load(text)
		if err != nil || c.KeepCompiled(s) == s || !c.Exists(s.SHA) {
			t.Fatalf("not kept: %v", err)
		}
	}
	total := 0
	for _, s := range c.scripts.Values() {
		total += len(s.Text)
	}
	if total > textsMax || total < textsMax-textMax || total != c.bytes {
		t.Errorf("keeps %d bytes and counts %d", total, c.bytes)
	}
	c.Flush()
	if c.bytes != 0 {
		t.Errorf("counts %d bytes after Flush", c.bytes)
	}
}

func TestACacheMayBeUsedByManyAtOnce(t *testing.T) {
	c := NewCache(5)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				s, err := c.Load(fmt.Sprintf("return redis.call('get',KEYS[%d])", 1+(g+i)%9))
				if err != nil || s.Meaning == nil {
					t.Errorf("got %+v, %v", s, err)
				}
				c.Lookup(s.SHA)
				c.Exists(s.SHA)
				if i%100 == 0 {
					c.Flush()
				}
			}
		})
	}
	wg.Wait()
}

func TestLookupsDoNotAllocate(t *testing.T) {
	c := NewCache(10)
	s, _ := c.Load(releaseText)
	if n := testing.AllocsPerRun(100, func() { c.Lookup(s.SHA) }); n > 0 {
		t.Errorf("Lookup allocates %v times", n)
	}
	keys, args := []string{"k"}, []string{"me", "1000", "0"}
	m := recognise(chooseText, "SHA")
	if n := testing.AllocsPerRun(100, func() {
		m.Bind(keys, args)
		m.Answer(Outcome{Result: Done})
	}); n > 0 {
		t.Errorf("Bind and Answer allocate %v times", n)
	}
}
