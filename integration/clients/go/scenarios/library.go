// Package scenarios puts Go's lock libraries through what every library is put through.
package scenarios

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A Library is one version of a library, and what it has.
type Library struct {
	Name, Module string
	Version      string // if there is no module
	Mute         bool   // release does not say whether the lock was still held
	Extends      bool
	Tokens       bool          // the caller chooses the token
	Kept         time.Duration // the TTL that the library extends by itself; 0 if it does not
	Open         func() (Client, error)
}

// A Client is one client of the library.
type Client interface {
	// Lock makes a lock. A nil token is one that the library makes.
	Lock(name string, ttl time.Duration, token []byte) Lock
	Close()
}

// A DataUser is a client that is good for more than locks.
type DataUser interface {
	// UseData uses everything else that the library has, under names that begin with name; piped names a lock. It returns
	// what it has used.
	UseData(name, piped string) (used string, err error)
}

// A Lock is acquired and released many times. An error means anything but that somebody else has it.
type Lock interface {
	Acquire(wait time.Duration) (bool, error)
	Release() (bool, error)
	Extend(ttl time.Duration) (bool, error)
}

// Addr is the address of the proxy.
var Addr = net.JoinHostPort(os.Getenv("PROXY_HOST"), os.Getenv("PROXY_PORT"))

// Poll calls try until it returns true or fails, or the wait is over.
func Poll(wait time.Duration, try func() (bool, error)) (bool, error) {
	for end := time.Now().Add(wait); ; time.Sleep(50 * time.Millisecond) {
		if done, err := try(); done || err != nil || !time.Now().Before(end) {
			return done, err
		}
	}
}

var (
	errAbsent  = errors.New("absent") // the library has no such feature
	errRefused = errors.New("refused")
)

// Run puts the library through every scenario and prints the results.
func Run(l Library) {
	if !strings.Contains(l.Name, os.Getenv("LIBRARIES")) {
		return
	}
	version := l.Version
	if version == "" {
		version = versionOf(l.Module)
	}
	wanted := strings.Split(os.Getenv("SCENARIOS"), ",")
	for _, s := range all {
		if !slices.Contains(wanted, s.name) {
			continue
		}
		r := &run{library: l, key: strings.ReplaceAll("lock:"+l.Name+":"+version+":"+s.name, " ", "-")}
		err := ask("reset")
		if err == nil {
			err = r.do(s.act)
		}
		report := map[string]string{"library": l.Name, "version": version, "scenario": s.name, "result": "ok", "why": "", "used": r.used}
		switch {
		case errors.Is(err, errAbsent):
			report["result"] = "absent"
		case err != nil:
			report["result"], report["why"] = "failed", err.Error()
		}
		line, _ := json.Marshal(report)
		fmt.Println(string(line))
	}
}

func versionOf(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		if d.Path == module {
			return strings.TrimPrefix(d.Version, "v")
		}
	}
	return "unknown"
}

// ask sends a wish to the control port and waits until it is done.
func ask(wish string) error {
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", os.Getenv("CONTROL_PORT")))
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := fmt.Fprintln(c, wish); err != nil {
		return err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && answer != "ok\n" {
		err = fmt.Errorf("%s: %s", wish, answer)
	}
	return err
}
