package sim

import (
	"runtime"
	"testing"
	"time"
	"weak"
)

// The checker remembers whose command set a key, and an engine is megabytes: a world in which hundreds of processes end would need
// as many. Nor may an engine that is closed be kept by something of its own, for example a timer.
func TestAnEngineThatHasEndedIsNotKept(t *testing.T) {
	for name, end := range map[string]func(*proxy){"killed": (*proxy).kill, "stopped": (*proxy).stop} {
		t.Run(name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.granted(s.acquire(0, "mine", 10*time.Second, false))
				s.servers[2].stopped = true // what it is asked has no answer
				s.sleep(time.Millisecond)
				ended := s.proxies[0].life
				engine := weak.Make(ended.engine)
				s.acquire(0, "next", 10*time.Second, false)
				s.do(func() { end(s.proxies[0]) })
				s.sleep(sceneConfig.MasterDeadAfter + time.Second)
				runtime.GC()
				if engine.Value() != nil {
					t.Error("it is in memory")
				}
				runtime.KeepAlive(ended)
			})
		})
	}
}
