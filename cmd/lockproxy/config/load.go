package config

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// A Loaded is the result of Load.
type Loaded struct {
	Config   *Config
	Warnings []string // unwise settings with which lockproxy runs all the same
	Operand  string   // the word beside the flags, for LoadWithOperand
	operands int      // how many there may be
	problems Problems
	bad      map[string]bool // settings with a problem: their relations are not checked
}

// Load reads the flags args, the environment env and the file that --config or LOCKPROXY_CONFIG names. The error, if
// any, is a Problems.
func Load(args, env []string) (*Loaded, error) { return load(args, env, 0) }

// LoadWithOperand is Load, but one word that is no flag may stand before, between or after the flags.
func LoadWithOperand(args, env []string) (*Loaded, error) { return load(args, env, 1) }

func load(args, env []string, operands int) (*Loaded, error) {
	l := &Loaded{Config: Default(), bad: make(map[string]bool), operands: operands}
	flags, path := l.parseFlags(args)
	variables, fromEnv := l.parseEnv(env)
	if path.where == "" {
		path = fromEnv
	}
	switch {
	case path.where == "":
	case blank(path.text):
		l.problem(path.where, "", "is empty; name a file, or leave it out")
	default:
		l.file(path)
	}
	for _, in := range append(variables, flags...) {
		if without := opens[in.setting.name]; without != "" && blank(in.text) {
			l.problem(in.where, nameIn(in.where, in.setting), "is empty; give it a value, or leave it out so that "+without)
			continue
		}
		l.set(in.where, in.setting, raw{text: in.text})
	}
	l.finish()
	if len(l.problems) > 0 {
		return nil, l.problems
	}
	return l, nil
}

// opens has the settings that guard a proxy, and the state of a proxy without each. The settings may be left out, but a
// flag or a variable must not make them empty.
var opens = map[string]string{
	"masters":       "three embedded masters serve, for trying out only",
	"users":         "nobody needs to log in",
	"tls_cert":      "clients come without TLS",
	"tls_key":       "clients come without TLS",
	"tls_client_ca": "clients need no certificate",
}

// blank says that a text was not filled in: most likely the variable in a template was not set.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

// An input is one text for a setting, from a flag or a variable.
type input struct {
	where   string
	setting *setting
	text    string
}

func (l *Loaded) problem(where, key, text string) {
	l.bad[key] = true
	l.problems = append(l.problems, Problem{where, key, text})
}

func (l *Loaded) set(where string, s *setting, in raw) {
	for _, f := range s.value.set(l.Config, in) {
		at := where
		if f.line > 0 {
			at = fmt.Sprintf("%s:%d", where, f.line)
		}
		l.bad[s.name] = true
		l.problems = append(l.problems, Problem{at, nameIn(where, s), f.text})
	}
}

// nameIn leaves the key out where the source already names the setting.
func nameIn(where string, s *setting) string {
	if where == variableOf(s.name) || where == flagOf(s.name) {
		return ""
	}
	return s.name
}

func variableOf(name string) string { return "LOCKPROXY_" + strings.ToUpper(name) }
func flagOf(name string) string     { return "--" + strings.ReplaceAll(name, "_", "-") }

// file reads the YAML file.
func (l *Loaded) file(path input) {
	text, err := readFile(path.text, settingsMax)
	if err != nil {
		l.problem(path.where, "", "cannot read "+cause(err)+"; name a file such as config.example.yaml")
		return
	}
	entries, faults := readYAML(text)
	for _, f := range faults {
		l.problem(fmt.Sprintf("%s:%d", path.text, f.line), "", f.text)
	}
	if len(entries)+len(faults) == 0 { // most likely a template was not filled in, and no masters would mean embedded ones
		l.problem(path.text, "", "sets nothing; write masters and what else is to be set there, or leave it out")
	}
	for _, e := range entries {
		at := fmt.Sprintf("%s:%d", path.text, e.line)
		switch s := lookup(e.key); {
		case s == nil:
			l.problem(at, e.key, "is no setting"+didYouMean(e.key, names(), "config.example.yaml lists them all"))
		case e.wrong != "":
			l.problem(at, e.key, e.wrong)
		case (s.name == "masters" || s.name == "users") && e.raw.isBlank(): // a template that was not filled in
			l.problem(at, e.key, "is empty; give it a value, or write [] so that "+opens[s.name])
		default:
			l.set(path.text, s, e.raw)
		}
	}
}

// cause returns the text of an I/O error, with the path once.
func cause(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Path + ": " + path.Err.Error()
	}
	return err.Error()
}

// parseFlags returns the settings from the flags, and the file named by --config.
func (l *Loaded) parseFlags(args []string) (inputs []input, path input) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, text, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		name = strings.ReplaceAll(name, "-", "_")
		s := lookup(name)
		switch {
		case l.operands > 0 && (arg == "-" || !strings.HasPrefix(arg, "-")):
			l.Operand = arg
			l.operands--
			continue
		case !strings.HasPrefix(arg, "-"):
			l.problem(WithoutPassword(arg), "", "is no flag; write --name value, see lockproxy help")
			continue
		case s == nil && name != "config":
			l.problem(flagOf(name), "", "is no flag"+didYouMean(flagOf(name), flags(), "lockproxy help lists them all"))
			// The next argument is most likely the unknown flag's value, not another mistake.
			if len(args) > 0 && !given && !strings.HasPrefix(args[0], "-") {
				args = args[1:]
			}
			continue
		case !given && s != nil && s.value.flag && (len(args) == 0 || strings.HasPrefix(args[0], "-")):
			text = "true"
		case !given && len(args) == 0:
			l.problem(flagOf(name), "", "has no value; write "+flagOf(name)+" value")
			continue
		case !given:
			text, args = args[0], args[1:]
		}
		switch {
		case name == "config":
			path = input{where: "--config", text: text}
		case s.secret:
			l.problem(flagOf(name), "", "would show the password to everybody on this machine; set "+
				variableOf(name)+", or "+name+" in the file")
		default:
			inputs = append(inputs, input{flagOf(name), s, text})
		}
	}
	return inputs, path
}

// flags returns all flags.
func flags() []string {
	all := []string{"--config", "--help"}
	for _, s := range settings {
		if !s.secret {
			all = append(all, flagOf(s.name))
		}
	}
	return all
}

// parseEnv returns the settings from the environment, and the file named by LOCKPROXY_CONFIG. An empty variable stops
// the start, unless the default is empty as well. Then an empty variable counts as none, except for a setting that
// guards the proxy.
func (l *Loaded) parseEnv(env []string) (inputs []input, path input) {
	for _, kv := range env {
		variable, text, _ := strings.Cut(kv, "=")
		name, ours := strings.CutPrefix(variable, "LOCKPROXY_")
		if !ours {
			continue
		}
		name = strings.ToLower(name)
		switch s := lookup(name); {
		case name == "config":
			path = input{where: variable, text: text}
		case s != nil && blank(text) && s.def != "":
			l.problem(variable, "", "is empty; give it a value, or leave it out for "+s.def)
		case s != nil && blank(text) && opens[s.name] == "":
		case s != nil:
			inputs = append(inputs, input{variable, s, text})
		case !foreign(name, text):
			l.unknown(variable, Nearest(name, names()))
		}
	}
	return inputs, path
}

// unknown notes a variable that is no setting, but may be meant for near, if near is not empty. The variable is a
// problem only if near guards the proxy; otherwise a warning.
func (l *Loaded) unknown(variable, near string) {
	switch {
	case opens[near] != "":
		l.problem(variable, "", "is no setting; did you mean "+variableOf(near)+"?")
	case near != "":
		l.Warnings = append(l.Warnings, variable+" is no setting; did you mean "+variableOf(near)+"?")
	default:
		l.Warnings = append(l.Warnings, variable+" is no setting; lockproxy help lists them all")
	}
}

// foreign tells variables that others set for reasons of their own. Kubernetes sets variables for every service whose
// name begins with lockproxy (for lockproxy-tls LOCKPROXY_TLS_SERVICE_HOST, LOCKPROXY_TLS_PORT=tcp://… and more). Our
// tests set some for themselves. There may be others. So most unknown variables cause only a warning, while an unknown
// key or flag stops the start.
func foreign(name, text string) bool {
	return name == "key" || name == "token" || name == "fence" || name == "proxy" || strings.HasPrefix(name, "proxy_") || // of lockproxy run
		serviceVariable.MatchString(name) || portVariable.MatchString(name) && strings.Contains(text, "://") ||
		strings.HasPrefix(name, "require_") || name == "bin"
}

var (
	serviceVariable = regexp.MustCompile(`(^|_)(service_(host|port)|port_[0-9]+_(tcp|udp|sctp))(_|$)`)
	portVariable    = regexp.MustCompile(`(^|_)port$`)
)
