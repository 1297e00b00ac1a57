package script

import "slices"

// A run executes a text once, in one world, on one path.
type run struct {
	path   *path
	key    keyState
	scopes []map[string]symbol // the first has the globals
}

// execute runs a whole text and returns what it returned.
func (r *run) execute(body []stmt) (symbol, error) {
	r.scopes = []map[string]symbol{globals}
	value, _, err := r.block(body)
	return value, err
}

// block runs statements in a scope of their own. It is true if they returned.
func (r *run) block(body []stmt) (symbol, bool, error) {
	r.scopes = append(r.scopes, map[string]symbol{})
	defer func() { r.scopes = r.scopes[:len(r.scopes)-1] }()
	for _, s := range body {
		value, returned, err := r.statement(s)
		if err != nil || returned {
			return value, returned, err
		}
	}
	return symbol{}, false, nil
}

func (r *run) statement(s stmt) (symbol, bool, error) {
	switch s := s.(type) {
	case localStmt:
		return symbol{}, false, r.local(s)
	case assignStmt:
		return symbol{}, false, r.assign(s)
	case callStmt:
		_, err := r.call(s.call)
		return symbol{}, false, err
	case doStmt:
		return r.block(s.body)
	case keysLoop:
		return r.loop(s)
	case returnStmt:
		if s.value == nil {
			return symbol{}, true, nil
		}
		value, err := r.eval(s.value)
		return value, true, err
	case ifStmt:
		for i, condition := range s.conditions {
			value, err := r.eval(condition)
			if err != nil {
				return symbol{}, false, err
			}
			if value.truthy() {
				return r.block(s.blocks[i])
			}
		}
		return r.block(s.otherwise)
	}
	return symbol{}, false, errNotUnderstood
}

func (r *run) local(s localStmt) error {
	values := make([]symbol, len(s.names)) // nil where there are fewer values
	for i, e := range s.values {
		value, err := r.eval(e)
		if err != nil {
			return err
		}
		if i < len(values) {
			values[i] = value
		}
	}
	for i, name := range s.names {
		r.scopes[len(r.scopes)-1][name] = values[i]
	}
	return nil
}

// assign changes a local. Redis refuses to make a global.
func (r *run) assign(s assignStmt) error {
	value, err := r.eval(s.value)
	if err != nil {
		return err
	}
	for _, scope := range slices.Backward(r.scopes[1:]) {
		if _, ok := scope[s.name]; ok {
			scope[s.name] = value
			return nil
		}
	}
	return errNotUnderstood
}

// loop runs its body once: what is found then holds for calls with one key only.
func (r *run) loop(s keysLoop) (symbol, bool, error) {
	keys, _ := r.lookup("KEYS")
	if ipairs, _ := r.lookup("ipairs"); keys.kind != symKeys || ipairs.text != "ipairs" || ipairs.kind != symFunction {
		return symbol{}, false, errNotUnderstood
	}
	r.path.oneKey = true
	r.scopes = append(r.scopes, map[string]symbol{s.index: number(1), s.key: r.path.mention(fromKeys, 1)})
	defer func() { r.scopes = r.scopes[:len(r.scopes)-1] }()
	return r.block(s.body)
}

// globals are the names that a script finds without declaring them.
var globals = map[string]symbol{
	"KEYS": {kind: symKeys}, "ARGV": {kind: symArgv}, "redis": {kind: symLibrary}, "server": {kind: symLibrary},
	"tonumber": function("tonumber"), "tostring": function("tostring"), "type": function("type"),
	"ipairs": function("ipairs"),
}

var libraryFunctions = map[string]bool{
	"call": true, "pcall": true, "status_reply": true, "error_reply": true, "replicate_commands": true,
}

func function(name string) symbol { return symbol{kind: symFunction, text: name} }

// lookup returns what a name stands for, and whether it stands for anything.
func (r *run) lookup(name string) (symbol, bool) {
	for _, scope := range slices.Backward(r.scopes) {
		if value, ok := scope[name]; ok {
			return value, true
		}
	}
	return symbol{}, false
}
