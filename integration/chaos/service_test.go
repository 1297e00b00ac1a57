package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"lockproxy/integration/harness"
)

// A service measures for how long a client of each proxy could not lock a resource that nobody else wants.
type service struct {
	stop   chan struct{}
	done   sync.WaitGroup
	probes []*probe
}

// A probe is a client of one proxy. Its fields are read when it has ended.
type probe struct {
	plain
	id      string
	longest time.Duration // from one lock to the next
	causes  map[string]int
}

const probePause = 15 * time.Millisecond

func watch(name string, proxies []*harness.Proxy) *service {
	s := &service{stop: make(chan struct{})}
	for i, p := range proxies {
		pr := &probe{plain: plain{wire{addrs: []string{p.Addr}}}, id: fmt.Sprintf("probe:%s:%d", name, i), causes: map[string]int{}}
		s.probes = append(s.probes, pr)
		s.done.Go(func() { pr.run(s.stop) })
	}
	return s
}

func (p *probe) run(stop <-chan struct{}) {
	defer p.close()
	latest := time.Now()
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(probePause):
		}
		resource := fmt.Sprintf("%s:%d", p.id, n)
		switch o, cause := p.acquire(resource, "probe", time.Second); o {
		case done:
			now := time.Now()
			p.longest = max(p.longest, now.Sub(latest))
			latest = now
			p.plain.release(resource, "probe")
		case refused:
			p.causes["null"]++
		default:
			p.causes[cause]++
		}
	}
}

// finish returns what clients of each proxy saw instead of locks, and how long the longest wait for one was.
func (s *service) finish() (causes map[string]int, longest []time.Duration) {
	close(s.stop)
	s.done.Wait()
	causes = map[string]int{}
	for _, p := range s.probes {
		longest = append(longest, p.longest)
		for c, n := range p.causes {
			causes[c] += n
		}
	}
	return causes, longest
}

// list names the causes, without counts: those are a matter of how often one asks.
func list(causes map[string]int) string {
	if len(causes) == 0 {
		return "nothing"
	}
	return strings.Join(slices.Sorted(maps.Keys(causes)), ", ")
}
