package script

import (
	"strings"
	"testing"
)

// Each is what redis-server 7.0.15 answers to SCRIPT LOAD.
func TestTheFirstLineMaySayWhatRunsTheText(t *testing.T) {
	for text, want := range map[string]string{
		"return 1":        "",
		" #!lua":          "", // which Lua refuses
		"#!lua\nreturn 1": "",
		"#!lua\r\n":       "",
		"#!lua\t flags=no-writes,allow-oom flags=no-cluster\n": "",
		"#!lua flags=\n":           "",
		"#!lua":                    "ERR Invalid script shebang",
		"#!lua\x00\n":              "ERR Invalid script shebang",
		"#! lua\n":                 "ERR Unexpected engine in script shebang: #!",
		"#!python\nreturn 1":       "ERR Unexpected engine in script shebang: #!python",
		"#!lua name=x\n":           "ERR Unknown lua shebang option: name=x",
		"#!lua flags\n":            "ERR Unknown lua shebang option: flags",
		"#!lua\rreturn 1\n":        "ERR Unknown lua shebang option: return",
		"#!lua flags=a,b\n":        "ERR Unexpected flag in script shebang: a",
		"#!lua flags=no-writes,\n": "ERR Unexpected flag in script shebang: ",
		"#!lua flags=,no-writes\n": "ERR Unexpected flag in script shebang: ",
		"#!lua flags=No-Writes\n":  "ERR Unexpected flag in script shebang: No-Writes",
	} {
		got := ""
		if _, err := NewCache(1).Load(text); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzShebang(f *testing.F) {
	for _, text := range []string{"#!lua flags=no-writes\nreturn 1", "#!", "#!\n", "#! \n", "return 1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := checkShebang(text); err != nil && !(strings.HasPrefix(text, "#!") && strings.Contains(err.Error(), " script shebang")) &&
			!strings.HasPrefix(err.Error(), "ERR Unknown lua shebang option: ") {
			t.Fatal(err)
		}
	})
}
