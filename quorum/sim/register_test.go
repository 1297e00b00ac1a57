package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"lockproxy/quorum"
)

// A register is a key that clients of several proxies change by compare-and-do (GETSET, SET … IFEQ, GETDEL, WATCH … EXEC) while
// masters and links fail. What they are told must be a history that one key on one server can have had.
// In every other history nothing fails, and packets are late only: then all is told. Histories do not show what ends too early, nor
// what stays that nobody was told of: of these the other worlds tell.
type register struct {
	*scene
	mu      sync.Mutex // guards what follows
	clock   int64      // counts what is called and what returns
	history []porcupine.Operation
}

// A deed is what a client did, and was told.
type deed struct {
	did  string
	sees []string // what it may have found: what it was told or, where its fate is unknown, all that it has seen
	puts string   // what is there then, if it was done; "" for nothing
	told bool     // else it may take place at any time, or never
	back bool     // not told: that it is put back
}

var registerModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{""} },
	Step: func(state, input, _ any) []any {
		d, now := input.(deed), state.(string)
		switch found := slices.Contains(d.sees, now); {
		case d.told && found:
			return []any{d.puts}
		case d.told:
			return nil
		case d.back && now == d.puts:
			next := []any{now}
			for _, was := range d.sees {
				next = append(next, was)
			}
			return next
		case !d.back && found:
			return []any{now, d.puts}
		}
		return []any{now}
	},
}).ToModel()

func (r *register) tick() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock++
	return r.clock
}

// does runs one Exec, and notes what came of it. What a try of GETDEL has deleted in vain may be missed until it is put back (docs/safety.md).
func (r *register) does(client, proxy int, did, value string, watched *quorum.Mark, plan func(now string) *quorum.Edit) (seen string, mark quorum.Mark, ok bool) {
	var all []string
	changes, tries := false, 0 // to change it
	called := r.tick()
	req := quorum.ExecRequest{Keys: []string{resourceName(0)}, Plan: func(now []quorum.View) []quorum.Edit {
		seen, mark = now[0].Value, now[0].Mark()
		if !slices.Contains(all, seen) {
			all = append(all, seen)
		}
		edit := plan(seen)
		changes = edit != nil
		if !changes {
			return nil
		}
		tries++
		return []quorum.Edit{*edit}
	}}
	if watched != nil {
		req.Watched = []quorum.Mark{*watched}
	}
	done := begin(r.proxies[proxy].life.engine.Exec, req)
	x := <-done
	returned := r.tick()
	r.mu.Lock()
	defer r.mu.Unlock()
	note := func(d deed, returned int64) {
		r.history = append(r.history, porcupine.Operation{ClientId: client, Input: d, Call: called, Return: returned})
	}
	if tries > 0 && (x.Err != nil || did == "GETDEL" && (tries > 1 || !changes)) {
		note(deed{did: did, sees: all, puts: value}, 1<<40)
		note(deed{did: did, sees: all, puts: value, back: true}, 1<<40)
	}
	switch {
	case x.Err == nil && x.Done && changes:
		note(deed{did: did, sees: []string{seen}, puts: value, told: true}, returned)
	case x.Err == nil && x.Done:
		note(deed{did: did + " read", sees: []string{seen}, puts: seen, told: true}, returned)
	}
	return seen, mark, x.Err == nil && x.Done
}

func putting(value string) *quorum.Edit {
	return &quorum.Edit{Kind: quorum.Put, Value: value, TTL: 10 * time.Minute}
}

func (r *register) client(id int, rng *rand.Rand) {
	last := ""
	for i := range 12 {
		proxy, value := rng.IntN(len(r.proxies)), fmt.Sprintf("%d.%d", id, i)
		switch rng.IntN(5) {
		case 0:
			last, _, _ = r.does(id, proxy, "GET", "", nil, func(string) *quorum.Edit { return nil })
		case 1:
			r.does(id, proxy, "GETSET", value, nil, func(string) *quorum.Edit { return putting(value) })
			last = value
		case 2:
			expected := last
			last, _, _ = r.does(id, proxy, "IFEQ", value, nil, func(now string) *quorum.Edit {
				if now != expected {
					return nil
				}
				return putting(value)
			})
		case 3:
			r.does(id, proxy, "GETDEL", "", nil, func(now string) *quorum.Edit {
				if now == "" {
					return nil
				}
				return &quorum.Edit{Kind: quorum.Claim}
			})
		case 4:
			_, mark, ok := r.does(id, proxy, "WATCH", "", nil, func(string) *quorum.Edit { return nil })
			if !ok {
				continue
			}
			r.sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
			r.does(id, proxy, "EXEC", value, &mark, func(string) *quorum.Edit { return putting(value) })
		}
		r.sleep(time.Duration(rng.IntN(1000)) * time.Microsecond)
	}
}

var registerFaults = []string{
	"link cut towards the master", "link cut towards the proxy", "link cut", "link slow", "proxy cut off", "connection reset for the proxy",
	"connection reset for the master", "connection reset", "master stopped", "master slow", "master killed, nothing lost", "machine lost, nothing else",
}

// makeHistory lets clients and faults loose.
func makeHistory(t *testing.T, seed uint64) []porcupine.Operation {
	rng := rand.New(rand.NewPCG(seed, 0))
	cfg := sceneConfig
	cfg.InstanceTimeout, cfg.TTLMax, cfg.MasterDeadAfter = 20*time.Millisecond, time.Hour, time.Second
	p := Plan{Masters: pick(rng, 3, 3, 5), Proxies: 2 + rng.IntN(2), Resources: 1, Latency: 300 * time.Microsecond, Config: cfg, Append: "always"}
	calm := seed%2 == 1 // nothing is lost, and so nearly all is told
	if calm {
		p.Lossy, p.LateMost, p.Split = pick(rng, 0.05, 0.3), pick(rng, 2*time.Millisecond, 8*time.Millisecond), 0.2
	}
	r := &register{}
	inScenePlanned(t, p, func(s *scene) {
		r.scene = s
		var clients, faults sync.WaitGroup
		for id := range 3 + rng.IntN(3) {
			own := rand.New(rand.NewPCG(seed, uint64(1+id)))
			clients.Go(func() { r.client(id, own) })
		}
		over := make(chan struct{})
		if !calm {
			faults.Go(func() { s.strike(rng, over) })
		}
		clients.Wait()
		close(over)
		faults.Wait()
		s.do(s.mendAll)
		s.sleep(5 * time.Second)
		for i := range s.proxies {
			r.does(-1, i, "GET", "", nil, func(string) *quorum.Edit { return nil })
		}
	})
	return r.history
}

// strike makes faults, about every 30 ms, for up to 120 ms each.
func (s *scene) strike(rng *rand.Rand, over <-chan struct{}) {
	gap := 5 + rng.IntN(100)
	for {
		select {
		case <-over:
			return
		case <-time.After(time.Duration(1+rng.IntN(gap)) * time.Millisecond):
		}
		s.do(func() {
			mend := kindOf(pick(rng, registerFaults...)).strike(s.World, rng)
			s.after(time.Duration(1+rng.IntN(120))*time.Millisecond, func() {
				if mend != nil && !s.quiet {
					mend()
				}
			})
		})
	}
}

// registerSeeds is how many histories are made, each of some ten or hundred deeds.
const registerSeeds = 200

func TestARegisterIsLinearizable(t *testing.T) {
	told := 0
	seeds := uint64(registerSeeds)
	if raceEnabled { // it takes several times as long
		seeds /= 4
	}
	for seed := range seeds {
		all := makeHistory(t, seed)
		for _, op := range all {
			if d, _ := op.Input.(deed); d.told {
				told++
			}
		}
		if porcupine.CheckOperations(registerModel, all) {
			continue
		}
		text := ""
		for _, op := range all {
			text += fmt.Sprintf("\n%d [%d, %d] %+v", op.ClientId, op.Call, op.Return, op.Input)
		}
		t.Fatalf("seed %d: no key can have this history:%s", seed, text)
	}
	if told < 10*int(seeds) {
		t.Errorf("only %d deeds were told", told)
	}
}
