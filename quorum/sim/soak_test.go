package sim

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	soakFlag   = flag.Duration("soak", 0, "run seeds on all cores for so long")
	fromFlag   = flag.Uint64("from", 0, "the number of the first seed of a soak; 0 is one that nobody has chosen")
	strideFlag = flag.Uint64("stride", 0, "set by a soak for its workers")
)

// A line is what a worker says of a seed.
type line struct {
	Seed     Seed
	Counts   Counts
	Faults   map[string]int
	Findings []string
	Memory   uint64 // bytes that the worker has from the system; 0 if it did not look
}

// TestSoak runs seeds until its time is over, in one process for each core: only alone on its processor a seed decides
// everything.
func TestSoak(t *testing.T) {
	if *soakFlag == 0 || *strideFlag != 0 {
		t.Skip("no -soak")
	}
	from := *fromFlag
	if from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	s := &soak{began: time.Now(), faults: make(map[string]int)}
	ctx, cancel := context.WithTimeout(t.Context(), *soakFlag)
	defer cancel()
	var workers sync.WaitGroup
	for i := range runtime.NumCPU() {
		workers.Go(func() {
			next := from + uint64(i)
			for ctx.Err() == nil {
				last, err := s.worker(ctx, next)
				if err != nil && ctx.Err() == nil {
					s.note(fmt.Sprintf("make sim SEED=%v: the process ended: %.2000v", last, err))
				}
				next = last.Number + uint64(runtime.NumCPU())
			}
		})
	}
	go s.tell(ctx)
	workers.Wait()
	fmt.Println(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listFaults()
	for _, f := range s.findings {
		t.Error(f)
	}
}

// TestSoakWorker is a worker of TestSoak.
func TestSoakWorker(t *testing.T) {
	if *strideFlag == 0 {
		t.Skip("no -stride")
	}
	out := json.NewEncoder(os.Stdout)
	for n, next := uint64(0), *fromFlag; ; n, next = n+1, next+*strideFlag {
		seed := Seed{Number: next}.OfKind(n)
		_ = out.Encode(line{Seed: seed}) // a world that deadlocks ends the process: this says which
		r := play(t, NewPlan(seed), nil)
		l := line{Seed: seed, Counts: r.Counts, Faults: r.Faults}
		for _, f := range r.Findings[:min(len(r.Findings), 5)] {
			l.Findings = append(l.Findings, f.String())
		}
		if n%100 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			l.Memory = m.Sys
		}
		if out.Encode(l) != nil {
			return
		}
	}
}

type soak struct {
	began time.Time

	mu       sync.Mutex // guards all below
	seeds    int
	counts   Counts
	faults   map[string]int
	findings []string
	memory   uint64 // of the worker that has most
}

// worker runs seeds from one on, and returns the last that it began.
func (s *soak) worker(ctx context.Context, from uint64) (Seed, error) {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSoakWorker$", "-test.timeout=0", //nolint:gosec // ourselves
		fmt.Sprintf("-from=%d", from), fmt.Sprintf("-stride=%d", runtime.NumCPU()))
	cmd.Env = alone()
	last := line{Seed: Seed{Number: from}}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return last.Seed, err
	}
	var trouble strings.Builder
	cmd.Stderr = &trouble
	if err := cmd.Start(); err != nil {
		return last.Seed, err
	}
	for in := bufio.NewScanner(pipe); in.Scan(); {
		l := line{}
		if json.Unmarshal(in.Bytes(), &l) == nil {
			last = l
			s.take(l)
		}
	}
	if err := cmd.Wait(); err != nil {
		return last.Seed, fmt.Errorf("%w: %s", err, trouble.String())
	}
	return last.Seed, nil
}

// note keeps a finding.
func (s *soak) note(f string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Println(f)
	if !slices.Contains(s.findings, f) {
		s.findings = append(s.findings, f)
	}
}

// listFaults prints how many there were of each kind. It is called with mu held.
func (s *soak) listFaults() {
	for _, kind := range slices.Sorted(maps.Keys(s.faults)) {
		fmt.Printf("%10d %s\n", s.faults[kind], kind)
	}
}

func (s *soak) take(l line) {
	if l.Counts.Attempts == 0 {
		return
	}
	for _, f := range l.Findings {
		s.note(fmt.Sprintf("make sim SEED=%v: %s", l.Seed, f))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory = max(s.memory, l.Memory)
	s.seeds++
	s.counts.Add(l.Counts)
	for kind, n := range l.Faults {
		s.faults[kind] += n
	}
}

func (s *soak) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	took := time.Since(s.began)
	faults := 0
	for _, n := range s.faults {
		faults += n
	}
	return fmt.Sprintf("%v: %d seeds, %d attempts (%d granted, %d of these with a fence, of which %d unfounded, %d refused, %d no quorum, %d not answered), %.0f attempts/s, %d faults, %d MB, %d findings",
		took.Round(time.Second), s.seeds, s.counts.Attempts, s.counts.Granted, s.counts.Fenced, s.counts.Unfounded, s.counts.Refused, s.counts.NoQuorum,
		s.counts.Lost, float64(s.counts.Attempts)/took.Seconds(), faults, s.memory>>20, len(s.findings))
}

// tell reports now and then.
func (s *soak) tell(ctx context.Context) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
			fmt.Println(s)
			if n%6 == 0 {
				s.mu.Lock()
				s.listFaults()
				s.mu.Unlock()
			}
		case <-ctx.Done():
			return
		}
	}
}
