// Package embedded runs Redis masters inside the process, for trying lockproxy out on a machine without Redis.
//
// The masters are miniredis servers, each on a loopback port of its own and used like any other master. Their TTLs
// follow the clock. They keep everything in memory and end with the process, all together. So a lock on embedded
// masters survives nothing, and embedded masters prove nothing about a deployment.
package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Masters are running embedded masters.
type Masters struct {
	all []*master
}

var errBits = errors.New("no embedded masters on a 32-bit processor: name masters")

// Start runs n masters. If one of them cannot start, Start leaves none running.
func Start(n int) (*Masters, error) {
	if strconv.IntSize < 64 {
		return nil, errBits // miniredis reads the milliseconds of PXAT into an int
	}
	ms := &Masters{}
	for range n {
		m := newMaster()
		if err := m.Start(); err != nil {
			ms.Close()
			return nil, fmt.Errorf("an embedded master cannot start: %w", err)
		}
		m.ClockTTL(true)
		m.Server().SetPreHook(m.answer)
		ms.all = append(ms.all, m)
	}
	return ms, nil
}

// Addrs returns the addresses of the masters.
func (ms *Masters) Addrs() []string {
	var addrs []string
	for _, m := range ms.all {
		addrs = append(addrs, m.Addr())
	}
	return addrs
}

// Close ends the masters and waits until every connection to them has ended.
func (ms *Masters) Close() {
	for _, m := range ms.all {
		m.Close()
	}
	ms.all = nil
}

// A master is a miniredis that also answers the handshake commands of a lane which miniredis does not know.
type master struct {
	*miniredis.Miniredis
	runID string

	mu      sync.Mutex // guards all below
	last    int        // client id
	clients map[*server.Peer]int
	killed  map[*server.Peer]bool
}

func newMaster() *master {
	id := make([]byte, 20)
	_, _ = rand.Read(id) // Read never fails
	return &master{
		Miniredis: miniredis.NewMiniRedis(),
		runID:     hex.EncodeToString(id),
		clients:   make(map[*server.Peer]int),
		killed:    make(map[*server.Peer]bool),
	}
}

// parameters are the parameters of CONFIG GET.
var parameters = map[string]string{
	"maxmemory": "0", "maxmemory-policy": "noeviction", "appendonly": "no", "appendfsync": "everysec",
}

// answer sees every command before miniredis does, and says whether it has answered the command.
func (m *master) answer(c *server.Peer, command string, args ...string) bool {
	if m.isKilled(c) {
		return true
	}
	words := command
	if len(args) > 0 {
		words += " " + strings.ToUpper(args[0])
	}
	switch {
	case command == "PEXPIRETIME": // the reply of miniredis moves by a millisecond; without PEXPIRETIME an undo allows for a millisecond
		c.WriteError("ERR unknown command 'PEXPIRETIME'")
	case command == "ROLE":
		c.Block(func(w *server.Writer) {
			w.WriteLen(3)
			w.WriteBulk("master")
			w.WriteInt(0)
			w.WriteLen(0)
		})
	case command == "INFO":
		c.WriteBulk("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nserver_name:miniredis\r\n" +
			"run_id:" + m.runID + "\r\nuptime_in_seconds:0\r\nrole:master\r\n")
	case words == "COMMAND INFO" && len(args) == 2: // miniredis replies with all of its commands, in a form that its scripts cannot take
		m.writeCommand(c, args[1])
	case words == "CLIENT ID":
		c.WriteInt(m.idOf(c))
	case words == "CLIENT KILL" && len(args) == 3 && strings.EqualFold(args[1], "ID"):
		c.WriteInt(m.kill(args[2]))
	case words == "CONFIG GET" && len(args) > 1:
		writeParameters(c, args[1:])
	default:
		return false
	}
	return true
}

// writeCommand answers COMMAND INFO, as far as known: whether the command exists.
func (m *master) writeCommand(c *server.Peer, name string) {
	c.Block(func(w *server.Writer) {
		w.WriteLen(1)
		if !m.Server().IsRegisteredCommand(name) {
			w.WriteNull()
			return
		}
		w.WriteLen(3)
		w.WriteBulk(strings.ToLower(name))
		w.WriteInt(0) // the number of arguments: any
		w.WriteLen(0)
	})
}

// idOf returns the client id of a connection.
func (m *master) idOf(c *server.Peer) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id := m.clients[c]; id != 0 {
		return id
	}
	m.last++
	m.clients[c] = m.last
	c.OnDisconnect(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.clients, c)
		delete(m.killed, c)
	})
	return m.last
}

func (m *master) isKilled(c *server.Peer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.killed[c]
}

// kill keeps the connection with this id from running any further command, and returns how many connections had the id.
// miniredis closes the connection with its next command.
func (m *master) kill(id string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c, n := range m.clients {
		if fmt.Sprint(n) == id {
			m.killed[c] = true
			c.Close()
			return 1
		}
	}
	return 0
}

// writeParameters answers CONFIG GET: the parameters that match any of the patterns.
func writeParameters(c *server.Peer, patterns []string) {
	var found []string
	for name, v := range parameters {
		for _, p := range patterns {
			if ok, _ := path.Match(strings.ToLower(p), name); ok {
				found = append(found, name, v)
				break
			}
		}
	}
	c.WriteStrings(found)
}
