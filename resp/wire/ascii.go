package wire

// Letters have two cases as in C: ASCII only.

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func upperByte(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

// EqualFold compares as C's strcasecmp does.
func EqualFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lowerByte(a[i]) != lowerByte(b[i]) {
			return false
		}
	}
	return true
}

// Lower returns s in lower case.
func Lower(s string) string { return mapBytes(s, lowerByte) }

// Upper returns s in upper case.
func Upper(s string) string { return mapBytes(s, upperByte) }

func mapBytes(s string, f func(byte) byte) string {
	for i := range len(s) {
		if f(s[i]) == s[i] {
			continue
		}
		b := []byte(s)
		for ; i < len(b); i++ {
			b[i] = f(b[i])
		}
		return string(b)
	}
	return s
}
