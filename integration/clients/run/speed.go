package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// speedThreads are the loads of the comparison.
var speedThreads = []string{"1", "16"}

// compareRedisson prints how fast Redisson's locks are through lockproxy, and how fast those are that Redisson makes of
// three masters itself.
func compareRedisson(clients, bin string) error {
	l, _ := languageNamed("java")
	l.build = [][]string{{"sh", "{source}/java.sh", "compile", "redisson-4:RedissonSpeed"}}
	p, err := l.prepare(clients)
	if err != nil {
		return err
	}
	s := &stack{direct: true}
	defer s.stop()
	if err := s.start(bin); err != nil {
		return err
	}
	for _, threads := range speedThreads {
		cmd := p.command(context.Background(), []string{"sh", "{source}/java.sh", "run", "redisson-4", "RedissonSpeed", threads})
		cmd.Env = append(os.Environ(), s.environment()...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("RedissonSpeed: %w\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "Redisson ") {
				fmt.Print(line)
			}
		}
	}
	return nil
}
