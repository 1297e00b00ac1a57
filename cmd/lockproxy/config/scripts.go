package config

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Script is a row that the configuration adds to the table of known scripts.
type Script struct {
	SHA1    string
	Kind    string
	Granted string // of take, extend and release
	Holder  int
	Name    string
}

// The words that a row may use; the script package has the same.
var (
	scriptKinds   = []string{"agree", "take", "extend", "release", "tell", "ask", "refuse"}
	scriptGrants  = []string{"positive", "nil", "not nil", "OK", "keys"}
	grantedByKind = []string{"take", "extend", "release"}
)

// scriptsValue takes a list of mappings, or in a variable or a flag a text sha1:kind:granted:holder with commas between.
func scriptsValue() value {
	return value{accepts: "sha1:kind:granted:holder, with commas between", set: setScripts}
}

func setScripts(c *Config, in raw) []fault {
	if in.fields != nil {
		return []fault{{in.line, "is no list; write - sha1: …, kind: … and granted: … for each script"}}
	}
	var faults []fault
	all := []Script{}
	for i, item := range append(in.items, scriptItems(in.text)...) {
		s, wrong := parseScript(item)
		if wrong == "" && slices.ContainsFunc(all, func(o Script) bool { return o.SHA1 == s.SHA1 }) {
			wrong = "is there twice; remove one"
		}
		if wrong != "" {
			faults = append(faults, fault{item.line, fmt.Sprintf("script %d %s", i+1, wrong)})
		}
		all = append(all, s)
	}
	if len(faults) == 0 {
		c.Scripts = all
	}
	return faults
}

// scriptItems reads the text form of rows as mappings.
func scriptItems(text string) []raw {
	var items []raw
	for part := range strings.SplitSeq(text, ",") {
		fields := make(map[string]raw)
		for i, field := range strings.SplitN(part, ":", 4) {
			if field != "" {
				fields[[]string{"sha1", "kind", "granted", "holder"}[i]] = raw{text: strings.TrimSpace(field)}
			}
		}
		if len(fields) > 0 {
			items = append(items, raw{fields: fields})
		}
	}
	return items
}

// parseScript reads one mapping of the file.
func parseScript(in raw) (Script, string) {
	s := Script{Granted: scriptGrants[0]}
	if in.fields == nil {
		return s, "is no mapping; write sha1: …, kind: … and granted: …"
	}
	granted := false
	for key, v := range in.fields {
		switch {
		case v.items != nil || v.fields != nil:
			return s, key + " is no text"
		case key == "sha1":
			s.SHA1 = strings.ToLower(v.text)
		case key == "kind":
			s.Kind = v.text
		case key == "granted":
			s.Granted, granted = v.text, true
		case key == "name":
			s.Name = v.text
		case key == "holder":
			n, err := strconv.Atoi(v.text)
			if err != nil || n < 1 {
				return s, fmt.Sprintf("has holder %q; write which of ARGV, from 1, is the holder's field of the hash", v.text)
			}
			s.Holder = n
		default:
			return s, fmt.Sprintf("has the unknown key %q; there are sha1, kind, granted, holder and name", key)
		}
	}
	return s, s.wrong(granted)
}

func (s *Script) wrong(granted bool) string {
	switch sum, err := hex.DecodeString(s.SHA1); {
	case err != nil || len(sum) != 20:
		return "needs its sha1, 40 hex digits"
	case !slices.Contains(scriptKinds, s.Kind):
		return fmt.Sprintf("has kind %q; write %s", s.Kind, strings.Join(scriptKinds, ", "))
	case !slices.Contains(scriptGrants, s.Granted):
		return fmt.Sprintf("has granted %q; write %s", s.Granted, strings.Join(scriptGrants, ", "))
	case !granted && slices.Contains(grantedByKind, s.Kind):
		return "needs granted, which reply says yes; write " + strings.Join(scriptGrants, ", ")
	case granted && !slices.Contains(grantedByKind, s.Kind):
		return fmt.Sprintf("has granted, which kind %q does not look at; remove it, or write %s", s.Kind, strings.Join(grantedByKind, ", "))
	case s.Holder > 0 && s.Kind != "take":
		return fmt.Sprintf("has holder, which kind %q does not look at; remove it, or write take", s.Kind)
	}
	return ""
}
