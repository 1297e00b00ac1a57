package resp

import (
	"slices"
	"strings"

	"github.com/tidwall/redcon"

	"lockproxy/quorum"
	"lockproxy/quorum/vote"
	"lockproxy/resp/wire"
	"lockproxy/script"
)

// votedMax is the most scripts kept ready. Each script holds a text of at most 256 KiB, and a wrapper.
const votedMax = 128

// readyToVote returns the script in the engine's form, and logs a text outside the table of families.
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

// runByVote runs a script on every master, and replies with the answer of a quorum.
func runByVote(c *call, s *script.Script, keys, args []string) Reply {
	rule, refused := ruleOf(s, keys, args)
	if refused != nil {
		c.server.journal.script(c.session, refused)
		return refused
	}
	late := errorReply(quorum.ErrLate)
	if rule.Merge == vote.Taking {
		late = runReply(rule.Late)
	}
	req := quorum.RunRequest{
		DB: c.session.identity.db, Script: readyToVote(c.server, s), Keys: slices.Clone(keys), Args: slices.Clone(args), Rule: rule,
		ReadOnly: c.cmd.flags&readOnly != 0,
	}
	o := overlapAny
	if len(req.Keys) > 0 && !req.ReadOnly && rule.Merge != vote.Telling {
		o = overlapLater // the script's changes to the keys are unknown
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
	sl.events, sl.voted = votedEvents(c.server, s, &req), len(req.Keys) > 0
	c.server.engine.Run(req, func(r quorum.Ran) {
		tellVoted(session, s, &req, &r)
		session.server.noteVote(&req, &r)
		for _, name := range r.Replaced {
			key := quorum.Key{DB: db, Name: name}
			session.holds.endUnless(key, "")
			session.server.takers.forget(key, noToken)
		}
		sl.ran(r)
	})
	return nil
}

// ruleOf returns the rule by which the masters' answers merge, or an error with the reason against a vote.
func ruleOf(s *script.Script, keys, args []string) (vote.Rule, Reply) {
	f := s.Family
	if f == nil {
		return vote.Rule{}, nil
	}
	if why := f.Refuses(args); why != "" {
		return vote.Rule{}, Error("ERR script " + s.SHA + " (" + f.Name() + ") is refused: " + why)
	}
	rule := vote.Rule{Each: f.Each, Blind: f.Blind, Derived: f.Derived, Granted: grants(f.Granted, len(keys))}
	if i := f.Holder; i > 0 && i <= len(args) {
		//mutant: a script does not say for whom it takes
		rule.Field = args[i-1]
	}
	if f.Queues && len(keys) >= 3 {
		rule.Queue = &vote.Queue{Wake: strings.Replace(keys[1], "redisson_lock_queue", "redisson_lock__channel", 1) + ":"}
	}
	switch f.Kind {
	case script.Takes:
		rule.Merge, rule.Late = vote.Taking, lateReply(f.Granted)
	case script.Extends, script.Asks:
		rule.Merge = vote.Extending
	case script.Releases:
		rule.Merge = vote.Releasing
	case script.Tells:
		rule.Merge = vote.Telling
	}
	return rule, nil
}

var listOfZero, _ = vote.ParseValue("*1;:0;")

// lateReply is the refusal for a library that asked for a lock. Libraries that read nil as a grant read an integer as the
// milliseconds to wait.
func lateReply(g script.Grant) vote.Value {
	switch g {
	case script.GrantNil:
		//mutant: a script that is late says yes
		return vote.Value{Kind: vote.IntValue, Int: 1}
	case script.GrantOK, script.GrantNotNil:
		return vote.Value{}
	case script.GrantFirst:
		return listOfZero
	}
	return vote.Value{Kind: vote.IntValue}
}

func grants(g script.Grant, keys int) func(vote.Value) bool {
	switch g {
	case script.GrantNil:
		return func(v vote.Value) bool { return v.Kind == vote.NilValue }
	case script.GrantNotNil:
		return func(v vote.Value) bool { return v.Kind != vote.NilValue }
	case script.GrantOK:
		return func(v vote.Value) bool {
			return (v.Kind == vote.StatusValue || v.Kind == vote.BulkValue) && v.Text == "OK"
		}
	case script.GrantKeys:
		return func(v vote.Value) bool { return v.Kind == vote.IntValue && v.Int == int64(keys) }
	case script.GrantFirst:
		return func(v vote.Value) bool {
			if v.Kind != vote.ArrayValue {
				return false
			}
			for first := range v.Parts() {
				return first.Kind == vote.IntValue && first.Int > 0
			}
			return false
		}
	}
	return func(v vote.Value) bool { return v.Kind == vote.IntValue && v.Int > 0 }
}

// runReply turns the value of a script that ran by vote into a Reply.
func runReply(v vote.Value) Reply {
	switch v.Kind {
	case vote.IntValue:
		return Int(v.Int)
	case vote.BulkValue:
		return Bulk(v.Text)
	case vote.StatusValue:
		return Status(v.Text)
	case vote.ErrorValue:
		return Error(strings.TrimRight(v.Text, "\r\n"))
	case vote.TrueValue, vote.FalseValue:
		return Bool(v.Kind == vote.TrueValue)
	case vote.DoubleValue:
		return Double(v.Text)
	case vote.BigNumberValue:
		return BigNumber(v.Text)
	case vote.VerbatimValue:
		return Verbatim(v.Text)
	case vote.ArrayValue, vote.SetValue, vote.MapValue:
		return votedList(v)
	}
	return Null{}
}

// A votedList is a script's list. The items are made when the reply is written.
type votedList vote.Value

func (r votedList) AppendTo(b []byte, resp3 bool) []byte {
	b = appendHead(b, vote.Value(r), resp3)
	for part := range vote.Value(r).Parts() {
		b = appendHead(b, part, resp3)
	}
	return b
}

// appendHead appends a value; of a list, only the header with the number of items.
func appendHead(b []byte, v vote.Value, resp3 bool) []byte {
	switch n := int(v.Int); {
	case v.Kind == vote.MapValue && resp3:
		return wire.AppendHeader(b, '%', n/2)
	case v.Kind == vote.SetValue && resp3:
		return wire.AppendHeader(b, '~', n)
	case v.Kind == vote.ArrayValue, v.Kind == vote.MapValue, v.Kind == vote.SetValue:
		return redcon.AppendArray(b, n)
	}
	return runReply(v).AppendTo(b, resp3)
}

func (r votedList) Size() int {
	n := 0
	for part := range vote.Value(r).Parts() {
		n += 16 + len(part.Text) // as sizeOf
	}
	return n
}
