package config

import (
	"fmt"
	"log/slog"
	"strings"
)

// A User may AUTH. AUTH with a password alone means the user "default".
type User struct {
	Name        string
	Password    Secret
	File        string // the file with the password; empty: no file
	ForceUnlock bool   // may send FORCEUNLOCK
}

func (u User) String() string { return u.Name }

// LogValue keeps slog from showing the password.
func (u User) LogValue() slog.Value { return slog.StringValue(u.Name) }

// setUsers takes a list of mappings, or in a variable a text name:password with commas between.
func setUsers(c *Config, in raw) []fault {
	var faults []fault
	all := []User{}
	seen := make(map[string]bool)
	add := func(u User, line int, wrong string) {
		switch {
		case wrong != "":
		case u.Name == "":
			wrong = "has no name; give one, or \"default\" for clients that AUTH with a password alone"
		case u.Password.Empty():
			wrong = fmt.Sprintf("(%s) has no password; give password or password_file", u.Name)
		case seen[u.Name]:
			wrong = fmt.Sprintf("(%s) is there twice; remove one", u.Name)
		}
		seen[u.Name] = true
		all = append(all, u)
		if wrong != "" {
			faults = append(faults, fault{line, fmt.Sprintf("user %d %s", len(all), wrong)})
		}
	}
	switch {
	case in.fields != nil:
		return []fault{{in.line, "is no list; write - name: … and password: … for each user"}}
	case in.items != nil:
		for _, item := range in.items {
			u, wrong := parseUser(item)
			add(u, item.line, wrong)
		}
	case !blank(in.text):
		for part := range strings.SplitSeq(in.text, ",") {
			name, password, _ := strings.Cut(part, ":")
			wrong := ""
			switch {
			case blank(part): // most likely a variable was not set, and nobody would need to log in
				wrong = "is empty; write name:password, or remove the comma"
			case password == "": // the part is not shown: it may be the rest of a password
				wrong = "is not name:password; write it so, with commas between users, and put a password that has a comma into the file"
			}
			add(User{Name: strings.TrimSpace(name), Password: NewSecret(password)}, in.line, wrong)
		}
	}
	if len(faults) == 0 {
		c.Users = all
	}
	return faults
}

// parseUser reads one mapping of the file.
func parseUser(in raw) (User, string) {
	var u User
	if in.fields == nil {
		return u, "is no mapping; write name: … and password: …"
	}
	file := ""
	for key, v := range in.fields {
		switch {
		case v.items != nil || v.fields != nil:
			return u, key + " is no text"
		case key == "name":
			u.Name = v.text
		case key == "password":
			u.Password = NewSecret(v.text)
		case key == "password_file":
			file = v.text
		case key == "force_unlock":
			yes, ok := truth(v.text)
			if !ok {
				return u, fmt.Sprintf("force_unlock %q is neither true nor false; write one of them", v.text)
			}
			u.ForceUnlock = yes
		default:
			return u, fmt.Sprintf("has the unknown key %q; there are name, password, password_file and force_unlock", key)
		}
	}
	if file == "" {
		return u, ""
	}
	if !u.Password.Empty() {
		return u, "has both password and password_file; remove one"
	}
	var wrong string
	u.File = file
	if u.Password, wrong = readSecret(file); wrong != "" {
		return u, "password_file " + wrong
	}
	return u, ""
}
