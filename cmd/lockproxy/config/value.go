package config

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A raw is a source's value: a text, or in the file perhaps a list or a mapping.
type raw struct {
	text   string
	items  []raw          // of a list, not nil
	fields map[string]raw // of a mapping, not nil
	line   int            // in the file, else 0
}

func (r raw) isBlank() bool { return r.items == nil && r.fields == nil && blank(r.text) }

// list returns the items of a list, or of a text the parts between its commas. A blank text has none.
func (r raw) list() []raw {
	if r.items != nil || blank(r.text) {
		return r.items
	}
	var items []raw
	for part := range strings.SplitSeq(r.text, ",") {
		items = append(items, raw{text: strings.TrimSpace(part), line: r.line})
	}
	return items
}

// A fault is the fault of one value, and the remedy.
type fault struct {
	line int
	text string
}

// A value knows the accepted texts of a setting, and its field.
type value struct {
	flag bool // a bare --name means true
	// set writes the value into c. If set returns faults, c is unchanged.
	set func(c *Config, in raw) []fault
}

// valueMax is how long a value may be, a path or a password for example. Messages quote bad values.
const valueMax = 4 << 10

// scalar makes a value of a function that reads a text and returns the fault of a bad text.
func scalar(accepts string, set func(c *Config, text string) string) value {
	return value{set: func(c *Config, in raw) []fault {
		var wrong string
		switch {
		case in.items != nil:
			wrong = "is a list; write one value: " + accepts
		case in.fields != nil:
			wrong = "is a mapping; write one value: " + accepts
		case len(in.text) > valueMax:
			wrong = fmt.Sprintf("is longer than %s; write %s", sizeText(valueMax), accepts)
		default:
			wrong = set(c, in.text)
		}
		if wrong == "" {
			return nil
		}
		return []fault{{in.line, wrong}}
	}}
}

// duration accepts low to high, and also 0 where zero is "off".
func duration(field func(*Config) *time.Duration, low, high time.Duration, zero ...string) value {
	accepts := fmt.Sprintf("a duration from %s to %s, such as 50ms, 5s or 1h", short(low), short(high))
	if len(zero) > 0 {
		accepts += ", or 0 for " + zero[0]
	}
	return scalar(accepts, func(c *Config, text string) string {
		d, err := time.ParseDuration(text)
		switch {
		case err != nil && isNumber(text):
			return fmt.Sprintf("%s has no unit; write %sms for milliseconds, %ss for seconds", text, text, text)
		case err != nil:
			return fmt.Sprintf("%q is no duration; write %s", text, accepts)
		case d == 0 && len(zero) > 0:
		case d < low || d > high:
			return fmt.Sprintf("%s is out of range; write %s", short(d), accepts)
		}
		*field(c) = d
		return ""
	})
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// short is d without the zeros at the end of Duration.String.
func short(d time.Duration) string { return withoutZeros.Replace(d.String()) }

var withoutZeros = strings.NewReplacer("h0m0s", "h", "m0s", "m")

func integer(field func(*Config) *int, low, high int) value {
	accepts := fmt.Sprintf("a whole number from %d to %d", low, high)
	return scalar(accepts, func(c *Config, text string) string {
		n, err := strconv.Atoi(strings.ReplaceAll(text, "_", ""))
		if err != nil {
			return fmt.Sprintf("%q is no whole number; write %s", text, accepts)
		}
		if n < low || n > high {
			return fmt.Sprintf("%d is out of range; write %s", n, accepts)
		}
		*field(c) = n
		return ""
	})
}

// sizeUnits are the units of redis.conf.
var sizeUnits = []struct {
	suffix string
	bytes  int
}{{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"b", 1}}

// size is a number of bytes.
func size(field func(*Config) *int, low, high string) value {
	accepts := fmt.Sprintf("a size from %s to %s, such as 512kb or 1mb", low, high)
	least, most := mustSize(low), mustSize(high)
	return scalar(accepts, func(c *Config, text string) string {
		n, ok := parseSize(text)
		if !ok {
			return fmt.Sprintf("%q is no size; write %s", text, accepts)
		}
		if n < least || n > min(most, math.MaxInt) {
			return fmt.Sprintf("%s is out of range; write %s", text, accepts)
		}
		*field(c) = int(n)
		return ""
	})
}

func parseSize(text string) (int64, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	factor := int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, factor = strings.TrimSpace(rest), int64(u.bytes)
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > (1<<50)/factor {
		return 0, false
	}
	return n * factor, true
}

// sizeText is n bytes in the largest exact unit.
func sizeText(n int) string {
	for _, u := range slices.Backward(sizeUnits[:3]) {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.suffix)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

func mustSize(text string) int64 {
	n, ok := parseSize(text)
	if !ok {
		panic("no size: " + text)
	}
	return n
}

func fraction(field func(*Config) *float64, low, high float64) value {
	accepts := fmt.Sprintf("a number from %g to %g", low, high)
	return scalar(accepts, func(c *Config, text string) string {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Sprintf("%q is no number; write %s", text, accepts)
		}
		if !(f >= low && f <= high) { // NaN is neither
			return fmt.Sprintf("%s is out of range; write %s", text, accepts)
		}
		*field(c) = f
		return ""
	})
}

func boolean(field func(*Config) *bool) value {
	v := scalar("true or false", func(c *Config, text string) string {
		yes, ok := truth(text)
		if !ok {
			return fmt.Sprintf("%q is neither true nor false; write one of them", text)
		}
		*field(c) = yes
		return ""
	})
	v.flag = true
	return v
}

func truth(text string) (yes, ok bool) {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1":
		return true, true
	case "false", "no", "off", "0":
		return false, true
	}
	return false, false
}

func oneOf(field func(*Config) *string, words ...string) value {
	accepts := strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	return scalar(accepts, func(c *Config, text string) string {
		text = strings.ToLower(text)
		if !slices.Contains(words, text) {
			return fmt.Sprintf("%q is not known%s", text, didYouMean(text, words, "write "+accepts))
		}
		*field(c) = text
		return ""
	})
}

func text(field func(*Config) *string, accepts string) value {
	return scalar(accepts, func(c *Config, text string) string {
		*field(c) = text
		return ""
	})
}

func secret(field func(*Config) *Secret, accepts string) value {
	return scalar(accepts, func(c *Config, text string) string {
		*field(c) = NewSecret(text)
		return ""
	})
}

// address is an address to listen on.
func address(field func(*Config) *string) value {
	const accepts = "host:port, or :port for all interfaces"
	return scalar(accepts, func(c *Config, text string) string { return setAddress(field(c), text, accepts) })
}

// addressOrOff is an address to listen on, or off.
func addressOrOff(field func(*Config) *string) value {
	const accepts = "host:port, or :port for all interfaces, or off"
	return scalar(accepts, func(c *Config, text string) string {
		if text == "" || text == "off" {
			*field(c) = ""
			return ""
		}
		return setAddress(field(c), text, accepts)
	})
}

func setAddress(field *string, text, accepts string) (problem string) {
	host, port, err := net.SplitHostPort(text)
	n, bad := strconv.Atoi(port)
	switch {
	case err != nil:
		return fmt.Sprintf("%q is no address; write %s", text, accepts)
	case bad != nil || n < 0 || n > 65535:
		return fmt.Sprintf("%q has no port from 0 to 65535; write %s", text, accepts)
	}
	*field = net.JoinHostPort(host, port)
	return ""
}
