package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/masters"
)

// A heldUp master cannot be dialled for the pass-th time, from 1, before goesOn is closed.
type heldUp struct {
	endpoint
	pass   int
	goesOn <-chan struct{}
}

func (h *heldUp) Dial(ctx context.Context, db int) (masters.Conn, error) {
	if db == 0 {
		if h.pass--; h.pass == 0 {
			<-h.goesOn
		}
	}
	return h.endpoint.Dial(ctx, db)
}

// autoInitialise begins init: auto, which is held up when it comes to some of the masters for the pass-th time.
func (s *scene) autoInitialise(pass int, at []int, goesOn <-chan struct{}) <-chan bool {
	l := &life{proxy: s.proxies[1], number: -1 - pass, name: "init"}
	var ms []masters.Master
	for i := range s.servers {
		m := &heldUp{endpoint: endpoint{life: l, id: i}, goesOn: goesOn}
		if slices.Contains(at, i) {
			m.pass = pass
		}
		ms = append(ms, m)
	}
	c := make(chan bool, 1)
	go func() {
		done, err := quorum.AutoInitialise(context.Background(), sceneConfig, ms)
		s.do(func() { s.logf("init", "%v, %v", done, err) })
		c <- done
	}()
	return c
}

// A proxy looks whether the masters are all new, as another one does, and is held up before it marks them: a lock has been taken
// meanwhile, and one or two masters that granted it have lost their data.
func TestMastersThatHaveLostTheirDataAreNotInitialisedByAProxyThatWasHeldUp(t *testing.T) {
	for pass := range 10 {
		for _, marked := range []time.Duration{0, time.Second} { // by proxies, when it looks first
			for _, seen := range []time.Duration{0, time.Second} { // by proxies, that the data is lost
				for _, c := range []struct{ at, lost []int }{{[]int{0, 1, 2}, []int{2}}, {[]int{1, 2}, []int{1, 2}}} {
					inScene(t, func(s *scene) {
						s.flush(0)
						s.flush(1)
						s.flush(2)
						s.sleep(marked)
						goesOn := make(chan struct{})
						late := s.autoInitialise(pass, c.at, goesOn)
						s.sleep(time.Second)
						<-s.autoInitialise(0, nil, nil)
						s.sleep(time.Second)
						s.do(func() { s.links[0][1].slow = time.Second * time.Duration(2-len(c.lost)) })
						mine := <-s.acquire(0, "mine", 30*time.Second, false)
						if mine.Lock == nil && len(c.at) == 3 { // else it has marked the first already
							t.Errorf("not granted, held up %d: %v", pass, mine.Err)
						}
						for _, i := range c.lost {
							s.flush(i)
						}
						s.sleep(seen)
						close(goesOn)
						<-late
						s.sleep(time.Second)
						s.do(func() { s.servers[0].stopped = true })
						if other := <-s.acquire(1, "other", time.Second, false); mine.Lock != nil {
							s.expectNotGranted(other)
						}
					})
				}
			}
		}
	}
}
