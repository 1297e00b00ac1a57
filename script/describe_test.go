package script

import (
	"fmt"
	"strings"
	"testing"
)

// describe writes a Meaning as one line: what it does, from where, and its answers to Done, Extended, NotMine, Absent.
//
//	release KEYS[1] ARGV[1] | 1 - 0 0
func describe(m *Meaning) string {
	if m == nil {
		return "unrecognised"
	}
	var parts []string
	for i := range m.cases {
		parts = append(parts, m.cases[i].describe())
	}
	line := strings.Join(parts, "; ") + " |"
	for _, a := range m.answers {
		if a.known {
			line += " " + a.value.describe()
		} else {
			line += " -"
		}
	}
	return line
}

func (c *choice) describe() string {
	var b strings.Builder
	for _, w := range c.when {
		op := w.op
		if !w.holds {
			op = "not " + op
		}
		against := w.text
		if w.numeric {
			against = fmt.Sprint(w.number)
		}
		fmt.Fprintf(&b, "if %v %s %q: ", w.source, op, against)
	}
	fmt.Fprintf(&b, "%v %v", c.op, c.key)
	if c.token.from != nowhere {
		fmt.Fprintf(&b, " %v", c.token)
	}
	switch c.ttl.kind {
	case forever:
		b.WriteString(" forever")
	case limited:
		b.WriteString(" " + c.ttl.describe())
	}
	return b.String()
}

func (l lifetime) describe() string {
	s := fmt.Sprint(l.amount.offset)
	if l.amount.source.from != nowhere {
		s = l.amount.source.String()
		if l.amount.scale != 1 {
			s = fmt.Sprint(l.amount.scale) + "*" + s
		}
		if l.amount.offset != 0 {
			s += fmt.Sprintf("%+g", l.amount.offset)
		}
	}
	if l.amount.added {
		s = "+" + s
	}
	if l.seconds {
		return s + "s"
	}
	return s + "ms"
}

func (v Value) describe() string {
	switch v.Kind {
	case Nil:
		return "nil"
	case Int:
		return fmt.Sprint(v.Int)
	case Status:
		return "+" + v.Text
	case Error:
		return "-" + v.Text
	case Bulk:
		return fmt.Sprintf("%q", v.Text)
	case heldValue:
		return "VALUE"
	case remainingMillis:
		return "PTTL"
	case remainingSeconds:
		return "TTL"
	}
	var items []string
	for _, item := range v.Items {
		items = append(items, item.describe())
	}
	return "[" + strings.Join(items, " ") + "]"
}

// recognised fails the test unless the text has this description.
func recognised(t *testing.T, text, want string) {
	t.Helper()
	if got := describe(recognise(text, "SHA")); got != want {
		t.Errorf("got  %s\nwant %s\nfor\n%s", got, want, text)
	}
}
