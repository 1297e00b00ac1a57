package pubsub

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lockproxy/quorum"
	"lockproxy/quorum/rules"
)

func topicOf(name string) Topic { return Topic{Kind: Channel, Name: name} }

// pub is the n-th publication of the publisher that the name begins with.
func pub(name string, n uint64) publication {
	return publication{quorum.Publication{Publisher: name[:1], Order: n}, topicOf("c")}
}

func payloads(out []Message) string {
	var all []string
	for _, m := range out {
		all = append(all, m.Payload)
	}
	return strings.Join(all, " ")
}

func TestAMessageIsDeliveredWithItsQuorumCopy(t *testing.T) {
	for _, c := range []struct {
		masters int
		copies  string // who sends one: master, message
		want    string
	}{
		{3, "0a1 1a1 2a1", "a1@1"},
		{3, "0a1 1a1 2a1 0a2 1a2", "a1@1 a2@4"},
		{3, "0a1 0a2 1a1 1a2 2a1 2a2", "a1@2 a2@3"},
		{3, "0a1 0a1 0a1 2a1", "a1@3"}, // one master has one vote
		{3, "2a1 1b1 0a1 0b1", "a1@2 b1@3"},
		{3, "0a2 1a1 2a1 2a2", "a1@2 a2@3"}, // the masters differ in their order
		{1, "0a1 0a2 0a1", "a1@0 a2@1"},
		{5, "0a1 1a1 2a1 3a1 4a1", "a1@2"},
	} {
		s := newSieve(rules.Quorum(c.masters), time.Second)
		var got []string
		for i, copied := range strings.Fields(c.copies) {
			name := copied[1:]
			for _, m := range s.add(pub(name, uint64(name[1])), Message{Payload: name}, int(copied[0]-'0'), 0, nil) {
				got = append(got, fmt.Sprintf("%s@%d", m.Payload, i))
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %s, want %s", c.copies, got, c.want)
		}
	}
}

func TestAMessageOfWhichTooFewCopiesComeIsDeliveredAfterPatience(t *testing.T) {
	s := newSieve(2, 100*time.Millisecond)
	s.add(pub("a", 1), Message{Payload: "first"}, 0, 0, nil)
	s.add(pub("a", 2), Message{Payload: "second"}, 1, 30*time.Millisecond, nil)
	if at, any := s.next(); !any || at != 100*time.Millisecond {
		t.Errorf("due at %v, %v", at, any)
	}
	if out := s.due(99*time.Millisecond, nil); len(out) > 0 {
		t.Errorf("too early: %v", out)
	}
	if got := payloads(s.due(100*time.Millisecond, nil)); got != "first" {
		t.Errorf("got %q", got)
	}
	if got := payloads(s.add(pub("a", 2), Message{Payload: "second"}, 2, 110*time.Millisecond, nil)); got != "second" {
		t.Errorf("got %q", got)
	}
	if out := s.add(pub("a", 1), Message{Payload: "first"}, 2, 120*time.Millisecond, nil); len(out) > 0 {
		t.Errorf("twice: %v", out)
	}
	if _, any := s.next(); any {
		t.Error("something waits that was delivered")
	}
}

// A trial is messages on their way from masters that have run them in their own order, or not at all.
type trial struct {
	quorum  int
	streams [][]publication // by master: the copies that are still to come
}

func drawTrial(t *rapid.T) *trial {
	n := rapid.SampledFrom([]int{1, 2, 3, 5}).Draw(t, "masters")
	tr := &trial{quorum: rules.Quorum(n), streams: make([][]publication, n)}
	var all []publication
	for _, p := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 1, 8).Draw(t, "publications") {
		all = append(all, publication{quorum.Publication{Publisher: p, Order: uint64(len(all) + 1)}, topicOf("c")})
	}
	for i := range tr.streams {
		order := rapid.Permutation(all).Draw(t, "order")
		if rapid.Bool().Draw(t, "in order") {
			order = slices.Clone(all)
		}
		for _, p := range order {
			for range rapid.SampledFrom([]int{1, 1, 1, 0, 2}).Draw(t, "copies") { // lost, or twice
				tr.streams[i] = append(tr.streams[i], p)
			}
		}
	}
	return tr
}

// next draws which copy comes now.
func (tr *trial) next(t *rapid.T) (p publication, master int, ok bool) {
	var left []int
	for i, s := range tr.streams {
		if len(s) > 0 {
			left = append(left, i)
		}
	}
	if len(left) == 0 {
		return publication{}, 0, false
	}
	i := rapid.SampledFrom(left).Draw(t, "master")
	p = tr.streams[i][0]
	tr.streams[i] = tr.streams[i][1:]
	return p, i, true
}

// An oracle knows all copies that came, and says when each message is to be delivered.
type oracle struct {
	quorum   int
	patience time.Duration
	heard    map[publication]map[int]bool
	first    map[publication]time.Duration
	done     map[publication]bool
	order    []publication // by first copy
}

func (o *oracle) add(p publication, master int, now time.Duration) []publication {
	if o.heard[p] == nil {
		o.heard[p], o.first[p] = map[int]bool{}, now
		o.order = append(o.order, p)
	}
	o.heard[p][master] = true
	if len(o.heard[p]) >= o.quorum && !o.done[p] {
		o.done[p] = true
		return []publication{p}
	}
	return nil
}

func (o *oracle) due(now time.Duration) []publication {
	var out []publication
	for _, p := range o.order {
		if !o.done[p] && now-o.first[p] >= o.patience {
			o.done[p] = true
			out = append(out, p)
		}
	}
	return out
}

func named(p publication) string { return fmt.Sprint(p.Publisher, p.Order) }

// Over interleavings of copies that are lost, doubled, late and in other orders, the sieve says what the rule says.
func TestTheSieveDeliversAsTheRuleSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawTrial(t)
		const patience = 100 * time.Millisecond
		s := newSieve(tr.quorum, patience)
		o := &oracle{tr.quorum, patience, map[publication]map[int]bool{}, map[publication]time.Duration{}, map[publication]bool{}, nil}
		now := time.Duration(0)
		check := func(out []Message, want []publication) {
			var names []string
			for _, p := range want {
				names = append(names, named(p))
			}
			if got := payloads(out); got != strings.Join(names, " ") {
				t.Fatalf("at %v: got %q, want %q", now, got, names)
			}
		}
		for {
			now += rapid.SampledFrom([]time.Duration{0, 0, 1, 10, 60, 100, 3000}).Draw(t, "pause") * time.Millisecond
			check(s.due(now, nil), o.due(now))
			p, master, ok := tr.next(t)
			if !ok {
				break
			}
			check(s.add(p, Message{Payload: named(p)}, master, now, nil), o.add(p, master, now))
		}
		now += patience
		check(s.due(now, nil), o.due(now))
		if len(o.done) != len(o.heard) || s.held != 0 {
			t.Fatalf("%d of %d delivered, %d bytes held", len(o.done), len(o.heard), s.held)
		}
	})
}

// However late copies come, no message is delivered twice, and none is lost unless a later one was forgotten before.
func TestWhatTheSieveForgetsIsNotDeliveredTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawTrial(t)
		s := newSieve(tr.quorum, 100*time.Millisecond)
		now, delivered := time.Duration(0), map[string]int{}
		heard := map[publication]time.Duration{}
		take := func(out []Message) {
			for _, m := range out {
				if delivered[m.Payload]++; delivered[m.Payload] > 1 {
					t.Fatalf("%s came twice", m.Payload)
				}
			}
		}
		var mayBeLost []string
		for {
			now += rapid.SampledFrom([]time.Duration{0, 1, 29, 31, 61}).Draw(t, "pause") * time.Second
			take(s.due(now, nil))
			p, master, ok := tr.next(t)
			if !ok {
				break
			}
			if _, known := heard[p]; !known {
				heard[p] = now
				for other, since := range heard {
					if other.Publisher == p.Publisher && other.Order > p.Order && now-since > remembered {
						mayBeLost = append(mayBeLost, named(p))
						break
					}
				}
			}
			take(s.add(p, Message{Payload: named(p)}, master, now, nil))
		}
		take(s.due(now+time.Second, nil))
		for p := range heard {
			if delivered[named(p)] == 0 && !slices.Contains(mayBeLost, named(p)) {
				t.Fatalf("%s was lost", named(p))
			}
		}
	})
}

func TestTheSieveIsBounded(t *testing.T) {
	s := newSieve(2, time.Hour)
	count := 0
	for i := range uint64(knownMax + 100) {
		count += len(s.add(pub("a", i+1), Message{Payload: "x"}, 0, 0, nil))
	}
	if count != 100 || len(s.known) != knownMax || s.publishers["a"].floor != 100 {
		t.Errorf("%d known, %d delivered early", len(s.known), count)
	}
	s = newSieve(2, time.Hour)
	big := strings.Repeat("x", heldMax/10)
	count = 0
	for i := range uint64(25) {
		count += len(s.add(pub("a", i+1), Message{Payload: big}, 0, 0, nil))
	}
	if count != 15 || s.held > heldMax {
		t.Errorf("%d bytes held, %d delivered early", s.held, count)
	}
	s = newSieve(1, time.Hour)
	for i := range publishersMax + 100 {
		p := publication{quorum.Publication{Publisher: fmt.Sprint(i), Order: 1}, topicOf("c")}
		s.add(p, Message{}, 0, time.Duration(i)*time.Minute*2, nil)
	}
	if len(s.publishers) > publishersMax || s.publishers["1"] != nil || s.publishers[fmt.Sprint(publishersMax)] == nil {
		t.Errorf("%d publishers", len(s.publishers))
	}
}

func TestMessagesThatWereDeliveredAreForgotten(t *testing.T) {
	s := newSieve(2, time.Hour)
	for i := range uint64(10_000) {
		s.add(pub("a", i+1), Message{}, 0, 0, nil)
		if got := s.add(pub("a", i+1), Message{}, 1, 0, nil); len(got) != 1 {
			t.Fatalf("message %d: %v", i, got)
		}
	}
	if n := cap(s.waiting.items); n > 100 {
		t.Errorf("there is room for %d that wait, and none does", n)
	}
}
