package integration

import (
	"fmt"
	"slices"
	"testing"
)

// COMMAND tells the same arity, flags and keys of a command as Redis.
func TestCommandInfoIsThatOfRedis(t *testing.T) {
	tw := startTwin(t, 1)
	oracle, proxy := commandInfos(t, tw.oracle.Addr), commandInfos(t, tw.proxy.Addr)
	compared := 0
	for name, info := range proxy {
		want, has := oracle[name]
		if !has {
			continue
		}
		compared++
		if info != want {
			t.Errorf("%s:\n%s, Redis says\n%s", name, info, want)
		}
	}
	if compared < 90 {
		t.Errorf("only %d commands were compared", compared)
	}
}

// commandInfos returns the first six fields of each command and subcommand, with the flags sorted.
func commandInfos(t *testing.T, addr string) map[string]string {
	t.Helper()
	found := map[string]string{}
	var read func(commands any)
	read = func(commands any) {
		for _, command := range commands.([]any) {
			fields := command.([]any)
			found[fields[0].(string)] = fmt.Sprint("arity ", fields[1], " flags ", sortedTexts(fields[2]), " keys ", fields[3:6])
			read(fields[9])
		}
	}
	read(replyOf(t, addr, "COMMAND"))
	return found
}

func sortedTexts(list any) []string {
	var texts []string
	for _, item := range list.([]any) {
		texts = append(texts, fmt.Sprint(item))
	}
	slices.Sort(texts)
	return texts
}
