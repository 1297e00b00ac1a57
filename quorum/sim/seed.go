package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// A Class is a set of events that happen in some worlds only. Its random draws are from streams of their own, so that a
// world without the class stays the same in all else.
type Class uint

// The classes.
const (
	Fenced   Class = 1 << iota // clients ask for fences (fences.go)
	Mixed                      // each proxy has settings of its own
	Voted                      // clients also lock by scripts that run by vote (votes.go)
	Several                    // EXECs on several keys, values told to one client only, two databases, masters that refuse to write (several.go)
	Moved                      // locks are renamed and copied (moves.go), or shared by readers
	Crowded                    // clients and faults meet at the same moment and place (crowd.go)
	Operated                   // operators are at work (operated.go)
	Spoken                     // clients speak the protocol (front.go)
	Far                        // masters are far away, and clocks step (far.go)
	Piped                      // lanes write batches behind batches under way to any master (far.go)
	Queued                     // clients that speak queue for one lock, and hand it over (front.go)
)

var classNames = []string{"fenced", "mixed", "voted", "several", "moved", "crowded", "operated", "spoken", "far", "piped", "queued"}

// kinds is the number of worlds that OfKind makes of one.
const kinds = 192

// A Seed decides a world by its classes and a number. As text a seed is "fenced+voted/17", or "17" without a class.
type Seed struct {
	Classes Class
	Number  uint64
}

// In says whether the seed is of class c, or of all classes of c.
func (s Seed) In(c Class) bool { return s.Classes&c == c }

// OfKind returns the seed with the n-th combination of classes, so that all combinations have their turns. No
// combination has Spoken.
func (s Seed) OfKind(n uint64) Seed {
	for i, c := range []Class{Fenced, Mixed, Crowded, Voted, Several, Moved} {
		if n>>i&1 == 1 {
			s.Classes |= c
		}
	}
	if n%3 == 2 {
		s.Classes |= Operated
	}
	if n%7 == 6 {
		s.Classes = Far
	}
	if n%5 == 3 && s.Classes != Far {
		s.Classes |= Piped
	}
	return s
}

func (s Seed) String() string {
	if s.Classes == 0 {
		return strconv.FormatUint(s.Number, 10)
	}
	return fmt.Sprintf("%v/%d", s.Classes, s.Number)
}

func (c Class) String() string {
	var names []string
	for i, name := range classNames {
		if c>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// MarshalText writes the text.
func (s Seed) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the text.
func (s *Seed) UnmarshalText(text []byte) error {
	names, number, classed := strings.Cut(string(text), "/")
	if !classed {
		names, number = "", names
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return fmt.Errorf("a seed is %s/number, of some of these classes: %q is none", strings.Join(classNames, "+"), text)
	}
	*s = Seed{Number: n}
	if !classed {
		return nil
	}
	s.Classes, err = ParseClasses(names)
	return err
}

// ParseClasses reads names of classes with + between them.
func ParseClasses(text string) (Class, error) {
	var c Class
next:
	for name := range strings.SplitSeq(text, "+") {
		for i := range classNames {
			if classNames[i] == name {
				c |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("%q is no class of worlds: they are %s", name, strings.Join(classNames, ", "))
	}
	return c, nil
}
