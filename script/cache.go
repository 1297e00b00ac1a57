package script

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Bounds on the texts that a Cache keeps, in bytes.
const (
	textMax  = 256 << 10 // one text
	textsMax = 32 << 20  // all of them
)

// ErrTextTooLong says that a text is longer than any that a Cache keeps.
var ErrTextTooLong = errors.New("ERR script is longer than 262144 bytes, which is the most that lockproxy keeps; make it shorter")

// A Digest is a SHA-1, as Redis names scripts.
type Digest [sha1.Size]byte

// A Cache keeps the scripts that clients sent. When there are too many, or too long ones, it forgets those not used
// for longest; their clients are told NOSCRIPT then and send them again. It is safe for concurrent use.
type Cache struct {
	own *families // rows that the configuration adds; they go before ours

	mu      sync.Mutex // guards all below
	scripts *simplelru.LRU[Digest, *Script]
	bytes   int // of the texts in scripts
}

// NewCache returns an empty cache of at most size scripts. It panics if size is not positive. The rows are added to the
// table of known scripts, by SHA-1, and go before what is known otherwise of a text.
func NewCache(size int, rows ...Family) *Cache {
	c := &Cache{own: newFamilies(rows)}
	scripts, err := simplelru.NewLRU(size, func(_ Digest, s *Script) { c.bytes -= len(s.Text) })
	if err != nil {
		panic("script: a cache needs a positive size")
	}
	c.scripts = scripts
	return c
}

// Load returns the script with this text. A text is recognised when it is first seen; later Loads find it. It is kept if it
// is known to be Lua (Script.Compiles); if not, the caller has masters compile it, and calls Keep then. The text is copied
// only when it is new. The error, for the client to read, is ErrTextTooLong or says what is wrong with the first line.
func (c *Cache) Load(text string) (*Script, error) {
	if len(text) > textMax {
		return nil, ErrTextTooLong
	}
	key := DigestOf(text)
	if s, ok := c.get(key); ok {
		return s, nil
	}
	// Outside the lock: two clients that bring a new text at once both read it, and one result stays.
	s, err := c.Understand(text)
	if err != nil {
		return nil, err
	}
	if s.Compiles {
		s = c.add(key, s)
	}
	return s, nil
}

// Understand is Load for a text that is not to be kept, and has not been seen before.
func (c *Cache) Understand(text string) (*Script, error) {
	if len(text) > textMax {
		return nil, ErrTextTooLong
	}
	text = strings.Clone(text) // the script outlives the request that the text is a part of
	return understand(text, shaOf(text), c.own)
}

// Keep keeps a script that Load returned, to be found by its SHA-1, and returns what is kept. If Compiles is false, masters are
// still to be asked.
func (c *Cache) Keep(s *Script) *Script {
	key, ok := ParseDigest(s.SHA)
	if !ok {
		return s
	}
	return c.add(key, s)
}

// KeepCompiled is Keep for a script that masters have compiled.
func (c *Cache) KeepCompiled(s *Script) *Script {
	compiled := *s
	compiled.Compiles = true
	return c.Keep(&compiled)
}

// add keeps s and returns it. If the script is kept already, it returns that one, unless only s is known to compile.
func (c *Cache) add(key Digest, s *Script) *Script {
	c.mu.Lock()
	defer c.mu.Unlock()
	earlier, ok := c.scripts.Get(key)
	if ok && (earlier.Compiles || !s.Compiles) {
		return earlier
	}
	if !ok {
		c.bytes += len(s.Text)
	}
	c.scripts.Add(key, s)
	for c.bytes > textsMax {
		c.scripts.RemoveOldest()
	}
	return s
}

// understand finds out what a text means, or which family it is of. The texts that are recognised are Lua, and those that are
// known by their SHA-1 are from libraries. The error is that of Load.
func understand(text, sha string, own *families) (*Script, error) {
	if err := checkShebang(text); err != nil {
		return nil, err
	}
	s := &Script{SHA: sha, Text: text, Family: own.find(sha, text)}
	if s.Family != nil {
		return s, nil
	}
	s.Family = known.find(sha, text)
	s.Meaning = recognise(text, sha)
	s.Compiles = s.Meaning != nil || known.bySHA[sha] != nil
	return s, nil
}

// Lookup returns the script with this SHA-1, in hex digits of any case, and marks it as used.
func (c *Cache) Lookup(sha string) (*Script, bool) {
	key, ok := ParseDigest(sha)
	if !ok {
		return nil, false
	}
	return c.get(key)
}

// Exists reports whether Lookup would find a script. It does not mark it as used.
func (c *Cache) Exists(sha string) bool {
	key, ok := ParseDigest(sha)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scripts.Contains(key)
}

// Flush forgets all scripts.
func (c *Cache) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scripts.Purge()
}

func (c *Cache) get(key Digest) (*Script, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scripts.Get(key)
}

// DigestOf returns the SHA-1 of a text.
func DigestOf(text string) Digest { return sha1.Sum([]byte(text)) }

func shaOf(text string) string {
	key := DigestOf(text)
	return hex.EncodeToString(key[:])
}

// ParseDigest reads 40 hex digits of any case. It returns false if sha is anything else.
func ParseDigest(sha string) (key Digest, ok bool) {
	if len(sha) != 2*len(key) {
		return key, false
	}
	_, err := hex.Decode(key[:], []byte(sha))
	return key, err == nil
}
