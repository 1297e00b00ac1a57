package integration

import (
	"strings"
	"testing"
)

// readUnlock is Redisson's, of the releases from 2.10 to 3.21. It replies 0 if an outer hold of its client, or another reader, keeps
// the lock.
const readUnlock = "local mode = redis.call('hget', KEYS[1], 'mode'); if (mode == false) then redis.call('publish', KEYS[2], ARGV[1]); " +
	"return 1; end; local lockExists = redis.call('hexists', KEYS[1], ARGV[2]); " +
	"if (lockExists == 0) then return nil;end; local counter = redis.call('hincrby', KEYS[1], ARGV[2], -1); " +
	"if (counter == 0) then redis.call('hdel', KEYS[1], ARGV[2]); end;redis.call('del', KEYS[3] .. ':' .. (counter+1)); " +
	"if (redis.call('hlen', KEYS[1]) > 1) then local maxRemainTime = -3; local keys = redis.call('hkeys', KEYS[1]); " +
	"for n, key in ipairs(keys) do counter = tonumber(redis.call('hget', KEYS[1], key)); " +
	"if type(counter) == 'number' then for i=counter, 1, -1 do local remainTime = redis.call('pttl', KEYS[4] .. ':' .. key .. ':rwlock_timeout:' .. i); " +
	"maxRemainTime = math.max(remainTime, maxRemainTime);end; end; end; " +
	"if maxRemainTime > 0 then redis.call('pexpire', KEYS[1], maxRemainTime); return 0; " +
	"end;if mode == 'write' then return 0;end; end; redis.call('del', KEYS[1]); " +
	"redis.call('publish', KEYS[2], ARGV[1]); return 1; "

// What the masters that answer hold of a read lock need not be alike: readers come and go in different orders through two proxies,
// and the third master may be down.
func TestAReadUnlockThatAQuorumHasDoneIsNotHeldUpByOtherReaders(t *testing.T) {
	for _, test := range []struct {
		name    string
		holders [2]string // by master: each letter is a hold; m is the caller's
		want    string
	}{
		{"others hold on one", [2]string{"mo", "m"}, ":0\r\n"},
		{"others hold on both", [2]string{"mo", "mo"}, ":0\r\n"},
		{"nobody does", [2]string{"m", "m"}, ":1\r\n"},
		{"the caller does", [2]string{"mm", "mm"}, ":0\r\n"},
		{"the caller does on one", [2]string{"mm", "m"}, "-NOQUORUM "},
		{"the caller does on one, and others on the other", [2]string{"mm", "mo"}, "-NOQUORUM "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startSplit(t)
			s.masters[2].Kill()
			for i, holders := range test.holders {
				s.on(i, "HSET", "k", "mode", "read")
				for _, who := range strings.Split(holders, "") {
					hold := strings.Trim(s.on(i, "HINCRBY", "k", who, "1"), ":\r\n")
					s.on(i, "SET", "{k}:"+who+":rwlock_timeout:"+hold, "1", "PX", "30000")
				}
				s.on(i, "PEXPIRE", "k", "30000")
			}
			reply, err := s.client.Do("EVAL", readUnlock, "4", "k", "redisson_rwlock:{k}", "{k}:m:rwlock_timeout", "{k}", "0", "m")
			if got := string(reply); err != nil || !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}
