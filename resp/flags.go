package resp

// flags are a command's properties, in the order and by the names of COMMAND.
type flags uint16

const (
	write flags = 1 << iota
	readOnly
	denyOOM
	admin
	pubSub
	noScript
	loading
	stale
	skipMonitor
	fast
	noAuth // may be sent before AUTH
	allowBusy
	noMandatoryKeys
	movableKeys
	subscribedToo // allowed to a subscribed RESP2 client; COMMAND has no name for it
	atOnce        // not queued by a transaction; COMMAND does not tell
)

var flagNames = [...]string{"write", "readonly", "denyoom", "admin", "pubsub", "noscript", "loading", "stale", "skip_monitor",
	"fast", "no_auth", "allow_busy", "no_mandatory_keys", "movablekeys"}

func (f flags) names() Set {
	names := Set{}
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, Status(name))
		}
	}
	return names
}

// categories are the command's ACL categories, as far as they follow from flags and group.
func (cmd *command) categories() Set {
	set := Set{}
	add := func(name string, yes bool) {
		if yes {
			set = append(set, Status("@"+name))
		}
	}
	f := cmd.flags
	add("keyspace", cmd.group == "generic" && cmd.keys != keySpec{})
	add("read", f&readOnly != 0)
	add("write", f&write != 0)
	add("string", cmd.group == "string")
	add("pubsub", f&pubSub != 0)
	add("hash", cmd.group == "hash")
	add("admin", f&admin != 0)
	add("fast", f&fast != 0)
	add("slow", f&fast == 0)
	add("dangerous", f&admin != 0)
	add("connection", cmd.group == "connection")
	add("transaction", cmd.group == "transactions")
	add("scripting", cmd.group == "scripting" && len(cmd.subs) == 0)
	return set
}

// A table finds commands by name.
type table struct {
	rows   []*command
	byName map[string]*command
}

// nameMax is the length of the longest command name.
const nameMax = 24

func newTable(rows []*command) *table {
	t := &table{rows: rows, byName: map[string]*command{}}
	for _, cmd := range rows {
		cmd.full = cmd.name
		t.byName[cmd.name] = cmd
		for _, sub := range cmd.subs {
			sub.full = cmd.name + "|" + sub.name
			sub.group = cmd.group
		}
	}
	return t
}

// find looks a name up in any case, without allocating.
func (t *table) find(name string) (*command, bool) {
	if len(name) > nameMax {
		return nil, false
	}
	var buf [nameMax]byte
	for i := range len(name) {
		buf[i] = lowerByte(name[i])
	}
	cmd, ok := t.byName[string(buf[:len(name)])]
	return cmd, ok
}

// sub returns the subcommand of that name, or nil.
func (cmd *command) sub(name string) *command {
	for _, sub := range cmd.subs {
		if equalFold(sub.name, name) {
			return sub
		}
	}
	return nil
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func upperByte(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

// equalFold compares as C's strcasecmp does, in ASCII only.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lowerByte(a[i]) != lowerByte(b[i]) {
			return false
		}
	}
	return true
}

// lower and upper change what C's tolower and toupper do: ASCII letters.
func lower(s string) string { return mapBytes(s, lowerByte) }
func upper(s string) string { return mapBytes(s, upperByte) }

func mapBytes(s string, f func(byte) byte) string {
	for i := range len(s) {
		if f(s[i]) == s[i] {
			continue
		}
		b := []byte(s)
		for ; i < len(b); i++ {
			b[i] = f(b[i])
		}
		return string(b)
	}
	return s
}
