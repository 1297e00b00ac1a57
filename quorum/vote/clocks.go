package vote

import "strings"

// Masters that agree on all else reply with different TTLs and times, because they run a script some milliseconds apart. So the
// wrapper marks each part of a reply that is just what TTL, one of its like, or TIME told the script. Names and comments call
// these parts what clocks told.

// clockMark precedes such an integer or bulk string in an encoded reply.
const clockMark = '@'

// readSeen makes the encoded reply what its client will see, takes the marks out of it, and notes what they marked.
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

// unclocked returns what two replies must have in common to be the same but for what clocks told.
func (a *Answer) unclocked() string {
	if a.toldByClocks() {
		return a.common
	}
	return a.encoded
}
