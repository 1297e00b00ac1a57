package resp

import (
	"slices"
	"strings"

	"github.com/tidwall/redcon"

	"lockproxy/quorum"
	"lockproxy/resp/wire"
	"lockproxy/script"
)

// votedMax bounds how many scripts are kept ready. Each holds its text, of at most 256 KiB, and its wrapper.
const votedMax = 128

// readyToVote returns the script as the engine runs it. It logs a text that is not in the table of families.
func readyToVote(s *Server, text *script.Script) *quorum.Script {
	if ready, ok := s.voted.Get(text.SHA); ok {
		return ready
	}
	if text.Family == nil {
		s.log.Debug("a script that nobody knows runs by vote", "sha1", text.SHA)
	}
	ready := quorum.NewScript(text.Text)
	s.voted.Add(text.SHA, ready)
	return ready
}

// runByVote runs a script on every master and answers what a quorum answered.
func runByVote(c *call, s *script.Script, keys, args []string) Reply {
	rule, refused := ruleOf(s, keys, args)
	if refused != nil {
		c.server.journal.script(c.session, refused)
		return refused
	}
	late := errorReply(quorum.ErrLate)
	if rule.Merge == quorum.Taking {
		late = runReply(rule.Late)
	}
	req := quorum.RunRequest{
		DB: c.session.identity.db, Script: readyToVote(c.server, s), Keys: slices.Clone(keys), Args: slices.Clone(args), Rule: rule,
		ReadOnly: c.cmd.flags&readOnly != 0,
	}
	o := overlapAny
	if len(req.Keys) > 0 && !req.ReadOnly && rule.Merge != quorum.Telling {
		o = overlapLater // it is not known what the script does to its keys
	}
	sl := c.claimTogether(o, req.Keys, func(out *outcome) Reply {
		if out.done == 0 {
			return late
		}
		return out.reply
	})
	if sl == nil {
		return nil
	}
	session, db := c.session, c.session.identity.db
	c.engine().Run(req, func(r quorum.Ran) {
		for _, name := range r.Replaced {
			session.holds.endUnless(quorum.Key{DB: db, Name: name}, "")
		}
		sl.ran(r)
	})
	return nil
}

// ruleOf says how the answers of the masters merge, or why they cannot.
func ruleOf(s *script.Script, keys, args []string) (quorum.Rule, Reply) {
	f := s.Family
	if f == nil {
		return quorum.Rule{}, nil
	}
	if why := f.Refuses(args); why != "" {
		return quorum.Rule{}, Error("ERR script " + s.SHA + " (" + f.Name() + ") is refused: " + why)
	}
	rule := quorum.Rule{Each: f.Each, Blind: f.Blind, Derived: f.Derived, Granted: grants(f.Granted, len(keys))}
	if i := f.Holder; i > 0 && i <= len(args) {
		//mutant: a script does not say for whom it takes
		rule.Field = args[i-1]
	}
	if f.Queues && len(keys) >= 3 {
		rule.Queue = &quorum.Queue{Wake: strings.Replace(keys[1], "redisson_lock_queue", "redisson_lock__channel", 1) + ":"}
	}
	switch f.Kind {
	case script.Takes:
		rule.Merge, rule.Late = quorum.Taking, lateReply(f.Granted)
	case script.Extends, script.Asks:
		rule.Merge = quorum.Extending
	case script.Releases:
		rule.Merge = quorum.Releasing
	case script.Tells:
		rule.Merge = quorum.Telling
	}
	return rule, nil
}

var listOfZero, _ = quorum.ParseValue("*1;:0;")

// lateReply is the reply that says no to a library that asked for a lock. Libraries that take nil for a yes take an integer
// for the milliseconds to wait.
func lateReply(g script.Grant) quorum.Value {
	switch g {
	case script.GrantNil:
		//mutant: a script that is late says yes
		return quorum.Value{Kind: quorum.IntValue, Int: 1}
	case script.GrantOK, script.GrantNotNil:
		return quorum.Value{}
	case script.GrantFirst:
		return listOfZero
	}
	return quorum.Value{Kind: quorum.IntValue}
}

func grants(g script.Grant, keys int) func(quorum.Value) bool {
	switch g {
	case script.GrantNil:
		return func(v quorum.Value) bool { return v.Kind == quorum.NilValue }
	case script.GrantNotNil:
		return func(v quorum.Value) bool { return v.Kind != quorum.NilValue }
	case script.GrantOK:
		return func(v quorum.Value) bool {
			return (v.Kind == quorum.StatusValue || v.Kind == quorum.BulkValue) && v.Text == "OK"
		}
	case script.GrantKeys:
		return func(v quorum.Value) bool { return v.Kind == quorum.IntValue && v.Int == int64(keys) }
	case script.GrantFirst:
		return func(v quorum.Value) bool {
			if v.Kind != quorum.ArrayValue {
				return false
			}
			for first := range v.Parts() {
				return first.Kind == quorum.IntValue && first.Int > 0
			}
			return false
		}
	}
	return func(v quorum.Value) bool { return v.Kind == quorum.IntValue && v.Int > 0 }
}

// runReply puts the reply of a script that ran by vote into the client's protocol.
func runReply(v quorum.Value) Reply {
	switch v.Kind {
	case quorum.IntValue:
		return Int(v.Int)
	case quorum.BulkValue:
		return Bulk(v.Text)
	case quorum.StatusValue:
		return Status(v.Text)
	case quorum.ErrorValue:
		return Error(strings.TrimRight(v.Text, "\r\n"))
	case quorum.TrueValue, quorum.FalseValue:
		return Bool(v.Kind == quorum.TrueValue)
	case quorum.DoubleValue:
		return Double(v.Text)
	case quorum.BigNumberValue:
		return BigNumber(v.Text)
	case quorum.VerbatimValue:
		return Verbatim(v.Text)
	case quorum.ArrayValue, quorum.SetValue, quorum.MapValue:
		return votedList(v)
	}
	return Null{}
}

// A votedList is a list that a script replied. Its items are made when they are written.
type votedList quorum.Value

func (r votedList) AppendTo(b []byte, resp3 bool) []byte {
	b = appendHead(b, quorum.Value(r), resp3)
	for part := range quorum.Value(r).Parts() {
		b = appendHead(b, part, resp3)
	}
	return b
}

// appendHead appends a value; of a list, only the header that announces the items.
func appendHead(b []byte, v quorum.Value, resp3 bool) []byte {
	switch n := int(v.Int); {
	case v.Kind == quorum.MapValue && resp3:
		return wire.AppendHeader(b, '%', n/2)
	case v.Kind == quorum.SetValue && resp3:
		return wire.AppendHeader(b, '~', n)
	case v.Kind == quorum.ArrayValue, v.Kind == quorum.MapValue, v.Kind == quorum.SetValue:
		return redcon.AppendArray(b, n)
	}
	return runReply(v).AppendTo(b, resp3)
}

func (r votedList) Size() int {
	n := 0
	for part := range quorum.Value(r).Parts() {
		n += 16 + len(part.Text) // as sizeOf
	}
	return n
}
