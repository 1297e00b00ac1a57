package quorum

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"lockproxy/quorum/masters"
	"lockproxy/quorum/vouch"
)

// What the fake does with our own keys: the canary, the quarantine, the roster and the horizon.

func (f *fake) now() time.Time { return time.Now().Add(f.skew) }

// step moves the master's clock.
func (f *fake) step(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skew += by
}

func (f *fake) info() string {
	return fmt.Sprintf("redis_version:7.0.15\r\nrole:master\r\nrun_id:%s\r\nmaster_replid2:%s\r\n%s", f.process(), f.lineage, f.memory)
}

// process is the run id: of its own, or of the server that answers under its address.
func (f *fake) process() string {
	if f.alias != "" {
		return f.alias
	}
	return fmt.Sprintf("%s-run%d", f.addr, f.runID)
}

// initialise marks it clean, as lockproxy init does.
func (f *fake) initialise(members string, b vouch.Bounds) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := vouch.Canary{Process: f.process(), Lineage: "-", Epoch: 1, Members: members, Bounds: b}
	clear(f.marks)
	f.putMark(canaryKey, c.String())
}

// flush is FLUSHALL.
func (f *fake) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.keys)
	clear(f.marks)
}

func (f *fake) putMark(key, text string) { f.marks[key] = value{text: text, kind: "string"} }

// mark returns one of our keys, or nil.
func (f *fake) mark(key string) any {
	v, ok := f.marks[key]
	if !ok || !v.expires.IsZero() && !f.now().Before(v.expires) {
		return nil
	}
	return v.text
}

func (f *fake) markText(key string) string {
	text, _ := f.mark(key).(string)
	return text
}

func (f *fake) horizonLeft() int64 {
	if f.mark(horizonKey) == nil {
		return -2
	}
	return f.marks[horizonKey].expires.Sub(f.now()).Milliseconds()
}

// outlast is luaOutlast.
func (f *fake) outlast(ms int64) {
	end := f.now().Add(time.Duration(ms) * time.Millisecond)
	f.marks[horizonKey] = value{"1", "string", end}
	f.putMark(endKey, strconv.FormatInt(end.UnixMilli(), 10))
}

// merge is luaMerge.
func (f *fake) merge(epochs []any) {
	merged := strings.Fields(f.markText(rosterKey))
	for i, e := range epochs {
		text := fmt.Sprint(e)
		n, _ := strconv.ParseInt(text, 10, 64)
		if i >= len(merged) {
			merged = append(merged, text)
		} else if was, _ := strconv.ParseInt(merged[i], 10, 64); n > was {
			merged[i] = text
		}
	}
	f.putMark(rosterKey, strings.Join(merged, " "))
}

// runMarks runs a script on our own keys, and says whether it was one.
func (f *fake) runMarks(call *masters.Call) bool {
	n := call.Args[2].(int64)
	argv := call.Args[3+n:]
	arg := func(i int) string { return fmt.Sprint(argv[i]) }
	call.Reply = int64(1)
	switch call.Args[1] {
	case luaMark.text:
		if first := f.faster; first != nil {
			f.faster = nil
			first()
		}
		if f.markText(canaryKey) != arg(0) {
			call.Reply = int64(0)
			return true
		}
		f.putMark(canaryKey, arg(1))
		if arg(2) != "" {
			f.putMark(quarantineKey, arg(2))
		}
	case luaTrial.text:
		if text, ok := f.fail["trial"]; ok {
			call.Err = errors.New(text)
		}
	case luaInitialise.text:
		if len(argv) > 1 && (f.markText(canaryKey) != arg(1) || f.markText(quarantineKey) != arg(2)) {
			call.Reply = int64(0)
			return true
		}
		f.putMark(canaryKey, arg(0))
		delete(f.marks, quarantineKey)
	case luaQuarantineAll.text: // the fake has one database
	case luaHorizon.text:
		if text, ok := f.fail["horizon"]; ok {
			call.Err = errors.New(text)
			return true
		}
		ms, _ := strconv.ParseInt(arg(0), 10, 64)
		if left := f.horizonLeft(); left >= ms {
			ms = left
		} else {
			f.outlast(ms)
		}
		call.Reply = ms
	case luaTell.text:
		f.merge(argv)
	case luaSurvey.text:
		f.merge(argv)
		quarantined := int64(0)
		if f.mark(quarantineKey) != nil {
			quarantined = 1
		}
		call.Reply = []any{max(f.horizonLeft(), 0), quarantined, f.markText(rosterKey), int64(0), int64(0)}
	case luaEndQuarantine.text:
		if f.markText(canaryKey) != arg(len(argv)-2) || f.markText(quarantineKey) != arg(len(argv)-1) {
			call.Reply = int64(0)
			return true
		}
		f.merge(argv[:len(argv)-3])
		delete(f.marks, quarantineKey)
	default:
		return false
	}
	return true
}
