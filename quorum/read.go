package quorum

// Get reads a string: the value that a quorum agrees on.
func (e *Engine) Get(key Key, done func(View)) {
	e.ask(key, []any{"GET", key.Name}, 0, func(a Asked) {
		v := View{Err: a.Err, Type: "none"}
		if text, ok := a.Reply.(string); ok {
			v.Exists, v.Type, v.Value = true, "string", text
		}
		done(v)
	})
}

// Read tells all that a quorum agrees on about a key of any type.
func (e *Engine) Read(key Key, done func(View)) {
	e.look(key.DB, []string{key.Name}, &looking{done: func(l *looking) {
		v := l.views[0]
		v.Err = l.err
		done(v)
	}})
}
