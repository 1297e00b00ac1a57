package resp

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// A reader of docs/commands.md finds every command of the table. A container is there with each of its subcommands or, where these need no
// explanation, with "…".
func TestEveryCommandIsInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	_, served, _ := strings.Cut(string(text), "\n## What is served\n")
	served, _, _ = strings.Cut(served, "\n### ")
	var words strings.Builder // of the spans that show code
	for _, span := range regexp.MustCompile("`[^`]*`").FindAllString(served, -1) {
		words.WriteString(strings.Trim(strings.ReplaceAll(span, `\|`, " "), "`") + " ")
	}
	named := " " + words.String()
	for _, cmd := range allCommands().rows {
		name := strings.ToUpper(cmd.name)
		if !strings.Contains(named, " "+name+" ") {
			t.Errorf("docs/commands.md does not say that lockproxy serves %s", name)
		}
		if strings.Contains(named, " "+name+" … ") {
			continue
		}
		for _, sub := range cmd.subs {
			if _, after, _ := strings.Cut(named, " "+name+" "); !strings.Contains(" "+after, " "+strings.ToUpper(sub.name)+" ") {
				t.Errorf("docs/commands.md does not say that lockproxy serves %s %s", name, strings.ToUpper(sub.name))
			}
		}
	}
}
