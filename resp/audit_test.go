package resp

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/vote"
	"lockproxy/script"
)

// notes are what an audit log was told.
type notes struct {
	mu  sync.Mutex
	all []Event
}

func (n *notes) note(e Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, e)
}

// take returns what was told since the last take, as text.
func (n *notes) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for _, e := range n.all {
		text := fmt.Sprintf("%s %s %s %d %s", e.What, e.Key.Name, e.Token, e.Fence>>50, e.Client.Name)
		if e.Cause != "" {
			text += " " + e.Cause
		}
		all = append(all, text)
	}
	n.all = nil
	return strings.Join(all, "; ")
}

func TestTheAuditLogIsToldWhatBecomesOfLocks(t *testing.T) {
	told := &notes{}
	r := newRig(t, Config{Audit: told.note})
	c := r.dial()
	c.ask("CLIENT", "SETNAME", "w")
	const remove = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
	for _, step := range []struct {
		command, want string
	}{
		{"SET k me NX PX 60000", "granted k me 0 w"},
		{"SET k me NX PX 60000", ""}, // a refusal without waiting
		{"LOCK k 60000 TOKEN you WAIT 1", "refused k you 0 w held by another"},
		{"EXTEND k me 60000", "extended k me 0 w"},
		{"EXTEND k you 60000", ""},
		{"PEXPIRE k 50000", "extended k  0 w"},
		{"UNLOCK k you", ""},
		{"UNLOCK k me", "released k me 0 w"},
		{"LOCK k 60000 TOKEN me", "granted k me 1 w"},
		{"EXTEND k me 60000", "extended k me 1 w"},
		{"UNLOCK k me", "released k me 1 w"},
		{"SET k me NX PX 60000", "granted k me 0 w"},
		{"UNLOCK k me", "released k me 0 w"},
		{"LOCK k 60000 TOKEN me", "granted k me 2 w"},
		{"LOCK k 60000 TOKEN you WAIT 1", "refused k you 0 w held by another"},
		{"FORCEUNLOCK k", "forced k me 2 w"},
		{"FORCEUNLOCK k", ""},
		{"SETNX k me", "granted k me 0 w"},
		{"DEL k none", "deleted k me 0 w"},
		{"LOCK k 60000 TOKEN me HOLD", "granted k me 3 w"},
	} {
		c.ask(strings.Fields(step.command)...)
		c.ask("PING") // answered when the reply before is written, and told of
		if got := told.take(); got != step.want {
			t.Errorf("%s: told %q, want %q", step.command, got, step.want)
		}
	}
	c.ask("SET", "s", "me", "NX", "PX", "60000")
	c.ask("PING") // a grant is told when its reply is written; a release may be told before
	c.ask("EVAL", remove, "1", "s", "me")
	if got := told.take(); got != "granted s me 0 w; released s me 0 w" {
		t.Errorf("a script's release: told %q", got)
	}
	_ = c.Close()
	waitFor(t, "the end of the connection is not told", func() bool {
		return told.take() == "released k me 3 w the connection of LOCK … HOLD ended"
	})
}

func TestTheAuditLogIsToldOfScriptsByVote(t *testing.T) {
	for _, test := range []struct {
		name   string
		family script.Family
		reply  int64
		want   string
	}{
		{"takes", script.Family{Kind: script.Takes}, 2, "granted k  0 "},
		{"takes all its keys", script.Family{Kind: script.Takes, Granted: script.GrantKeys}, 2, "granted k  0 ; granted j  0 "},
		{"extends each key", script.Family{Kind: script.Extends, Each: true}, 2, "extended k  0 ; extended j  0 "},
		{"releases", script.Family{Kind: script.Releases, Granted: script.GrantNotNil}, 1, "released k  0 "},
		{"releases an inner hold", script.Family{Kind: script.Releases, Granted: script.GrantNotNil}, 0, ""},
		{"unlocks by force", script.Family{Kind: script.Releases, Blind: true}, 1, "forced k  0 "},
	} {
		t.Run(test.name, func(t *testing.T) {
			told := &notes{}
			r := newRig(t, Config{Audit: told.note})
			known, _ := r.server.scripts.Load(unheardOf)
			test.family.SHA = known.SHA
			r.server.scripts = script.NewCache(10, test.family)
			r.engine.reply, r.engine.locking = vote.Value{Kind: vote.IntValue, Int: test.reply}, test.family.Kind != script.Releases
			c := r.dial()
			c.ask("EVAL", unheardOf, "2", "k", "j")
			c.ask("PING")
			if got := told.take(); got != test.want {
				t.Errorf("told %q, want %q", got, test.want)
			}
		})
	}
}

// The reply cannot be written, so the lock is undone: nobody was granted anything.
func TestTheAuditLogIsNotToldOfALockThatNobodyGot(t *testing.T) {
	told := &notes{}
	r := newRig(t, Config{Audit: told.note})
	arrived := r.engine.hold()
	c := r.dial()
	c.send(words("SET k me NX PX 60000"))
	<-arrived
	_ = c.Close()
	waitFor(t, "the client stays", func() bool { return r.server.Stats().Clients == 0 })
	r.engine.release(0)
	if got := told.take(); got != "" {
		t.Errorf("told %q", got)
	}
}

// holderOf returns what LOCKS tells of the client of k.
func holderOf(c *client) string {
	_, who, _ := strings.Cut(rounded(c.ask("LOCKS", "MATCH", "k")), " client ")
	who, _, _ = strings.Cut(who, " unclear ")
	return who
}

func TestLocksNamesTheClientThatTookALock(t *testing.T) {
	r := newRig(t, Config{})
	c, other, looks := r.dial(), r.dial(), r.dial()
	c.ask("CLIENT", "SETNAME", "worker-1")
	c.ask("CLIENT", "SETINFO", "LIB-NAME", "redis-py")
	c.ask("CLIENT", "SETINFO", "lib-ver", "5.0.1")
	const nobody = "$-1 name $-1 library $-1 user $-1"
	mine, others := c.LocalAddr().String()+" name worker-1 library redis-py 5.0.1 user default", other.LocalAddr().String()+" name $-1 library $-1 user default"
	for _, step := range []struct {
		by      *client
		command string
		want    string
	}{
		{c, "SET k me NX PX 60000", mine},
		{other, "SET k you NX PX 60000", mine},
		{other, "EXTEND k me 60000", others}, // another connection of the client's pool
		{c, "EXTEND k me 60000", mine},
		{other, "SET k you PX 60000", nobody}, // not taken as a lock: its value is another one
		{c, "LOCK k 60000 TOKEN me", nobody},
		{c, "DEL k", ""},
		{c, "LOCK k 60000 TOKEN me", mine},
		{c, "UNLOCK k me", ""},
		{other, "SET k me PX 60000", nobody}, // the same token, after c has given the lock back
		{c, "DEL k", ""},
		{c, "SETNX k me", mine},
	} {
		step.by.ask(strings.Fields(step.command)...)
		if got := holderOf(looks); got != step.want && !strings.HasPrefix(step.want, got+" ") {
			t.Errorf("%s: the client is %q, want %q", step.command, got, step.want)
		}
	}
	_ = c.Close()
	waitFor(t, "a client that is gone is shown", func() bool { return holderOf(looks) == nobody })
}

func TestTakersGiveNoPlaceAwayBeforeItsLockEnds(t *testing.T) {
	ts := newTakers()
	now := time.Now()
	noted := 0
	for i := range 4 * takersMax {
		ts.note(quorum.Key{Name: fmt.Sprint(i)}, "t", int64(i+1), now.Add(time.Hour), time.Hour)
	}
	for i := range 4 * takersMax {
		switch ts.of(quorum.Key{Name: fmt.Sprint(i)}, "t") {
		case int64(i + 1):
			noted++
		case 0:
		default:
			t.Fatalf("lock %d is somebody else's", i)
		}
	}
	if noted < takersMax*9/10 || noted > takersMax {
		t.Errorf("of %d locks %d are remembered", 4*takersMax, noted)
	}
	if ts.of(quorum.Key{Name: "0"}, "x") != 0 || ts.of(quorum.Key{Name: "0", DB: 1}, "t") != 0 {
		t.Error("another token, or database, is the same lock")
	}
	ts.note(quorum.Key{Name: "new"}, "t", 7, now.Add(3*time.Hour), time.Hour) // the others have ended by now
	if got := ts.of(quorum.Key{Name: "new"}, "t"); got != 7 {
		t.Errorf("the place of a lock that has ended is not given away: %d", got)
	}
}

func TestNotingATakerAllocatesNothing(t *testing.T) {
	ts, key, until := newTakers(), quorum.Key{Name: "job:7"}, time.Now().Add(time.Minute)
	if n := testing.AllocsPerRun(100, func() {
		ts.note(key, "me", 1, until, time.Minute)
		ts.forget(key, "me")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
