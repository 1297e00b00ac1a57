package script

import "slices"

// A run executes a text once, in one world, on one path.
type run struct {
	path   *path
	key    keyState
	scopes []map[string]symbol // the first has the globals
}

// A halted is the value of the panic with which a run stops. execute recovers the panic: a run leaves nothing to tidy
// up.
type halted struct{ cause error }

var notUnderstood = halted{errNotUnderstood}

// execute runs a whole text and returns Redis's reply, or why the run halted.
func (r *run) execute(body []stmt) (reply Value, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case halted:
			err = p.cause
		default:
			panic(p)
		}
	}()
	r.scopes = []map[string]symbol{globals}
	value, _ := r.block(body)
	return value.reply(), nil
}

// block runs statements in a scope of their own, and says whether they returned.
func (r *run) block(body []stmt) (symbol, bool) {
	r.scopes = append(r.scopes, map[string]symbol{})
	defer func() { r.scopes = r.scopes[:len(r.scopes)-1] }()
	for _, s := range body {
		if value, returned := r.statement(s); returned {
			return value, true
		}
	}
	return symbol{}, false
}

func (r *run) statement(s stmt) (value symbol, returned bool) {
	switch s := s.(type) {
	case localStmt:
		r.local(s)
	case assignStmt:
		r.assign(s)
	case callStmt:
		r.call(s.call)
	case doStmt:
		return r.block(s.body)
	case keysLoop:
		return r.loop(s)
	case returnStmt:
		if s.value == nil {
			return symbol{}, true
		}
		return r.eval(s.value), true
	case ifStmt:
		for i, condition := range s.conditions {
			if r.eval(condition).truthy() {
				return r.block(s.blocks[i])
			}
		}
		return r.block(s.otherwise)
	default:
		panic(notUnderstood)
	}
	return symbol{}, false
}

func (r *run) local(s localStmt) {
	values := make([]symbol, max(len(s.names), len(s.values))) // nil where there are fewer values
	for i, e := range s.values {
		values[i] = r.eval(e)
	}
	for i, name := range s.names {
		r.scopes[len(r.scopes)-1][name] = values[i]
	}
}

// assign changes a local. Redis refuses to make a global.
func (r *run) assign(s assignStmt) {
	value := r.eval(s.value)
	for _, scope := range slices.Backward(r.scopes[1:]) {
		if _, ok := scope[s.name]; ok {
			scope[s.name] = value
			return
		}
	}
	panic(notUnderstood)
}

// loop runs its body once: the Meaning then holds for calls with one key only.
func (r *run) loop(s keysLoop) (symbol, bool) {
	keys, _ := r.lookup("KEYS")
	if ipairs, _ := r.lookup("ipairs"); keys.kind != symKeys || ipairs.text != "ipairs" || ipairs.kind != symFunction {
		panic(notUnderstood)
	}
	r.path.oneKey = true
	r.scopes = append(r.scopes, map[string]symbol{s.index: number(1), s.key: r.path.mention(fromKeys, 1)})
	defer func() { r.scopes = r.scopes[:len(r.scopes)-1] }()
	return r.block(s.body)
}

// globals are the names that a script may use without a declaration.
var globals = map[string]symbol{
	"KEYS": {kind: symKeys}, "ARGV": {kind: symArgv}, "redis": {kind: symLibrary}, "server": {kind: symLibrary},
	"tonumber": function("tonumber"), "tostring": function("tostring"), "type": function("type"),
	"ipairs": function("ipairs"),
}

var libraryFunctions = map[string]bool{
	"call": true, "pcall": true, "status_reply": true, "error_reply": true, "replicate_commands": true,
}

func function(name string) symbol { return symbol{kind: symFunction, text: name} }

// lookup returns the value of a name, and whether the name is known.
func (r *run) lookup(name string) (symbol, bool) {
	for _, scope := range slices.Backward(r.scopes) {
		if value, ok := scope[name]; ok {
			return value, true
		}
	}
	return symbol{}, false
}
