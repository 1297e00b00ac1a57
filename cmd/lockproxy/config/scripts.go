package config

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockproxy/script"
)

// setScripts takes a list of mappings, or in a variable or a flag a text sha1:kind:granted:holder with commas between.
func setScripts(c *Config, in raw) []fault {
	if in.fields != nil {
		return []fault{{in.line, "is no list; write - sha1: …, kind: … and granted: … for each script"}}
	}
	var faults []fault
	all := []script.Family{}
	for i, item := range append(in.items, scriptItems(in)...) {
		s, wrong := parseScript(item)
		if wrong == "" && slices.ContainsFunc(all, func(o script.Family) bool { return o.SHA == s.SHA }) {
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
func scriptItems(in raw) []raw {
	var items []raw
	for part := range strings.SplitSeq(in.text, ",") {
		fields := make(map[string]raw)
		for i, field := range strings.SplitN(part, ":", 4) {
			if field != "" {
				fields[scriptKeys[i]] = raw{text: strings.TrimSpace(field)}
			}
		}
		if len(fields) > 0 {
			items = append(items, raw{fields: fields, line: in.line})
		}
	}
	return items
}

// scriptKeys are the keys of a row.
var scriptKeys = []string{"sha1", "kind", "granted", "holder", "name"}

// parseScript reads one mapping of the file.
func parseScript(in raw) (script.Family, string) {
	s := script.Family{Library: "scripts", Why: "the configuration says so"}
	if in.fields == nil {
		return s, "is no mapping; write sha1: …, kind: … and granted: …"
	}
	for key, v := range in.fields {
		switch {
		case v.items != nil || v.fields != nil:
			return s, key + " is no text"
		case !slices.Contains(scriptKeys, key):
			return s, fmt.Sprintf("has the unknown key %q; there are sha1, kind, granted, holder and name", key)
		}
	}
	s.SHA, s.Does = strings.ToLower(in.fields["sha1"].text), in.fields["name"].text
	if sum, err := hex.DecodeString(s.SHA); err != nil || len(sum) != 20 {
		return s, "needs its sha1, 40 hex digits"
	}
	var err error
	if s.Kind, err = script.ParseFamilyKind(in.fields["kind"].text); err != nil {
		return s, "has kind " + err.Error()
	}
	granted, given := in.fields["granted"]
	s.Granted, err = script.ParseGrant(granted.text)
	switch {
	case given && err != nil:
		return s, "has granted " + err.Error()
	case given && !s.Kind.Grants():
		return s, fmt.Sprintf("has granted, which kind %q does not look at; remove it, or write take, extend, release", s.Kind)
	case !given && s.Kind.Grants():
		return s, "needs granted, which reply says yes; write positive, nil, not nil, OK, keys, first"
	}
	if holder, given := in.fields["holder"]; given {
		s.Holder, err = strconv.Atoi(holder.text)
		switch {
		case err != nil || s.Holder < 1:
			return s, fmt.Sprintf("has holder %q; write which of ARGV, from 1, is the holder's field of the hash", holder.text)
		case s.Kind != script.Takes:
			return s, fmt.Sprintf("has holder, which kind %q does not look at; remove it, or write take", s.Kind)
		}
	}
	return s, ""
}
