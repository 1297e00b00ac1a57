package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// recipeBlock returns the block of the recipe in docs/operating.md that has the text.
func recipeBlock(t *testing.T, text string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```\\w*\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], text) {
			return block[1]
		}
	}
	t.Fatalf("docs/operating.md has no block with %q", text)
	return ""
}

// recipeMasters starts three masters with the recipe's settings and users. Addresses and folders are the test's own.
func recipeMasters(t *testing.T, folder string) []*harness.Redis {
	t.Helper()
	if err := harness.HaveRedis(); err != nil {
		missing(t, "LOCKPROXY_REQUIRE_REDIS", err.Error())
	}
	users := filepath.Join(folder, "users.acl")
	if err := os.WriteFile(users, []byte(recipeBlock(t, "user default off")), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--aclfile", users}
	for line := range strings.Lines(recipeBlock(t, "aclfile")) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name {
		case "bind", "port", "aclfile":
		default:
			flags = append(flags, "--"+name, strings.Trim(value, `"`))
		}
	}
	var all []*harness.Redis
	for range 3 {
		m, err := harness.StartRedis(flags...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Stop)
		all = append(all, m)
	}
	return all
}

// Whoever copies the recipe of docs/operating.md has masters that lockproxy init marks and lockproxy check finds no fault with, and
// proxies that grant locks to clients that have logged in.
func TestTheRecipeForProductionWorksAsPrinted(t *testing.T) {
	folder := t.TempDir()
	settings := recipeBlock(t, "master_user:")
	for i, m := range recipeMasters(t, folder) {
		settings = strings.Replace(settings, "10.0.0."+string(rune('1'+i))+":6379", m.Addr, 1)
	}
	settings = strings.ReplaceAll(settings, "/etc/lockproxy", folder)
	for name, secret := range map[string]string{"master": "master-password", "client": "secret", "operator": "more secret"} {
		if err := os.WriteFile(filepath.Join(folder, name+"-password"), []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(folder, "lockproxy.yaml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	config := patient("--config", file)
	for _, args := range [][]string{{"init", "--yes"}, {"check"}} {
		code, out, err := harness.RunProxy(proxyBinary, append(args, config...)...)
		if err != nil || code != 0 || strings.Contains(out, "may not run") || strings.Contains(out, "Without ") {
			t.Fatalf("%s: exit code %d, %v\n%s", args[0], code, err, out)
		}
	}

	addr := freeAddr(t)
	p, err := harness.StartProgram("lockproxy", proxyBinary, append(config, "--listen", addr, "--admin", "")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	err = p.Ready(func() error {
		if err := harness.Ping(addr); err != nil && !strings.Contains(err.Error(), "NOAUTH") {
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, p.Output())
	}
	c := dial(t, addr)
	expect(t, c, "-NOAUTH Authentication required.\r\n", "SET", "job:7", "me", "NX", "PX", "30000")
	expect(t, c, "+OK\r\n", "AUTH", "secret")
	expect(t, c, "+OK\r\n", "SET", "job:7", "me", "NX", "PX", "30000")
	expect(t, c, "+OK\r\n", "AUTH", "operator", "more secret")
	expect(t, c, ":1\r\n", "FORCEUNLOCK", "job:7")
}
