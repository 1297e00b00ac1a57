package quorum

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestProxiesThatTakeOtherNamesForLocksHearOfEachOther(t *testing.T) {
	for _, test := range []struct {
		other Names
		told  bool
	}{{Names{"u", "a"}, false}, {Names{"u", "b"}, true}, {Names{"another", "b"}, false}, {Names{}, false}} {
		var log bytes.Buffer
		inWorldWith(t, 3, Config{Names: Names{"u", "a"}, Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(w *world) {
			other, err := New(Config{Names: test.other}, w.ms)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * namesWarn)
			other.Close()
			heard := w.Stats().OtherNames
			if (heard > 0) != test.told || (other.Stats().OtherNames > 0) != test.told {
				t.Errorf("%v: heard %d times, and the other %d", test.other, heard, other.Stats().OtherNames)
			}
			time.Sleep(namesLast + namesEvery) // what it has said is over
			heard = w.Stats().OtherNames
			time.Sleep(2 * namesEvery)
			if again := w.Stats().OtherNames; again != heard {
				t.Errorf("%v: heard %d times, and %d after the other proxy was gone", test.other, heard, again)
			}
		})
		lines := strings.Count(log.String(), "takes other names for locks")
		if test.told && (lines < 2 || lines > 4 || !strings.Contains(log.String(), "upstream=u here=a there=b")) || !test.told && lines > 0 {
			t.Errorf("%v: %d lines in\n%s", test.other, lines, &log)
		}
	}
}
