package wire

import "testing"

func TestRepliesInBothProtocols(t *testing.T) {
	for _, c := range []struct {
		reply        Reply
		resp2, resp3 string
	}{
		{Status("a\r\nb"), "+a  b\r\n", "+a  b\r\n"},
		{Error("ERR a\nb"), "-ERR a b\r\n", "-ERR a b\r\n"},
		{Int(-5), ":-5\r\n", ":-5\r\n"},
		{Bulk("a\r\nb"), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n"},
		{Bulk(""), "$0\r\n\r\n", "$0\r\n\r\n"},
		{Verbatim("txtabc"), "$3\r\nabc\r\n", "=7\r\ntxt:abc\r\n"},
		{Null{}, "$-1\r\n", "_\r\n"},
		{NullArray{}, "*-1\r\n", "_\r\n"},
		{Array{Int(1), Null{}}, "*2\r\n:1\r\n$-1\r\n", "*2\r\n:1\r\n_\r\n"},
		{Set{Int(1)}, "*1\r\n:1\r\n", "~1\r\n:1\r\n"},
		{Map{Bulk("a"), Int(1)}, "*2\r\n$1\r\na\r\n:1\r\n", "%1\r\n$1\r\na\r\n:1\r\n"},
		{Push{Bulk("a")}, "*1\r\n$1\r\na\r\n", ">1\r\n$1\r\na\r\n"},
	} {
		if got := string(c.reply.AppendTo(nil, false)); got != c.resp2 {
			t.Errorf("%#v: got %q, want %q", c.reply, got, c.resp2)
		}
		if got := string(c.reply.AppendTo(nil, true)); got != c.resp3 {
			t.Errorf("%#v: got %q, want %q", c.reply, got, c.resp3)
		}
	}
}
