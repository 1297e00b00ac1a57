package integration

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// recipeBlock returns the block of the recipe in docs/deploying.md that has the text.
func recipeBlock(t *testing.T, text string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```\\w*\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], text) {
			return block[1]
		}
	}
	t.Fatalf("docs/deploying.md has no block with %q", text)
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

// A recipe is a deployment as docs/deploying.md prints one, with addresses and folders of the test's own.
type recipe struct {
	masters []*harness.Redis
	folder  string
	config  []string // flags that name the settings
}

func newRecipe(t *testing.T) *recipe {
	t.Helper()
	r := &recipe{folder: t.TempDir()}
	r.masters = recipeMasters(t, r.folder)
	settings := strings.ReplaceAll(recipeBlock(t, "master_user:"), "/etc/lockproxy", r.folder)
	for i, m := range r.masters {
		settings = strings.Replace(settings, "10.0.0."+string(rune('1'+i))+":6379", m.Addr, 1)
	}
	for name, secret := range map[string]string{"master": "master-password", "client": "secret", "operator": "more secret"} {
		r.write(t, name+"-password", secret+"\n")
	}
	r.config = patient("--config", r.write(t, "lockproxy.yaml", settings))
	return r
}

// write writes a file of the recipe, and returns its path.
func (r *recipe) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(r.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runs has a command of lockproxy find no fault.
func (r *recipe) runs(t *testing.T, args ...string) {
	t.Helper()
	code, out, err := harness.RunProxy(proxyBinary, append(args, r.config...)...)
	if err != nil || code != 0 || strings.Contains(out, "may not run") || strings.Contains(out, "Without ") {
		t.Fatalf("%s: exit code %d, %v\n%s", args[0], code, err, out)
	}
}

// serve starts a proxy, and returns a connection that has logged in.
func (r *recipe) serve(t *testing.T) *harness.Conn {
	t.Helper()
	addr := freeAddr(t)
	p, err := harness.StartProgram("lockproxy", proxyBinary, append(r.config, "--listen", addr, "--admin", "")...)
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
	return c
}

// The recipe as printed has masters that lockproxy init marks and lockproxy check finds no fault with, and proxies that grant
// locks to clients that have logged in.
func TestTheRecipeForProductionWorksAsPrinted(t *testing.T) {
	r := newRecipe(t)
	r.runs(t, "init", "--yes")
	r.runs(t, "check")
	c := r.serve(t)
	expect(t, c, "+OK\r\n", "SET", "job:7", "me", "NX", "PX", "30000")
	expect(t, c, "+OK\r\n", "AUTH", "operator", "more secret")
	expect(t, c, ":1\r\n", "FORCEUNLOCK", "job:7")
}

// The steps of "Change the masters' password": at no step do the masters refuse the proxy.
func TestTheMastersPasswordChangesAsPlanned(t *testing.T) {
	r := newRecipe(t)
	r.runs(t, "init", "--yes")
	c := r.serve(t)
	admin := func(args ...string) {
		t.Helper()
		for _, m := range r.masters {
			c := dial(t, m.Addr)
			expect(t, c, "+OK\r\n", "AUTH", "admin", "admin-password")
			if reply, err := c.Do(args...); err != nil || reply[0] == '-' {
				t.Fatalf("%q: %q, %v", args, reply, err)
			}
		}
	}
	locks := func(after string) {
		t.Helper()
		admin("CLIENT", "KILL", "USER", "lockproxy") // the next connection logs in
		eventually(t, progressMax, after, func() error {
			reply, err := c.Do("SET", after, "me", "NX", "PX", "30000")
			if err == nil && string(reply) != "+OK\r\n" {
				err = errors.New(string(reply))
			}
			return err
		})
	}
	admin("ACL", "SETUSER", "lockproxy", ">new-password")
	admin("ACL", "SAVE")
	locks("both passwords are good")
	r.write(t, "master-password", "new-password\n")
	locks("the file has the new password")
	admin("ACL", "SETUSER", "lockproxy", "<master-password")
	admin("ACL", "SAVE")
	locks("only the new password is good")
	r.runs(t, "check")
}
