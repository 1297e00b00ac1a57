package integration

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lockproxy/integration/harness"
)

// auditLines returns what, key and name of each line of an audit log, and of the token whether it is the one that is meant.
func auditLines(path, token string) ([]string, error) {
	text, err := os.ReadFile(path)
	sum := sha256.Sum256([]byte(token))
	var all []string
	for _, row := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var line struct {
			Event, Key, Name, Cause string
			Token                   string `json:"token_sha256"`
		}
		if err := json.Unmarshal([]byte(row), &line); err != nil {
			return nil, fmt.Errorf("%q: %w", row, err)
		}
		all = append(all, fmt.Sprint(line.Event, " ", line.Key, " ", line.Name, " ", line.Token == hex.EncodeToString(sum[:])))
	}
	return all, err
}

func redissonText(t *testing.T, sha string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "redisson", sha+".lua"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A real proxy with a file, and who took which lock in each way that there is.
func TestTheAuditLogOfARealProxy(t *testing.T) {
	masters := startMasters(t, 3)
	path := filepath.Join(t.TempDir(), "audit.log")
	p := startProxy(t, harness.Addrs(masters), "--audit-log", path)
	c, holder := dial(t, p.Addr), dial(t, p.Addr)
	allVote(t, c, masters)
	take, renew, unlock := redissonText(t, "149c5a8bf18676fd99e9e6e24923bd64d9b62f94"), redissonText(t, "8e19a1ddbdee9138df9f32a480c57addab4353d1"),
		redissonText(t, "6866459238a13a701d42f4971f12d9f3a50e2442")
	tells(t, c, `^\+OK $`, "CLIENT", "SETNAME", "w")
	tells(t, holder, `^\+OK $`, "CLIENT", "SETNAME", "h")
	for i, step := range []struct {
		by    *harness.Conn
		reply string
		args  []string
		told  []string
	}{
		{c, `^\$-1 $`, []string{"EVAL", take, "1", "r", "30000", "me"}, []string{"granted r w true"}},
		{c, `^\$-1 $`, []string{"EVAL", take, "1", "r", "30000", "me"}, []string{"granted r w true"}},
		{c, `^:\d+ $`, []string{"EVAL", take, "1", "r", "30000", "you"}, nil},
		{c, `^:1 $`, []string{"EVAL", renew, "1", "r", "30000", "me"}, []string{"extended r w true"}},
		{c, `^:0 $`, []string{"EVAL", unlock, "3", "r", "ch", "latch1", "0", "30000", "me", "publish", "17000"}, nil},
		{c, `^:1 $`, []string{"EVAL", unlock, "3", "r", "ch", "latch2", "0", "30000", "me", "publish", "17000"}, []string{"released r w true"}},
		{c, `^\$-1 $`, []string{"EVAL", take, "1", "r", "30000", "me"}, []string{"granted r w true"}},
		{c, `^:1 $`, []string{"FORCEUNLOCK", "r"}, []string{"forced r w true"}},
		{holder, `^\*6 token me `, []string{"LOCK", "h", "60000", "TOKEN", "me", "HOLD"}, []string{"granted h h true"}},
		{c, `^_? ?\*?-?1? ?\$?-?1? ?$`, []string{"LOCK", "h", "60000", "WAIT", "10"}, []string{"refused h w false"}},
		{c, `^:1 $`, []string{"FORCEUNLOCK", "h"}, []string{"forced h w true", "lost h h true"}},
		{c, `^\+OK $`, []string{"MULTI"}, nil},
		{c, `^\+QUEUED $`, []string{"SET", "m", "me", "NX", "PX", "60000"}, nil},
		{c, `^\*1 \+OK $`, []string{"EXEC"}, []string{"granted m w false"}},
		{c, `^:1 $`, []string{"DEL", "m"}, []string{"deleted m w true"}},
	} {
		before, err := auditLines(path, "me")
		if err != nil && i > 0 {
			t.Fatal(err)
		}
		tells(t, step.by, step.reply, step.args...)
		eventually(t, progressMax, fmt.Sprint(step.args), func() error {
			after, err := auditLines(path, "me")
			if got := fmt.Sprint(after[min(len(before), len(after)):]); got != fmt.Sprint(step.told) || err != nil {
				return fmt.Errorf("told %s, want %s; %w", got, step.told, err)
			}
			return nil
		})
	}
	if lost := regexp.MustCompile(`a held lock was lost.* key=h .* client=127\S+ id=\d+ name=h library="" user=default`); !lost.MatchString(p.Output()) {
		t.Errorf("the log does not name the client that lost its lock: %s", p.Output())
	}
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), `"me"`) {
		t.Errorf("the log has a token: %s, %v", text, err)
	}
}

// The disk is full from the start: locks go on, what is lost is counted, and the log says so once.
func TestAFullDiskUnderTheAuditLogStopsNoLock(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	masters := startMasters(t, 3)
	o := observe(t, masters, "--audit-log", "/dev/full")
	const locks = 200
	for i := range locks {
		expect(t, o.load, "+OK\r\n", "SET", fmt.Sprint("full:", i), "me", "NX", "PX", long)
	}
	o.until("lockproxy_audit_lines_dropped_total", locks, 1e9)
	if n := strings.Count(o.proxy.Output(), "lines of the audit log are dropped"); n != 1 {
		t.Errorf("the log says %d times that lines are dropped", n)
	}
}
