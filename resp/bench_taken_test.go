package resp

import (
	"fmt"
	"testing"
	"time"

	"lockproxy/quorum"
)

// BenchmarkTaken is what the list of locks taken adds to a SET NX and its release, with so many others in it.
func BenchmarkTaken(b *testing.B) {
	for _, others := range []int{0, 60000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			all := newTaken(1 << 16)
			until := time.Now().Add(time.Hour)
			names := make([]string, 1<<16)
			for i := range names {
				names[i] = fmt.Sprintf("lock:%012d", i)
			}
			for _, name := range names[:others] {
				all.note(quorum.Taken{Key: quorum.Key{Name: name}, Token: "t", Fresh: true}, 67, takenLock{client: "c"}, until)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				key := quorum.Key{Name: names[others+i%(len(names)-others)]}
				all.note(quorum.Taken{Key: key, Token: "t", Fresh: true}, 67, takenLock{client: "c"}, until)
				all.drop(key, "t")
			}
		})
	}
}
