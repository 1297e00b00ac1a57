package hot

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"lockproxy/quorum"
)

var start = time.Unix(1e9, 0)

func key(name string) quorum.Key { return quorum.Key{Name: name} }

func TestASteadyWeightIsToldAsItIsAMinute(t *testing.T) {
	var s Sketch
	now := start
	for range 600 {
		s.Add(key("job"), 1, now)
		now = now.Add(time.Second)
		if top := s.Top(1, now); now.Sub(start) > 8*time.Minute && math.Abs(top[0].PerMinute-60) > 2 {
			t.Fatalf("after %v: %+v", now.Sub(start), top)
		}
	}
	if top := s.Top(1, now.Add(20*time.Minute)); len(top) > 0 {
		t.Errorf("twenty minutes later: %+v", top)
	}
}

// A few hot keys stand out of any number of others, and no key is told more than it had.
func TestTheHottestKeysAreFoundAmongMany(t *testing.T) {
	var s Sketch
	had := make(map[string]float64)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 100_000 {
		name := fmt.Sprint("cold", random.IntN(50_000))
		if i%10 == 0 {
			name = fmt.Sprint("hot", i/10%3)
		}
		had[name]++
		s.Add(key(name), 1, start)
	}
	top := s.Top(3, start)
	for _, k := range top {
		if !strings.HasPrefix(k.Name, "hot") || k.PerMinute > had[k.Name] || k.PerMinute < had[k.Name]/2 {
			t.Errorf("%s: %v, and it had %v", k.Name, k.PerMinute, had[k.Name])
		}
	}
	if len(top) != 3 || len(s.sums) > keysMax || len(s.at) != len(s.sums) {
		t.Errorf("%d are told, %d are counted", len(top), len(s.sums))
	}
}

func TestALongNameIsCut(t *testing.T) {
	var s Sketch
	s.Add(key(strings.Repeat("a", 1<<20)), 1, start)
	if top := s.Top(1, start); len(top[0].Name) != nameMax {
		t.Errorf("%d bytes are kept", len(top[0].Name))
	}
}

func TestAnyGoroutineMayAdd(t *testing.T) {
	var s Sketch
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 1000 {
				s.Add(key(fmt.Sprint(i, j)), 1, start.Add(time.Duration(j)*time.Second))
				s.Top(3, start.Add(time.Duration(j)*time.Second))
			}
		})
	}
	all.Wait()
}

func BenchmarkAddOfEverOtherKeys(b *testing.B) {
	var s Sketch
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprint("job:", i)
	}
	b.ReportAllocs()
	for i := range b.N {
		s.Add(key(names[i%len(names)]), 1, start)
	}
}
