package vote

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A seeing makes of a master's encoded reply the reply that a client sees. So two replies are equal texts if a client sees no
// difference: numbers lose their fraction, statuses and errors are one line, and maps and sets have one order.
type seeing struct {
	plain  strings.Builder
	common strings.Builder // without clock readings
	clocks []float64       // the clock readings
}

// nestedMax is how deep a reply may nest: the wrapper's limit is 100.
const nestedMax = 128

// see adds the value at the beginning of text, with its items, and returns the rest of text.
func (s *seeing) see(text string, depth int) (rest string, err error) {
	marked := text != "" && text[0] == clockMark
	if marked {
		text = text[1:]
	}
	v, rest, err := cutHead(text)
	if err != nil || depth > nestedMax {
		return "", errEncoding
	}
	switch raw := text[:len(text)-len(rest)]; v.Kind {
	case IntValue:
		err = s.add(":"+strconv.FormatInt(v.Int, 10)+";", marked)
	case StatusValue, ErrorValue:
		if v.Kind == ErrorValue { // of a status, Redis keeps the remains of line ends
			v.Text = strings.TrimRight(v.Text, "\r\n")
		}
		v.Text = OneLine(v.Text)
		err = s.add(text[:1]+strconv.Itoa(len(v.Text))+":"+v.Text, marked)
	case ArrayValue:
		if err = s.add(raw, marked); err == nil {
			rest, err = s.seeAll(rest, int(v.Int), depth+1)
		}
	case MapValue:
		if err = s.add(raw, marked); err == nil {
			rest, err = s.sortAll(rest, int(v.Int), 2, depth+1)
		}
	case SetValue:
		if err = s.add(raw, marked); err == nil {
			rest, err = s.sortAll(rest, int(v.Int), 1, depth+1)
		}
	default:
		err = s.add(raw, marked)
	}
	return rest, err
}

// seeAll adds the next n values.
func (s *seeing) seeAll(text string, n, depth int) (rest string, err error) {
	for range n {
		if text, err = s.see(text, depth); err != nil {
			return "", err
		}
	}
	return text, nil
}

// sortAll adds the next n values, in groups of so many, in order.
func (s *seeing) sortAll(text string, n, group, depth int) (rest string, err error) {
	parts := make([]*seeing, n/group)
	for i := range parts {
		parts[i] = &seeing{}
		if text, err = parts[i].seeAll(text, group, depth); err != nil {
			return "", err
		}
	}
	slices.SortFunc(parts, func(a, b *seeing) int {
		return cmp.Or(strings.Compare(a.common.String(), b.common.String()), strings.Compare(a.plain.String(), b.plain.String()))
	})
	for _, p := range parts {
		s.plain.WriteString(p.plain.String())
		s.common.WriteString(p.common.String())
		s.clocks = append(s.clocks, p.clocks...)
	}
	return text, nil
}

// add adds one value without its items; marked says that a clock told the value.
func (s *seeing) add(encoded string, marked bool) error {
	s.plain.WriteString(encoded)
	if !marked {
		s.common.WriteString(encoded)
		return nil
	}
	told := encoded[1:]
	if _, text, isText := strings.Cut(told, ":"); isText {
		told = text
	}
	clock, err := strconv.ParseFloat(strings.TrimSuffix(told, ";"), 64)
	if err != nil {
		return errEncoding
	}
	s.clocks = append(s.clocks, clock)
	s.common.WriteByte(clockMark)
	return nil
}

// OneLine is a text as a status or an error can have it.
func OneLine(text string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
}

// Masters that agree on all else reply with different TTLs and times, because masters run a script some milliseconds apart. So
// the wrapper marks each part of a reply that is just the value of TIME, TTL or a command like TTL. Names and comments
// call these parts clocks or clock readings.

// clockMark precedes such an integer or bulk string in an encoded reply.
const clockMark = '@'

// readSeen turns the encoded reply into the client's view of the reply, takes the marks out, and notes the marked values.
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

// seenOtherwise has a character of each encoded reply that the client sees otherwise.
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
