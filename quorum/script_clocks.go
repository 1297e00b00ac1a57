package quorum

import (
	"strconv"
	"strings"
)

// Masters that agree on all else reply with different TTLs and times, because they run a script some milliseconds apart. So the
// wrapper marks each part of a reply that is just what TTL, one of its like, or TIME told the script. Names and comments call
// these parts what clocks told.

// clockMark precedes such an integer or bulk string in an encoded reply.
const clockMark = '@'

// readClocks takes the marks out of the encoded reply, and notes what they marked.
func (a *answer) readClocks() error {
	if strings.IndexByte(a.encoded, clockMark) < 0 || a.encoded[0] == raisedValue || a.encoded[0] == stoppedValue {
		return nil
	}
	var plain, common strings.Builder
	for rest := a.encoded; rest != ""; {
		marked := rest[0] == clockMark
		if marked {
			rest = rest[1:]
		}
		_, after, err := cutHead(rest)
		if err != nil {
			return err
		}
		n := len(rest) - len(after)
		plain.WriteString(rest[:n])
		if marked {
			told := rest[1:n]
			if _, text, isText := strings.Cut(told, ":"); isText {
				told = text
			}
			clock, err := strconv.ParseFloat(strings.TrimSuffix(told, ";"), 64)
			if err != nil {
				return errEncoding
			}
			a.clocks = append(a.clocks, clock)
			common.WriteByte(clockMark)
		} else {
			common.WriteString(rest[:n])
		}
		rest = after
	}
	if len(a.clocks) > 0 {
		a.encoded, a.common = plain.String(), common.String()
	}
	return nil
}

// toldByClocks says whether there is an answer with a part that a clock told.
func (a *answer) toldByClocks() bool { return a != nil && len(a.clocks) > 0 }

// unclocked returns what two replies must have in common to be the same but for what clocks told.
func (a *answer) unclocked() string {
	if a.toldByClocks() {
		return a.common
	}
	return a.encoded
}
