package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const examplePath = "../../../config.example.yaml"

// The example is the manual: it must name every setting, no other, in the table's order, with its default.
func TestExampleNamesEverySettingWithItsDefault(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash(examplePath))
	if err != nil {
		t.Fatal(err)
	}
	entries, faults := readYAML(text)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.key)
		s := lookup(e.key)
		if s == nil {
			continue
		}
		if e.wrong != "" {
			t.Errorf("%s: %s", e.key, e.wrong)
		}
		fromFile, fromTable := &Config{}, &Config{}
		if f := s.value.set(fromFile, e.raw); len(f) > 0 {
			t.Errorf("%s: %v", e.key, f)
		}
		s.value.set(fromTable, raw{text: s.def})
		if !reflect.DeepEqual(fromFile, fromTable) {
			t.Errorf("%s: the example says %+v, the default is %q", e.key, e.raw, s.def)
		}
	}
	if !slices.Equal(got, names()) {
		t.Errorf("the example has\n%v\nthe table has\n%v", got, names())
	}
}

func TestExampleLoadsAsTheDefaults(t *testing.T) {
	l, err := Load([]string{"--config", examplePath}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(l.Config, Default()) {
		t.Errorf("got %+v\nwant %+v", l.Config, Default())
	}
	if len(l.Warnings) > 0 {
		t.Errorf("the defaults are warned of: %q", l.Warnings)
	}
}

// Every field of Config must be reachable from the table, and each row must have a field of its own.
func TestEverySettingHasAFieldOfItsOwn(t *testing.T) {
	if fields, rows := reflect.TypeFor[Config]().NumField(), len(settings); fields != rows {
		t.Errorf("Config has %d fields, the table %d rows", fields, rows)
	}
	samples := map[string]string{
		"masters": "a:1", "proxy_protocol": "10.0.0.0/8", "protected_mode": "true", "listen": ":1", "admin": ":1", "pprof": "true", "users": "a:b", "drift_factor": "0.5",
		"log_level": "error", "log_format": "json", "init": "auto", "audit_log": "stdout", "slow_log": "50ms", "lock_groups": "a=b",
		"scripts": strings.Repeat("a", 40) + ":take:nil:2",
	}
	used := make(map[int]string)
	for _, s := range settings {
		sample := samples[s.name]
		for _, guess := range []string{sample, "2s", "17", "3mb", "some"} {
			c := &Config{}
			if guess == "" || len(s.value.set(c, raw{text: guess})) > 0 {
				continue
			}
			v := reflect.ValueOf(*c)
			for i := range v.NumField() {
				if !v.Field(i).IsZero() {
					if used[i] != "" {
						t.Errorf("%s and %s write the same field", s.name, used[i])
					}
					used[i] = s.name
				}
			}
			break
		}
	}
	if len(used) != len(settings) {
		t.Errorf("%d of %d settings write a field", len(used), len(settings))
	}
}
