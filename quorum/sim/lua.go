package sim

import (
	"crypto/sha1" //nolint:gosec // the name that Redis gives a script, not a safeguard
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// protos are the compiled scripts, by text. They are few, and the same in every world.
var protos sync.Map

// compile answers Redis's error for a text that is not Lua, else nil.
func compile(text string) reply {
	if _, ok := protos.Load(text); ok {
		return nil
	}
	chunk, err := parse.Parse(strings.NewReader(text), "user_script")
	if err != nil {
		return fault("ERR Error compiling script (new function): " + err.Error())
	}
	proto, err := lua.Compile(chunk, "user_script")
	if err != nil {
		return fault("ERR Error compiling script (new function): " + err.Error())
	}
	protos.Store(text, proto)
	return nil
}

// An interpreter runs scripts, one at a time, for the server that has borrowed the interpreter.
type interpreter struct {
	state *lua.LState
	funcs map[string]*lua.LFunction
	host  *server
	from  *session
}

// interpreters are kept from world to world: a new interpreter costs more than a world's use of it.
var interpreters struct {
	mu   sync.Mutex
	idle []*interpreter
}

func borrow() *interpreter {
	interpreters.mu.Lock()
	defer interpreters.mu.Unlock()
	n := len(interpreters.idle)
	if n == 0 {
		return newInterpreter()
	}
	in := interpreters.idle[n-1]
	interpreters.idle = interpreters.idle[:n-1]
	return in
}

func giveBack(in *interpreter) {
	in.host, in.from = nil, nil
	interpreters.mu.Lock()
	defer interpreters.mu.Unlock()
	interpreters.idle = append(interpreters.idle, in)
}

func newInterpreter() *interpreter {
	in := &interpreter{state: lua.NewState(lua.Options{SkipOpenLibs: true}), funcs: make(map[string]*lua.LFunction)}
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenTable, lua.OpenString, lua.OpenMath} {
		in.state.Push(in.state.NewFunction(open))
		in.state.Call(0, 0)
	}
	api := in.state.NewTable()
	api.RawSetString("call", in.state.NewFunction(func(l *lua.LState) int { return in.call(l, true) }))
	api.RawSetString("pcall", in.state.NewFunction(func(l *lua.LState) int { return in.call(l, false) }))
	api.RawSetString("sha1hex", in.state.NewFunction(func(l *lua.LState) int {
		l.Push(lua.LString(sha1hex(l.CheckString(1))))
		return 1
	}))
	for name, field := range map[string]string{"status_reply": "ok", "error_reply": "err"} {
		api.RawSetString(name, in.state.NewFunction(func(l *lua.LState) int {
			t := l.NewTable()
			t.RawSetString(field, lua.LString(l.CheckString(1)))
			l.Push(t)
			return 1
		}))
	}
	in.state.SetGlobal("redis", api)
	in.state.SetGlobal("tonumber", in.state.NewFunction(toNumber))
	return in
}

// eval runs a compiled text. words are the number of keys, the keys and the arguments.
func (s *server) eval(c *session, text string, words []string) reply {
	n, err := strconv.Atoi(words[0])
	switch {
	case err != nil:
		return errInteger
	case n < 0:
		return fault("ERR Number of keys can't be negative")
	case n > len(words)-1:
		return fault("ERR Number of keys can't be greater than number of args")
	}
	in := borrow()
	defer giveBack(in)
	in.host, in.from = s, &session{id: c.id, life: c.life, db: c.db, script: true}
	keys, argv := words[1:1+n], words[1+n:]
	if n == 1 {
		defer s.mistook(c, keys[0], argv)()
		if c.giver != nil {
			defer s.givesBack(c, keys[0])()
		}
	}
	return in.run(text, keys, argv)
}

// mistook returns a function to call after a script. The function notes an undo that took the key of another attempt.
// Through two proxies, one token can be on two keys that expire in the same millisecond, or on an old server in nearly
// the same. To tell them apart is not promised (docs/safety.md).
func (s *server) mistook(c *session, key string, argv []string) func() {
	was, had := s.get(c, key)
	if !had || len(argv) < 2 || argv[0] != was.text || was.by == nil || was.by == c.life {
		return func() {}
	}
	expires, err := strconv.ParseInt(argv[1], 10, 64)
	inexact := int64(0)
	if s.old {
		inexact = 2
	}
	if err != nil || max(expires-was.expires, was.expires-expires) > inexact {
		return func() {}
	}
	return func() {
		if is, has := s.get(c, key); !has || is != was {
			s.logf("%s: an undo took the key of another proxy's attempt for its own", key)
			s.world.checker.doubt(key, s.now()+2*s.world.plan.loosest().InstanceTimeout)
		}
	}
}

func (in *interpreter) run(text string, keys, argv []string) reply {
	l := in.state
	f := in.funcs[text]
	if f == nil {
		proto, _ := protos.Load(text)
		f = l.NewFunctionFromProto(proto.(*lua.FunctionProto))
		in.funcs[text] = f
	}
	l.SetGlobal("KEYS", in.list(keys))
	l.SetGlobal("ARGV", in.list(argv))
	l.SetTop(0)
	if err := l.CallByParam(lua.P{Fn: f, NRet: 1, Protect: true}); err != nil {
		return raised(err)
	}
	v := l.Get(-1)
	l.Pop(1)
	return toReply(v)
}

// raised turns an error that left the script into a reply: the command's error, or Redis's words for an error of Lua.
func raised(err error) reply {
	var api *lua.ApiError
	if !errors.As(err, &api) {
		return fault("ERR " + err.Error())
	}
	if t, ok := api.Object.(*lua.LTable); ok {
		if text, ok := t.RawGetString("err").(lua.LString); ok {
			return fault(text)
		}
	}
	return fault("ERR " + strings.ReplaceAll(api.Object.String(), "\n", " "))
}

func (in *interpreter) list(words []string) *lua.LTable {
	t := in.state.CreateTable(len(words), 0)
	for i, w := range words {
		t.RawSetInt(i+1, lua.LString(w))
	}
	return t
}

// call is redis.call, which raises errors, or redis.pcall, which returns them.
func (in *interpreter) call(l *lua.LState, raise bool) int {
	args := make([]string, 0, l.GetTop())
	for i := range l.GetTop() {
		switch v := l.Get(i + 1).(type) {
		case lua.LString:
			args = append(args, string(v))
		case lua.LNumber:
			args = append(args, strconv.FormatFloat(float64(v), 'g', 17, 64))
			if n := int64(v); lua.LNumber(n) == v {
				args[i] = strconv.FormatInt(n, 10)
			}
		default:
			return in.give(l, fault("ERR Lua redis lib command arguments must be strings or integers"), raise)
		}
	}
	if len(args) == 0 {
		return in.give(l, fault("ERR Please specify at least one argument for this redis.call() call"), raise)
	}
	answer := in.host.do(in.from, args)
	switch text, _ := answer.(fault); {
	case strings.HasPrefix(string(text), "ERR unknown command"):
		answer = fault("ERR Unknown Redis command called from script")
	case strings.HasPrefix(string(text), "ERR wrong number of arguments"):
		answer = fault("ERR Wrong number of args calling Redis command from script")
	}
	return in.give(l, answer, raise)
}

func (in *interpreter) give(l *lua.LState, answer reply, raise bool) int {
	v := toLua(l, answer)
	if _, failed := answer.(fault); failed && raise {
		l.Error(v, 1)
	}
	l.Push(v)
	return 1
}

func toLua(l *lua.LState, r reply) lua.LValue {
	switch r := r.(type) {
	case nil:
		return lua.LFalse
	case int64:
		return lua.LNumber(r)
	case string:
		return lua.LString(r)
	case status:
		t := l.NewTable()
		t.RawSetString("ok", lua.LString(r))
		return t
	case fault:
		t := l.NewTable()
		t.RawSetString("err", lua.LString(r))
		return t
	case []any:
		t := l.NewTable()
		for i, e := range r {
			t.RawSetInt(i+1, toLua(l, e))
		}
		return t
	}
	panic(fmt.Sprintf("no Lua value for a %T", r))
}

// toReply converts a script's value as Redis does: numbers lose their fraction, false is null, and an array ends at its
// first nil.
func toReply(v lua.LValue) reply {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return int64(v)
	case lua.LBool:
		if v {
			return int64(1)
		}
	case *lua.LTable:
		if text, ok := v.RawGetString("err").(lua.LString); ok {
			return fault(text)
		}
		if text, ok := v.RawGetString("ok").(lua.LString); ok {
			return status(text)
		}
		list := []any{}
		for i := 1; v.RawGetInt(i) != lua.LNil; i++ {
			list = append(list, toReply(v.RawGetInt(i)))
		}
		return list
	}
	return nil
}

// toNumber is tonumber with exponents, which the interpreter's own tonumber does not read.
func toNumber(l *lua.LState) int {
	switch v := l.CheckAny(1).(type) {
	case lua.LNumber:
		l.Push(v)
	case lua.LString:
		n, err := strconv.ParseFloat(strings.TrimSpace(string(v)), 64)
		if err != nil {
			l.Push(lua.LNil)
			return 1
		}
		l.Push(lua.LNumber(n))
	default:
		l.Push(lua.LNil)
	}
	return 1
}

// sha1hex is Redis's name of a script.
func sha1hex(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}
