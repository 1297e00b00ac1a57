package wire

import (
	"fmt"
	"strconv"
)

// ParseInt reads a signed 64-bit number as strictly as Redis does: no plus sign, no leading zero, no space.
func ParseInt(s string) (int64, bool) {
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

// SizeText is n bytes as written in the configuration, in kb, mb or gb where exact.
func SizeText(n int) string {
	switch {
	case n > 0 && n%(1<<30) == 0:
		return fmt.Sprintf("%dgb", n>>30)
	case n > 0 && n%(1<<20) == 0:
		return fmt.Sprintf("%dmb", n>>20)
	case n > 0 && n%(1<<10) == 0:
		return fmt.Sprintf("%dkb", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
