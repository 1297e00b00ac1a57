package vote

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestRepliesAreDecoded(t *testing.T) {
	s := &Source{SHA: "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", Text: "return 1"}
	at := " script: " + s.SHA + ", on @user_script:"
	for _, c := range []struct {
		text string
		want Value
	}{
		{":12;", Value{Kind: IntValue, Int: 12}},
		{":-3.8999999999999999;", Value{Kind: IntValue, Int: -3}},
		{":1e+30;", Value{Kind: IntValue, Int: math.MinInt64}},
		{":-nan;", Value{Kind: IntValue, Int: math.MinInt64}},
		{":inf;", Value{Kind: IntValue, Int: math.MinInt64}},
		{"$0:", Value{Kind: BulkValue}},
		{"$3:a:;", Value{Kind: BulkValue, Text: "a:;"}},
		{"+2:OK", Value{Kind: StatusValue, Text: "OK"}},
		{"+4:O\x00K+", Value{Kind: StatusValue, Text: "O"}},
		{"-6:ERR x\x00", Value{Kind: ErrorValue, Text: "ERR x"}},
		{"-5:ERR x", Value{Kind: ErrorValue, Text: "ERR x"}},
		{"_", Value{}},
		{"t", Value{Kind: TrueValue}},
		{"f", Value{Kind: FalseValue}},
		{",1.5;", Value{Kind: DoubleValue, Text: "1.5"}},
		{"(2:12", Value{Kind: BigNumberValue, Text: "12"}},
		{"=5:txtab", Value{Kind: VerbatimValue, Text: "txtab"}},
		{"*2;:1;*1;_", Value{Kind: ArrayValue, Int: 2, items: ":1;*1;_"}},
		{"%1;$1:a:1;", Value{Kind: MapValue, Int: 2, items: "$1:a:1;"}},
		{"~0;", Value{Kind: SetValue}},
		{"!2;5:ERR x", Value{Kind: ErrorValue, Text: "ERR x" + at + "2."}},
		{"!2;7:ERR\x00x\r\n", Value{Kind: ErrorValue, Text: "ERR" + at + "2."}},
		{"!0;5:ERR x", Value{Kind: ErrorValue, Text: "ERR x" + at + "1."}},
	} {
		if got, err := decodeValue(c.text, s); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v, %v, want %+v", c.text, got, err, c.want)
		}
	}
}

func TestTheItemsOfListsComeInTheOrderOfTheText(t *testing.T) {
	v, err := ParseValue("*4;*2;:1;~1;$1:a%1;t,0.5;*0;_")
	if err != nil {
		t.Fatal(err)
	}
	want := []Value{
		{Kind: ArrayValue, Int: 2}, {Kind: IntValue, Int: 1}, {Kind: SetValue, Int: 1}, {Kind: BulkValue, Text: "a"},
		{Kind: MapValue, Int: 2}, {Kind: TrueValue}, {Kind: DoubleValue, Text: "0.5"},
		{Kind: ArrayValue}, {},
	}
	if got := slices.Collect(v.Parts()); v.Int != 4 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %d: %+v, want %+v", v.Int, got, want)
	}
	if got, _ := ParseValue("*3;:1;:0;:-7;"); !reflect.DeepEqual(got, integers(1, 0, -7)) {
		t.Errorf("got %+v, want %+v", got, integers(1, 0, -7))
	}
}

func TestWhatTheWrapperDoesNotSendIsAnError(t *testing.T) {
	for _, text := range []string{"", "x", ":1", ":1;_", "$", "$2:a", "$-1:", "$x:a", "*1;", "*-1;", "*99999999999;_", "%1;_",
		"!1", "!1;9:x", "?", "*2;*1;__:1;", "*2;*2;__", "*1;x"} {
		if v, err := decodeValue(text, &Source{}); err == nil {
			t.Errorf("%q: decoded as %+v", text, v)
		}
	}
}

func TestWhatClocksToldIsMarked(t *testing.T) {
	for _, c := range []struct {
		text, encoded, unclocked string
		clocks                   []float64
	}{
		{":5;", ":5;", ":5;", nil},
		{"@:5;", ":5;", "@", []float64{5}},
		{"*3;@:5;$3:@:;@$2:17", "*3;:5;$3:@:;$2:17", "*3;@$3:@:;@", []float64{5, 17}},
		{"%1;$1:@_", "%1;$1:@_", "%1;$1:@_", nil},
		{"!1;2:@x", "!1;2:@x", "!1;2:@x", nil},
		{"?2:@x", "?2:@x", "?2:@x", nil},
	} {
		a := &Answer{encoded: c.text}
		if err := a.readSeen(); err != nil || a.encoded != c.encoded || a.unclocked() != c.unclocked || !reflect.DeepEqual(a.clocks, c.clocks) {
			t.Errorf("%q: got %+v, %v, want %+v", c.text, a, err, c)
		}
	}
	for _, text := range []string{"@", "@@1;", "@$1:x", "@$9:1", "@_", "*1;@", ":1;@x"} {
		if err := (&Answer{encoded: text}).readSeen(); err == nil {
			t.Errorf("%q has no error", text)
		}
	}
}

// What a client cannot tell apart is no reason to disagree.
func TestRepliesAreComparedAsTheirClientSeesThem(t *testing.T) {
	for _, alike := range [][]string{
		{":1;", ":1.75;", ":1.0000000000000002;"},
		{":0;", ":-0;", ":0.5;", ":-0.98999999999999999;"},
		{":-3;", ":-3.5;"},
		{":9007199254740994;", ":9007199254740994;"},
		{":-9223372036854775808;", ":nan;", ":-nan;", ":inf;", ":-inf;", ":1e+300;", ":9.2233720368547758e+18;"},
		{"*2;$1:a*1;:1;", "*2;$1:a*1;:1.5;"},
		{"+2:OK", "+4:OK\x00x"},
		{"+3:a b", "+3:a\nb"},
		{"-5:ERR x", "-7:ERR x\r\n", "-7:ERR x\x00y"},
		{"%2;$1:a:1;$1:b:2;", "%2;$1:b:2.25;$1:a:1;"},
		{"~3;$1:a$1:b:3;", "~3;:3;$1:b$1:a", "~3;$1:b:3.5;$1:a"},
		{"~2;~2;:1;:2;*1;_", "~2;*1;_~2;:2;:1;"},
	} {
		for _, text := range alike {
			a := &Answer{encoded: text}
			if err := a.readSeen(); err != nil || a.encoded != alike[0] && (&Answer{encoded: alike[0]}).seen(t) != a.encoded {
				t.Errorf("%q: %q, %v; not as %q", text, a.encoded, err, alike[0])
			}
		}
	}
	differ := []string{":1;", "$1:1", "+1:1", "-1:1", ",1;", "(1:1", "=4:txt1", "t", "f", "_", "*0;", "%0;", "~0;", "*1;:1;", "*1;:2;", "*2;:1;:2;", "*2;:2;:1;",
		"%1;:1;:2;", "%1;:2;:1;", "~2;:1;:2;", ",1.5;", ",1.5000000000000002;", "$2:a\n", "$2:a "}
	seen := map[string]string{}
	for _, text := range differ {
		is := (&Answer{encoded: text}).seen(t)
		if was, ok := seen[is]; ok {
			t.Errorf("%q is taken for %q", text, was)
		}
		seen[is] = text
	}
}

func (a *Answer) seen(t *testing.T) string {
	t.Helper()
	if err := a.readSeen(); err != nil {
		t.Fatal(err)
	}
	return a.encoded
}

// A client's few bytes may ask every master for a long list of nils.
func TestAListTakesNoMoreMemoryThanItsText(t *testing.T) {
	const n = 1 << 20
	s := &Source{SHA: "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", Text: "return 1"}
	nils := strings.Repeat("_", n)
	for name, text := range map[string]string{
		"nils":           fmt.Sprintf("*%d;%s", n, nils),
		"only announced": strings.Repeat("*900000;", 128) + nils,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decodeValue(text, s)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > n/16 || (err == nil) != (name == "nils") {
			t.Errorf("%s: took %d bytes, %v", name, took, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"*2;:1;$1:a", "%1;$1:a:1;", "!1;2:xy", "?1:x", ",1;", "=3:txt", "*2;@:5;@$2:17"} {
		f.Add(s)
	}
	s := &Source{}
	f.Fuzz(func(_ *testing.T, text string) {
		if v, err := decodeValue(text, s); err == nil {
			for part := range v.Parts() {
				_ = part.describe()
			}
		}
		_, _ = Parse([]any{text, "", text, text, text, text, text, text, text}, s)
	})
}

func TestTheLineOfATailCallIsGuessed(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"return redis.call('x')", "1"},
		{"local a = 1\nif a then\n  return redis.call('x') end", "3"},
		{"local a = 1", "1"},
	} {
		if got := (&Source{Text: c.text}).tailCallLine(); got != c.want {
			t.Errorf("%q: got %s, want %s", c.text, got, c.want)
		}
	}
}
