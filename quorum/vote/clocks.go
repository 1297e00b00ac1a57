package vote

import "strings"

// Masters that agree on all else reply with different TTLs and times, because they run a script some milliseconds apart. So the
// wrapper marks each part of a reply that is just the value that TIME, TTL or a command like TTL gave the script. Names and comments
// call these parts clocks or clock readings.

// clockMark precedes such an integer or bulk string in an encoded reply.
const clockMark = '@'

// readSeen turns the encoded reply into the reply that its client will see, takes the marks out, and notes the marked values.
func (a *Answer) readSeen() error {
	if !strings.ContainsAny(a.encoded, seenOtherwise) || a.encoded[0] == raisedValue || a.encoded[0] == stoppedValue {
		return nil
	}
	var s seeing
	rest, err := s.see(a.encoded, 0)
	if err != nil || rest != "" {
		return errEncoding
	}
	a.encoded = s.plain.String()
	if len(s.clocks) > 0 {
		a.clocks, a.common = s.clocks, s.common.String()
	}
	return nil
}

// seenOtherwise are the characters of which one is in each encoded reply that its client does not see as it is encoded.
const seenOtherwise = "@%~+-.en"

// toldByClocks says whether there is an answer with a part that a clock told.
func (a *Answer) toldByClocks() bool { return a != nil && len(a.clocks) > 0 }

// unclocked returns the part on which two replies must agree to be the same but for clock readings.
func (a *Answer) unclocked() string {
	if a.toldByClocks() {
		return a.common
	}
	return a.encoded
}
