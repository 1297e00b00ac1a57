package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockproxy/cmd/lockproxy/config"
)

// A Usage is an error in the command line. Its text says how to mend the command line.
type Usage string

func (u Usage) Error() string { return string(u) }

// Operands reads the command's own flags, and returns the other words. The words after -- are returned apart. An unknown flag is an
// error, a Usage.
func Operands(flags []Flag, args []string) (words, after []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			return words, args, nil
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") {
			words = append(words, arg)
			continue
		}
		if args, err = take(flags, arg, args); err != nil {
			return nil, nil, err
		}
	}
	return words, nil, nil
}

// Own takes the command's own flags out of args. The settings are read from the rest.
func Own(flags []Flag, args []string) (rest []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if find(flags, arg) == nil {
			rest = append(rest, arg)
			continue
		}
		if args, err = take(flags, arg, args); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// find returns the flag that a word names, or nil.
func find(flags []Flag, arg string) *Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	name = strings.ReplaceAll(name, "_", "-")
	i := slices.IndexFunc(flags, func(f Flag) bool {
		return strings.HasPrefix(arg, "-") && (name == f.Name || f.Short != "" && name == f.Short)
	})
	if i < 0 {
		return nil
	}
	return &flags[i]
}

// take reads one flag, and returns the words after the flag and its value.
func take(flags []Flag, arg string, args []string) ([]string, error) {
	f := find(flags, arg)
	if f == nil {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		mend := "add --help to see them all"
		if near := config.Nearest(name, flagNames(flags)); near != "" {
			mend = "did you mean --" + near + "?"
		}
		return nil, Usage(fmt.Sprintf("--%s: is no flag; %s", name, mend))
	}
	_, value, given := strings.Cut(arg, "=")
	switch {
	case f.Secret:
		return nil, Usage(fmt.Sprintf("--%s: would show the password to everybody on this machine; %s", f.Name, f.Help))
	case f.Arg == "" && given:
		return nil, Usage(fmt.Sprintf("--%s: takes no value; write --%s alone", f.Name, f.Name))
	case f.Arg != "" && !given && len(args) == 0:
		return nil, Usage(fmt.Sprintf("--%s: has no value; write --%s %s", f.Name, f.Name, f.Arg))
	case f.Arg != "" && !given:
		value, args = args[0], args[1:]
	}
	if err := f.Set(value); err != nil {
		return nil, Usage(fmt.Sprintf("--%s: %v", f.Name, err))
	}
	return args, nil
}

func flagNames(flags []Flag) []string {
	names := []string{"help"}
	for _, f := range flags {
		if !f.Secret {
			names = append(names, f.Name)
		}
	}
	return names
}

// Yes makes a Set of a flag without a value.
func Yes(to *bool) func(string) error {
	return func(string) error {
		*to = true
		return nil
	}
}

// Text makes a Set of a flag whose value must not be empty.
func Text(to *string) func(string) error {
	return func(value string) error {
		if strings.TrimSpace(value) == "" {
			return fmt.Errorf("is empty; give it a value, or leave it out")
		}
		*to = value
		return nil
	}
}

// Texts makes a Set of a flag that may be given several times, and may have several values, parted by commas.
func Texts(to *[]string) func(string) error {
	return func(value string) error {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part == "" {
				return fmt.Errorf("%q has an empty part; write one or more values with commas between them", value)
			}
			*to = append(*to, part)
		}
		return nil
	}
}

// Duration makes a Set of a flag whose value lies in a range.
func Duration(to *time.Duration, least, most time.Duration) func(string) error {
	return func(value string) error {
		d, err := time.ParseDuration(value)
		if value == "0" {
			d, err = 0, nil
		}
		switch {
		case err != nil:
			return fmt.Errorf("%q is no duration; write a duration from %v to %v, such as 500ms, 30s or 5m", value, short(least), short(most))
		case d < least || d > most:
			return fmt.Errorf("%v is not from %v to %v", value, short(least), short(most))
		}
		*to = d
		return nil
	}
}

// short writes a duration without trailing parts of zero.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Number makes a Set of a flag whose value lies in a range.
func Number(to *int, least, most int) func(string) error {
	return func(value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q is no number from %d to %d", value, least, most)
		}
		*to = n
		return nil
	}
}

// OneOf makes a Set of a flag that takes only the given values.
func OneOf(to *string, values ...string) func(string) error {
	return func(value string) error {
		if !slices.Contains(values, value) {
			return fmt.Errorf("%q is none of %s", value, strings.Join(values, ", "))
		}
		*to = value
		return nil
	}
}
