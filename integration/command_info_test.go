package integration

import (
	"fmt"
	"slices"
	"testing"
)

// What COMMAND says of a command, its arity, flags, keys and categories, is what Redis says.
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

// commandInfos returns the first seven fields of each command and subcommand, with what has no order sorted.
func commandInfos(t *testing.T, addr string) map[string]string {
	t.Helper()
	found := map[string]string{}
	var read func(commands any)
	read = func(commands any) {
		for _, command := range commands.([]any) {
			fields := command.([]any)
			flags, categories := sortedTexts(fields[2]), sortedTexts(fields[6])
			found[fields[0].(string)] = fmt.Sprint("arity ", fields[1], " flags ", flags, " keys ", fields[3:6], " categories ", categories)
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
