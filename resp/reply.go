package resp

import "lockproxy/resp/wire"

// The replies of package wire by their short names: handlers are full of them.
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

// Two replies are never written.
type (
	laterReply struct{ Null } // the slot that the handler claimed gets the reply
	waitReply  struct{ Null } // the handler must be called again when an earlier command is done
)

var (
	later Reply = laterReply{}
	wait  Reply = waitReply{}
)
