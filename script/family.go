package script

import (
	"fmt"
	"slices"
	"strings"
)

// A Family is a row of the table of known scripts that cannot be understood as an operation on one string, and so run
// by vote. The Family says how the replies of N masters merge.
type Family struct {
	SHA   string // of the text; or
	Shape string // of any text of this shape

	Kind    FamilyKind
	Granted Grant // of Takes, Extends and Releases: the replies that grant
	// Holder is the place in ARGV, from 1, of the caller's field in the hash KEYS[1], which counts the caller's holds;
	// 0: none. A lock is granted only if a quorum agrees on the count. Releases need Holder if the reply may be 0
	// because other clients keep the lock, while the caller holds nothing.
	Holder int
	// Queues says that a refused client waits in a queue: KEYS[2] is a list of the waiting clients' fields (see
	// Holder), and KEYS[3] a sorted set of the fields by when their places time out.
	Queues bool
	// Each says that the reply of Extends is an array with a 1 or 0 for each of several locks.
	Each bool
	// Blind says that the script takes a lock from any holder: masters that the script reaches late do not run it.
	Blind bool
	// Permits is the place in ARGV, from 1, of the number of clients that may hold the lock at once; 0: none, and one
	// client may. With any number but 1 the script is refused.
	Permits int
	// Derived says that the text makes names of further keys from its KEYS: each name is an element of KEYS, followed
	// by a colon and more.
	Derived bool

	Library string // the library that sends the text
	Does    string // the purpose, with the versions that have the text
	Why     string // of Refused
}

// Name returns library and purpose, as far as they are known.
func (f *Family) Name() string {
	if f.Library == "" || f.Does == "" {
		return f.Library + f.Does
	}
	return f.Library + ", " + f.Does
}

// A FamilyKind says how a quorum treats a script.
type FamilyKind uint8

// The kinds of families.
const (
	Agrees   FamilyKind = iota // unknown: a quorum must do and answer the same
	Takes                      // takes a lock
	Extends                    // extends a lock
	Releases                   // releases a lock
	Tells                      // its reply matters to nobody: the commonest is as good as any
	Asks                       // the reply is a number: the largest that a quorum reaches is right
	Refused                    // cannot be voted on safely
)

var familyKindNames = [...]string{"agree", "take", "extend", "release", "tell", "ask", "refuse"}

func (k FamilyKind) String() string { return familyKindNames[k] }

// Refuses says why the script cannot be voted on with these arguments, or nothing.
func (f *Family) Refuses(args []string) string {
	switch {
	case f.Kind == Refused:
		return f.Why
	case f.Permits > 0 && (f.Permits > len(args) || args[f.Permits-1] != "1"):
		return whyCounter
	}
	return ""
}

// Grants says whether replies can grant: Family.Granted has the replies that do.
func (k FamilyKind) Grants() bool { return k == Takes || k == Extends || k == Releases }

// ParseFamilyKind is the inverse of String.
func ParseFamilyKind(name string) (FamilyKind, error) {
	k, err := parseName(name, familyKindNames[:])
	return FamilyKind(k), err
}

// A Grant names the replies that grant.
type Grant uint8

// The replies that grant.
const (
	GrantPositive Grant = iota // an integer above 0
	GrantNil                   // nil
	GrantNotNil                // anything but nil
	GrantOK                    // OK, as a status or as a string
	GrantKeys                  // an integer: how many KEYS there are
	GrantFirst                 // a list with an integer above 0 at its head
)

var grantNames = [...]string{"positive", "nil", "not nil", "OK", "keys", "first"}

func (g Grant) String() string { return grantNames[g] }

// ParseGrant is the inverse of String.
func ParseGrant(name string) (Grant, error) {
	g, err := parseName(name, grantNames[:])
	return Grant(g), err
}

// parseName returns the place of a name. The error lists all names.
func parseName(name string, names []string) (int, error) {
	if i := slices.Index(names, name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("%q; write %s", name, strings.Join(names, ", "))
}

// families is a table with its indexes.
type families struct {
	bySHA, byShape map[string]*Family
}

func newFamilies(rows []Family) *families {
	f := &families{bySHA: make(map[string]*Family), byShape: make(map[string]*Family)}
	for i := range rows {
		r := &rows[i]
		if r.SHA != "" {
			f.bySHA[r.SHA] = r
		} else {
			f.byShape[r.Shape] = r
		}
	}
	return f
}

func (f *families) find(sha, text string) *Family {
	if r := f.bySHA[sha]; r != nil || len(f.byShape) == 0 {
		return r
	}
	shape, ok := shapeOf(text)
	if !ok {
		return nil
	}
	return f.byShape[shape]
}

var known = newFamilies(knownFamilies)

// Families returns the table of known scripts, in a good order for reading.
func Families() []Family { return knownFamilies }
