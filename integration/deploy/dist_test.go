package deploy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"lockproxy/integration/harness"
)

// target is the system for which the tests build a release.
const target = "linux/amd64"

// epoch is the time of all files in a release that tests build.
const epoch = "1795315200"

// released builds a release once for all tests.
var released = sync.OnceValues(func() (string, error) {
	out, err := os.MkdirTemp("", "lockproxy-dist-")
	if err != nil {
		return "", err
	}
	releaseDir = out
	return out, dist("../..", out)
})

// releaseDir is the folder of the release, "" if there is none.
var releaseDir string

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(releaseDir)
	os.Exit(code)
}

// dist builds a release of the tree. The environment is added to that of this program.
func dist(tree, out string, environment ...string) error {
	cmd := exec.Command(".ci/dist", out, target)
	cmd.Dir = tree
	cmd.Env = append(append(os.Environ(), "SOURCE_DATE_EPOCH="+epoch), environment...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return errors.New(err.Error() + "\n" + string(text))
	}
	return nil
}

// release returns the folder of the release, and its version.
func release(t *testing.T) (dir, version string) {
	t.Helper()
	required(t)
	dir, err := released()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	return dir, strings.TrimSpace(string(text))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// sh runs a command, and returns what it printed.
func sh(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// The same sources give the same bytes in another folder, for a user with another umask, in another time zone. What Go has compiled comes
// from its cache; DISTFLAGS=-a in the environment compiles all of it again, which takes minutes.
func TestTwoBuildsGiveTheSameBytes(t *testing.T) {
	dir, _ := release(t)
	copied, again := filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(t.TempDir(), "again")
	sh(t, "sh", "-c", "umask 077; mkdir "+copied+" && cd ../.. && tar -c --exclude=./.git --exclude=./bin . | tar -x --no-same-permissions -C "+copied)
	if err := dist(copied, again, "TZ=Asia/Tokyo", "LC_ALL=C.UTF-8"); err != nil {
		t.Fatal(err)
	}
	if first, second := read(t, dir+"/SHA256SUMS"), read(t, again+"/SHA256SUMS"); !bytes.Equal(first, second) {
		t.Errorf("the first build gave\n%sthe second\n%s", first, second)
	}
}

func TestAReleaseIsWhole(t *testing.T) {
	dir, version := release(t)
	sh(t, "sh", "-c", "cd "+dir+" && sha256sum --quiet -c SHA256SUMS")
	name := "lockproxy-" + version + "-linux-amd64"
	unpacked := t.TempDir()
	sh(t, "tar", "-xzf", dir+"/"+name+".tar.gz", "-C", unpacked)
	for _, file := range []string{"README.md", "CHANGELOG.md", "config.example.yaml", "docs/deploying.md", "docs/operating.md", "docs/troubleshooting.md", "man/lockproxy.1",
		"man/lockproxy-run.1", "completion/lockproxy.bash", "deploy/lockproxy.service", "deploy/helm/lockproxy/Chart.yaml"} {
		if len(read(t, filepath.Join(unpacked, name, file))) == 0 {
			t.Errorf("%s is empty", file)
		}
	}
	if got := sh(t, filepath.Join(unpacked, name, "lockproxy"), "version"); got != "lockproxy "+version+"\n" {
		t.Errorf("the program says %q", got)
	}
	var bom struct {
		BomFormat  string
		Components []struct{ Name string }
	}
	if err := json.Unmarshal(read(t, filepath.Join(dir, name+".cdx.json")), &bom); err != nil || bom.BomFormat != "CycloneDX" {
		t.Errorf("the list of what is in it: %v", err)
	}
	listed := ""
	for _, c := range bom.Components {
		listed += c.Name + "\n"
	}
	for _, module := range []string{"github.com/redis/go-redis/v9", "github.com/tidwall/redcon", "std"} {
		if !strings.Contains(listed, module+"\n") {
			t.Errorf("%s is not listed in\n%s", module, listed)
		}
	}
	rpm := sh(t, "rpm", "-qpl", filepath.Join(dir, "lockproxy-"+version+"-1.x86_64.rpm"))
	for _, file := range []string{"/usr/bin/lockproxy", "/usr/lib/systemd/system/lockproxy.service", "/etc/lockproxy/lockproxy.yaml", "/usr/share/man/man1/lockproxy.1.gz"} {
		if !strings.Contains(rpm, file+"\n") {
			t.Errorf("the rpm has no %s", file)
		}
	}
}

// startMasters starts three masters, and returns their addresses, commas between.
func startMasters(t *testing.T) string {
	t.Helper()
	masters, err := harness.StartRedises(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { harness.StopAll(masters) })
	return strings.Join(harness.Addrs(masters), ",")
}

// serves runs the proxy, takes a lock through it, and ends it as systemd does.
func serves(t *testing.T, addr string, words ...string) {
	t.Helper()
	p, err := harness.StartProgram("lockproxy", words[0], words[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	err = p.Ready(func() error {
		c, err := harness.Dial(addr)
		if err != nil {
			return err
		}
		defer c.Close()
		reply, err := c.Do("SET", "job:7", "me", "NX", "PX", "100")
		if err == nil && string(reply) != "+OK\r\n" {
			err = errors.New(string(reply))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(harness.DrainMax); err != nil {
		t.Errorf("%v\n%s", err, p.Output())
	}
}

// The deb is installed on a Debian that has nothing else, upgraded, and removed.
func TestTheDebRunsInABareRoot(t *testing.T) {
	dir, version := release(t)
	if os.Geteuid() != 0 {
		t.Fatal("a bare root needs the user root")
	}
	root := filepath.Join(t.TempDir(), "root")
	sh(t, "debootstrap", "--variant=minbase", "bookworm", root)
	in := func(words ...string) string { t.Helper(); return sh(t, append([]string{"chroot", root}, words...)...) }
	deb := "lockproxy_" + version + "-1_amd64.deb"
	sh(t, "cp", filepath.Join(dir, deb), root)
	in("dpkg", "-i", "/"+deb)
	if got := in("stat", "-c", "%U:%G %a", "/etc/lockproxy", "/etc/lockproxy/lockproxy.yaml"); got != "root:lockproxy 750\nroot:lockproxy 640\n" {
		t.Errorf("the settings belong to\n%s", got)
	}
	in("sh", "-c", "zcat /usr/share/man/man1/lockproxy.1.gz | grep -q lockproxy")

	// As the unit does: its program, its settings, its user.
	unit := string(read(t, filepath.Join(root, "usr/lib/systemd/system/lockproxy.service")))
	_, start, _ := strings.Cut(unit, "\nExecStart=")
	start, _, _ = strings.Cut(start, "\n")
	listen := freeAddr(t)
	settings := filepath.Join(root, "etc/lockproxy/lockproxy.yaml")
	edited := "masters: [" + startMasters(t) + "]\ninit: auto\nlisten: " + listen + "\nadmin: " + freeAddr(t) + "\n"
	if err := os.WriteFile(settings, []byte(edited), 0o640); err != nil {
		t.Fatal(err)
	}
	serves(t, listen, append([]string{"chroot", "--userspec=lockproxy:lockproxy", root}, strings.Fields(start)...)...)

	in("dpkg", "-i", "/"+deb) // over itself, as an upgrade
	if got := string(read(t, settings)); got != edited {
		t.Errorf("the upgrade has changed the settings to\n%s", got)
	}
	in("dpkg", "-r", "lockproxy")
	if _, err := os.Stat(settings); err != nil {
		t.Errorf("the settings went with the package: %v", err)
	}
	in("dpkg", "-P", "lockproxy")
	if _, err := os.Stat(settings); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the settings are still there: %v", err)
	}
}

// The image is what its manifests say, as another program reads it too, and its program runs with nothing around it.
func TestTheImageRuns(t *testing.T) {
	dir, version := release(t)
	archive := filepath.Join(dir, "lockproxy-"+version+"-oci.tar")
	told := sh(t, "skopeo", "inspect", "--override-os", "linux", "--override-arch", "amd64", "oci-archive:"+archive)
	if !strings.Contains(told, `"Architecture": "amd64"`) || !strings.Contains(told, "LOCKPROXY_LISTEN=:6380") {
		t.Errorf("skopeo reads\n%s", told)
	}
	blobs := t.TempDir()
	sh(t, "tar", "-xf", archive, "-C", blobs)
	files, err := filepath.Glob(blobs + "/blobs/sha256/*")
	if err != nil || len(files) != 4 {
		t.Fatalf("%d blobs, %v", len(files), err)
	}
	root := t.TempDir()
	for _, file := range files {
		data := read(t, file)
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != filepath.Base(file) {
			t.Errorf("%s has another checksum", file)
		}
		if gz, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
			unpack(t, tar.NewReader(gz), root)
		}
	}
	if n := strings.Count(string(read(t, filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))), "BEGIN CERTIFICATE"); n < 50 {
		t.Errorf("only %d authorities", n)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	listen := freeAddr(t)
	serves(t, listen, "chroot", "--userspec=65532:65532", root, "/lockproxy", "--masters", startMasters(t), "--init", "auto", "--listen", listen, "--admin", "")
}

// unpack writes the files of a layer below root.
func unpack(t *testing.T, layer *tar.Reader, root string) {
	t.Helper()
	for {
		header, err := layer.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, filepath.FromSlash(header.Name))
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var data []byte
			if data, err = io.ReadAll(layer); err == nil {
				err = os.WriteFile(path, data, os.FileMode(header.Mode))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
