package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A LockGroup puts the locks whose names match the pattern into a group of the metrics.
type LockGroup struct{ Pattern, Group string }

// Bounds of lock_groups: each group has its own series at Prometheus, and each event of a lock tries the patterns.
const (
	groupsMax  = 32
	patternMax = 256 // bytes
)

// groupLabel is what a group may be called.
var groupLabel = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,64}$`)

// setLockGroups takes a list of mappings, or in a variable or flag a text pattern=group with commas between.
func setLockGroups(c *Config, in raw) []fault {
	if in.fields != nil {
		return []fault{{in.line, "is no list; write - pattern: … and group: … for each"}}
	}
	if len(in.items) > groupsMax || strings.Count(in.text, ",") > groupsMax {
		return []fault{{in.line, fmt.Sprintf("has more than %d entries; let one pattern match more names", groupsMax)}}
	}
	var faults []fault
	all := []LockGroup{}
	for i, item := range groupItems(in) {
		g, wrong := parseLockGroup(item)
		if wrong == "" && slices.ContainsFunc(all, func(o LockGroup) bool { return o.Pattern == g.Pattern }) {
			wrong = fmt.Sprintf("has pattern %q, as an earlier entry has, and the first counts; remove one", g.Pattern)
		}
		if wrong != "" {
			faults = append(faults, fault{item.line, fmt.Sprintf("entry %d %s", i+1, wrong)})
		}
		all = append(all, g)
	}
	if len(faults) == 0 {
		c.LockGroups = all
	}
	return faults
}

// groupItems returns the entries as mappings, also those of the text form.
func groupItems(in raw) []raw {
	if in.items != nil {
		return in.items
	}
	var items []raw
	for _, part := range in.list() {
		if part.text == "" { // two commas, or a comma at the end
			continue
		}
		fields := map[string]raw{"pattern": part}
		if at := strings.LastIndexByte(part.text, '='); at >= 0 { // a pattern may have an = of its own
			fields["pattern"], fields["group"] = raw{text: part.text[:at]}, raw{text: part.text[at+1:]}
		}
		items = append(items, raw{fields: fields, line: in.line})
	}
	return items
}

// parseLockGroup reads one mapping.
func parseLockGroup(in raw) (LockGroup, string) {
	var g LockGroup
	if in.fields == nil {
		return g, `is no mapping; write pattern: "stock:*" and group: stock`
	}
	for key, v := range in.fields {
		switch {
		case v.items != nil || v.fields != nil:
			return g, key + " is no text"
		case key == "pattern":
			g.Pattern = v.text
		case key == "group":
			g.Group = v.text
		default:
			return g, fmt.Sprintf("has the unknown key %q; there are pattern and group", key)
		}
	}
	switch {
	case g.Pattern == "":
		return g, `has no pattern; write one such as "stock:*"`
	case len(g.Pattern) > patternMax:
		return g, fmt.Sprintf("has a pattern of more than %d bytes; write the beginning and *", patternMax)
	case g.Group == "":
		return g, "has no group; write what the metrics call these locks, such as group: stock, or in a flag stock:*=stock"
	case !groupLabel.MatchString(g.Group):
		return g, fmt.Sprintf("has the group %q; write 1 to 64 of the letters a to z, digits, _ . : / -", g.Group)
	}
	return g, ""
}
