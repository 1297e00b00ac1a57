package vouch

import (
	"testing"
	"time"
)

func TestAMarkThatBelongsToAnotherDatabaseTellsThatTheyWereSwapped(t *testing.T) {
	mark := Canary{Process: "p", Lineage: "-", Epoch: 7, Members: "m", Bounds: Bounds{Kept: time.Hour}, Durable: true}
	here := mark
	here.DB, here.Epoch = 1, 8
	if j := Judge(mark.String(), mark, 0); j.Verdict != Same {
		t.Errorf("its own database: %+v", j)
	}
	if j := Judge(mark.String(), here, 0); j.Verdict != Forgot || j.Next != here {
		t.Errorf("another database: %+v", j)
	}
}
