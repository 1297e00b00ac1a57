package quorum

import "sync"

// Servers are the links that have been made, or are being made, by the run id of the server at their other end.
type servers struct {
	mu    sync.Mutex
	links map[*link]server
}

type server struct {
	master *master
	runID  string
}

// claim notes that k leads to a server, and returns "". If a link to another address leads to that server, it notes nothing, and
// returns that address (rule 10).
func (s *servers) claim(k *link, m *master, runID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.links {
		if other.master != m && runID != "" && other.runID == runID {
			return other.master.Addr()
		}
	}
	if s.links == nil {
		s.links = make(map[*link]server)
	}
	s.links[k] = server{m, runID}
	return ""
}

func (s *servers) forget(k *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, k)
}
