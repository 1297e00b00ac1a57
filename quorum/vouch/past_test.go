package vouch

import "testing"

// A server that bears a durable mark, and what it tells of its life now.
func TestWhatAServerTellsOfItsLife(t *testing.T) {
	mark := Canary{Process: "p", Lineage: "-", Epoch: 5, Members: "m", Durable: true, Past: Past{Evicted: 2, Copies: 1, Databases: 16, Place: "here"}}
	type judged struct {
		verdict Finding
		reason  string
		durable bool
		epoch   int64
	}
	same, forgets, loses := judged{Same, "", true, 5}, judged{Forgot, Evicted, true, 9}, judged{Renew, "", false, 6}
	for name, test := range map[string]struct {
		change func(now *Canary)
		want   judged
	}{
		"nothing new":        {func(*Canary) {}, same},
		"it evicted":         {func(c *Canary) { c.Evicted = 3 }, forgets},
		"counted anew":       {func(c *Canary) { c.Evicted = 0 }, forgets},
		"a replica came":     {func(c *Canary) { c.Copies = 2 }, judged{Renew, "", true, 6}},
		"its files moved":    {func(c *Canary) { c.Place = "there" }, loses},
		"it is not told":     {func(c *Canary) { c.Place, c.Databases = "", 0 }, same},
		"written anew":       {func(c *Canary) { c.Rewriting, c.FirstFile, c.Watched = true, false, true }, same},
		"just turned on":     {func(c *Canary) { c.Rewriting, c.FirstFile = true, false }, loses},
		"written before":     {func(c *Canary) { c.FirstFile = false }, same},
		"restarted":          {restarted(func(*Canary) {}), judged{Renew, "", true, 5}},
		"and evicted":        {restarted(func(c *Canary) { c.Evicted = 1 }), forgets},
		"and was copied":     {restarted(func(c *Canary) { c.Copies = 1 }), judged{Renew, "", true, 6}},
		"elsewhere":          {restarted(func(c *Canary) { c.Place = "there" }), judged{Forgot, Elsewhere, true, 9}},
		"nobody knows where": {restarted(func(c *Canary) { c.Place = "" }), judged{Forgot, Elsewhere, true, 9}},
		"on fewer":           {restarted(func(c *Canary) { c.Databases = 15 }), judged{Forgot, Fewer, true, 9}},
		"on more":            {restarted(func(c *Canary) { c.Databases = 17 }), judged{Renew, "", true, 5}},
		"on a dump":          {restarted(func(c *Canary) { c.FirstFile = false }), judged{Forgot, NotFirst, true, 9}},
		"and early":          {restarted(func(c *Canary) { c.Early, c.Copies = true, 3 }), same},
	} {
		now := mark
		now.Epoch, now.FirstFile = 9, true
		test.change(&now)
		j := Assess(mark.String(), now, 5)
		if got := (judged{j.Finding, j.Reason, j.Next.Durable, j.Next.Epoch}); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
		if again := Assess(j.Next.String(), now, j.Next.Epoch); again.Finding != Same {
			t.Errorf("%s: marked %v, and then judged %+v", name, j.Next, again)
		}
	}
}

// restarted is another process, that has counted nothing yet.
func restarted(change func(*Canary)) func(*Canary) {
	return func(now *Canary) {
		now.Process, now.Evicted, now.Copies = "q", 0, 0
		change(now)
	}
}

// Whoever sets the place back does not bring the file back.
func TestAFileThatIsElsewhereStaysSoUntilARestart(t *testing.T) {
	was := Canary{Process: "p", Lineage: "-", Epoch: 5, Members: "m", Durable: true, Past: Past{Place: "here"}}
	now := was
	now.Place = "there"
	was = Assess(was.String(), now, 5).Next
	now.Place = "here"
	j := Assess(was.String(), now, 6)
	if j.Next.Durable || !j.Next.Moved {
		t.Fatalf("%+v", j)
	}
	if j = Assess(j.Next.String(), now, 6); j.Finding != Same {
		t.Fatalf("%+v", j)
	}
	now.Process, now.FirstFile = "q", true
	if j = Assess(j.Next.String(), now, 6); j.Finding != Forgot || !j.Next.Durable {
		t.Fatalf("after a restart: %+v", j)
	}
}
