package resp

import (
	"strings"
	"sync"
	"sync/atomic"
)

// An identity says who a client is, and which protocol the client speaks: the contents of CLIENT LIST.
type identity struct {
	mu           sync.Mutex // guards the fields from here on; the session's reader, the only writer, reads without
	user         string
	unknownSince int64 // when the client began to owe a login; server clock, ms; 0: no login is owed
	db           int
	name         string
	libName      string // of CLIENT SETINFO
	libVersion   string
	resp3        bool

	last atomic.Pointer[string] // the name of the last command
}

// reset gives the client the identity of a new one. now is the server's clock.
func (i *identity) reset(cfg *Config, now int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.user, i.db, i.name, i.resp3 = defaultUser, cfg.Database, "", false
	if i.unknownSince = 0; len(cfg.Users) > 0 {
		i.unknownSince = now
	}
}

// logIn notes that the client has proved to be the user.
func (i *identity) logIn(user string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.user, i.unknownSince = strings.Clone(user), 0
}

func (i *identity) selectDB(db int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.db = db
}

func (i *identity) speak(resp3 bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.resp3 = resp3
}

// speaksRESP3 is for other goroutines than the reader.
func (i *identity) speaksRESP3() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.resp3
}

// isUser says whether the client is logged in as the user.
func (i *identity) isUser(name string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.user == name
}

// unknownFor is how many ms the client has owed a login; 0 if no login is owed.
func (i *identity) unknownFor(now int64) int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.unknownSince == 0 {
		return 0
	}
	return now - i.unknownSince
}

// setName sets the client's name. A refusal is returned as a reply.
func (i *identity) setName(name string, memory *account) (refused Reply) {
	size := nameSize(name)
	switch {
	case !validName(name):
		return errNameChars
	case size > 0 && !memory.keep(size):
		return errorReply(errMemory)
	}
	memory.drop(nameSize(i.name))
	i.mu.Lock()
	defer i.mu.Unlock()
	i.name = strings.Clone(name) // not the whole command with it
	return nil
}

// libraryMax bounds the name of a client's library, and the library's version.
const libraryMax = 64

// setLibrary notes the client's library, from CLIENT SETINFO.
func (i *identity) setLibrary(option, text string) {
	text = strings.Clone(clip(text, libraryMax))
	i.mu.Lock()
	defer i.mu.Unlock()
	if option == "lib-ver" {
		i.libVersion = text
	} else {
		i.libName = text
	}
}

// library is the client's library with its version. mu is held.
func (i *identity) library() string { return strings.TrimSpace(i.libName + " " + i.libVersion) }

// nameSize is a client name's size in the memory budget: 0 for a name of usual length.
func nameSize(name string) int {
	if len(name) < countedFrom {
		return 0
	}
	return len(name)
}

// validName says whether a client name can be printed in a list.
func validName(name string) bool {
	for i := range len(name) {
		if name[i] < '!' || name[i] > '~' {
			return false
		}
	}
	return true
}

// protocol is the version of RESP that the client speaks.
func (i *identity) protocol() int { return 2 + count(i.resp3) }
