package resp

import "strconv"

// parseInt reads a signed 64-bit number as strictly as Redis does: no plus sign, no leading zero, no space.
func parseInt(s string) (int64, bool) {
	digits := s
	if len(s) > 1 && s[0] == '-' {
		digits = s[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] < '0' || digits[0] > '9' || digits[0] == '0' && len(s) > 1 {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
