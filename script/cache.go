package script

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Bounds of the texts in a Cache, in bytes.
const (
	textMax  = 256 << 10 // of one text
	textsMax = 32 << 20  // of all texts
)

// ErrTextTooLong says that a text is longer than textMax.
var ErrTextTooLong = errors.New("ERR script is longer than 262144 bytes, which is the most that lockproxy keeps; make it shorter")

// A Digest is a SHA-1, as Redis names scripts.
type Digest [sha1.Size]byte

// A Cache keeps clients' scripts. When there are too many, or too long ones, the Cache forgets the scripts that were
// not used for longest. Their clients are told NOSCRIPT then and send the text again. A Cache is safe for concurrent
// use.
type Cache struct {
	own *families // rows from the configuration; they go before the built-in rows

	mu      sync.Mutex // guards all below
	scripts *simplelru.LRU[Digest, *Script]
	bytes   int // of the texts in scripts
}

// NewCache returns an empty cache of at most size scripts. NewCache panics if size is not positive. The rows are added
// to the table of known scripts, by SHA-1, and go before all other knowledge of a text.
func NewCache(size int, rows ...Family) *Cache {
	c := &Cache{own: newFamilies(rows)}
	scripts, err := simplelru.NewLRU(size, func(_ Digest, s *Script) { c.bytes -= len(s.Text) })
	if err != nil {
		panic("script: a cache needs a positive size")
	}
	c.scripts = scripts
	return c
}

// Load returns the script with this text. A new text is recognised once; later Loads find the result. Load keeps the
// script if the text is known to be Lua (Script.Compiles). If not, the caller has masters compile the text, and then
// calls Keep. Load copies a text only if the text is new. The error, for the client to read, is ErrTextTooLong or names
// the fault of the first line.
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

// Understand is Load for a new text that is not kept.
func (c *Cache) Understand(text string) (*Script, error) {
	if len(text) > textMax {
		return nil, ErrTextTooLong
	}
	text = strings.Clone(text) // the script outlives the client's request, of which the text is a part
	return understand(text, shaOf(text), c.own)
}

// Keep keeps a script from Load, to be found by its SHA-1, and returns the kept script. If Compiles is false, masters
// are still to be asked.
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

// add keeps s and returns the kept script. An earlier copy stays, unless only s is known to compile.
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

// understand finds the meaning of a text, or its family. Recognised texts are Lua, and texts known by their SHA-1 are
// from libraries. The error is that of Load.
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

// Lookup returns the script with this SHA-1, in hex digits of any case, and marks the script as used.
func (c *Cache) Lookup(sha string) (*Script, bool) {
	key, ok := ParseDigest(sha)
	if !ok {
		return nil, false
	}
	return c.get(key)
}

// Exists reports whether Lookup would find a script, without marking the script as used.
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

// ParseDigest reads 40 hex digits of any case. ParseDigest returns false for anything else.
func ParseDigest(sha string) (key Digest, ok bool) {
	if len(sha) != 2*len(key) {
		return key, false
	}
	_, err := hex.Decode(key[:], []byte(sha))
	return key, err == nil
}
