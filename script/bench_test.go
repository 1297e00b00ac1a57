package script

import "testing"

func BenchmarkRecogniseRelease(b *testing.B) { benchmarkRecognise(b, releaseText) }

func BenchmarkRecogniseExtendByArgument(b *testing.B) { benchmarkRecognise(b, chooseText) }

func benchmarkRecognise(b *testing.B, text string) {
	b.ReportAllocs()
	for b.Loop() {
		if recognise(text, "SHA") == nil {
			b.Fatal("not recognised")
		}
	}
}

func BenchmarkLoadKnown(b *testing.B) {
	c := NewCache(100)
	c.Load(releaseText)
	b.ReportAllocs()
	for b.Loop() {
		c.Load(releaseText)
	}
}

func BenchmarkLookup(b *testing.B) {
	c := NewCache(100)
	s, _ := c.Load(releaseText)
	b.ReportAllocs()
	for b.Loop() {
		c.Lookup(s.SHA)
	}
}

func BenchmarkLookupParallel(b *testing.B) {
	c := NewCache(100)
	s, _ := c.Load(releaseText)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Lookup(s.SHA)
		}
	})
}

func BenchmarkBindAndAnswer(b *testing.B) {
	m := recognise(extendText, "SHA")
	keys, args := []string{"k"}, []string{"me", "30000"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Bind(keys, args); err != nil {
			b.Fatal(err)
		}
		m.Answer(Outcome{Result: Done})
	}
}
