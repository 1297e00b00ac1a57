package vouch

import (
	"testing"
	"time"
)

func TestAMarkThatBelongsToAnotherDatabaseTellsThatTheyWereSwapped(t *testing.T) {
	mark := Canary{Process: "p", Lineage: "-", Epoch: 7, Members: "m", Bounds: Bounds{Kept: time.Hour}, Durable: true}
	here := mark
	here.DB, here.Epoch = 1, 8
	if j := Assess(mark.String(), mark, 0); j.Finding != Same {
		t.Errorf("its own database: %+v", j)
	}
	if j := Assess(mark.String(), here, 0); j.Finding != Forgot || j.Next != here {
		t.Errorf("another database: %+v", j)
	}
}
