package wire

// PatternMax is the longest pattern for a search among names of other clients. See Match for the cost of longer patterns.
const PatternMax = 256

// Match matches as Redis's patterns do: * ? [a-z] [^a-z] and \ for the character itself. It takes a time of at most
// len(pattern) × len(s): of all stars only the latest is ever moved.
func Match(pattern, s string) bool {
	p, i := 0, 0
	star, mark := -1, 0
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			star, mark = p, i
			p++
			continue
		}
		if p < len(pattern) {
			if n, ok := matchOne(pattern[p:], s[i]); ok {
				p += n
				i++
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		p, i = star+1, mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// MatchChannel is Match for channels. In Redis only the empty pattern matches the empty channel, while KEYS * has the empty
// key.
func MatchChannel(pattern, channel string) bool {
	if channel == "" {
		return pattern == ""
	}
	return Match(pattern, channel)
}

// matchOne matches a character, and returns the length of the part of the pattern for the character.
func matchOne(pattern string, c byte) (int, bool) {
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		return matchClass(pattern, c)
	case '\\':
		if len(pattern) > 1 {
			return 2, pattern[1] == c
		}
	}
	return 1, pattern[0] == c
}

func matchClass(pattern string, c byte) (int, bool) {
	i := 1
	not := i < len(pattern) && pattern[i] == '^'
	if not {
		i++
	}
	match := false
	for i < len(pattern) && pattern[i] != ']' {
		from := pattern[i]
		if from == '\\' && i+1 < len(pattern) {
			i++
			from = pattern[i]
		}
		to := from
		if i+2 < len(pattern) && pattern[i+1] == '-' {
			to = pattern[i+2]
			i += 2
		}
		if min(from, to) <= c && c <= max(from, to) {
			match = true
		}
		i++
	}
	return min(i+1, len(pattern)), match != not
}
