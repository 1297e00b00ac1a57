package resp

import "lockproxy/resp/wire"

// The replies of package wire by their short names: handlers are full of replies.
//
//nolint:revive // package wire documents the types
type (
	Reply     = wire.Reply
	Status    = wire.Status
	Error     = wire.Error
	Int       = wire.Int
	Bulk      = wire.Bulk
	Verbatim  = wire.Verbatim
	Double    = wire.Double
	BigNumber = wire.BigNumber
	Bool      = wire.Bool
	Null      = wire.Null
	NullArray = wire.NullArray
	Array     = wire.Array
	Set       = wire.Set
	Map       = wire.Map
	Push      = wire.Push
	Sequence  = wire.Sequence
	Raw       = wire.Raw
)

var okReply = wire.OK

// errEnding stands for the reply to a command given up while waiting. The connection is ending, and the client gets no reply.
const errEnding = Error("ERR the connection is ending")
