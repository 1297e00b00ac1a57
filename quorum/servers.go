package quorum

import "sync"

// Servers are the connections that have been made, or are being made, by the run id of the server at their other end.
type servers struct {
	mu          sync.Mutex
	connections map[*connection]server
}

type server struct {
	master *master
	runID  string
}

// claim notes that k leads to a server, and returns "". If a connection to another address leads to the same server, claim notes
// nothing, and returns the other address (rule 10).
func (s *servers) claim(k *connection, m *master, runID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.connections {
		if other.master != m && runID != "" && other.runID == runID {
			return other.master.Addr()
		}
	}
	if s.connections == nil {
		s.connections = make(map[*connection]server)
	}
	s.connections[k] = server{m, runID}
	return ""
}

func (s *servers) forget(k *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, k)
}
