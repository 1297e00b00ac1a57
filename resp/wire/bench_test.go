package wire

import "testing"

var benchSet = AppendCommand(nil, "SET", "lock:123456789012", "0123456789abcdef0123456789abcdef", "NX", "PX", "30000")

func BenchmarkParser(b *testing.B) {
	p := Parser{Limits: Limits{Args: 1024, Bulk: 1 << 20, Command: 4 << 20}, Authed: true}
	b.ReportAllocs()
	b.SetBytes(int64(len(benchSet)))
	for b.Loop() {
		if n, err := p.Next(benchSet); n != len(benchSet) || err != nil {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkReplies(b *testing.B) {
	replies := []Reply{OK, Null{}, Int(1), Bulk("0123456789abcdef"), Map{Bulk("token"), Bulk("abc"), Bulk("validity"), Int(29000)}}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = buf[:0]
		for _, r := range replies {
			buf = r.AppendTo(buf, true)
		}
	}
}
