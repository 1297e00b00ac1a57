package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// readLock is Redisson's since 3.11.
const readLock = "local mode = redis.call('hget', KEYS[1], 'mode'); " +
	"if (mode == false) then redis.call('hset', KEYS[1], 'mode', 'read'); redis.call('hset', KEYS[1], ARGV[2], 1); " +
	"redis.call('set', KEYS[2] .. ':1', 1); redis.call('pexpire', KEYS[2] .. ':1', ARGV[1]); " +
	"redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; " +
	"if (mode == 'read') or (mode == 'write' and redis.call('hexists', KEYS[1], ARGV[3]) == 1) then local ind = redis.call('hincrby', KEYS[1], ARGV[2], 1); " +
	"local key = KEYS[2] .. ':' .. ind;redis.call('set', key, 1); redis.call('pexpire', key, ARGV[1]); " +
	"local remainTime = redis.call('pttl', KEYS[1]); redis.call('pexpire', KEYS[1], math.max(remainTime, ARGV[1])); " +
	"return nil; end;return redis.call('pttl', KEYS[1]);"

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

// readBy has one master hold a read lock; each letter is a hold.
func (s *split) readBy(master int, holders string) {
	for _, who := range strings.Split(holders, "") {
		s.on(master, "EVAL", readLock, "2", "k", "{k}:"+who+":rwlock_timeout", "30000", who, who+":write")
	}
}

// What the masters that answer hold of a read lock need not be alike: readers come and go in different orders through two proxies,
// and the third master may be down.
func TestAReadUnlockThatAQuorumHasDoneIsNotHeldUpByOtherReaders(t *testing.T) {
	for _, test := range []struct {
		name    string
		holders [2]string // by master; m is the caller
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
				s.readBy(i, holders)
			}
			reply, err := s.client.Do("EVAL", readUnlock, "4", "k", "redisson_rwlock:{k}", "{k}:m:rwlock_timeout", "{k}", "0", "m")
			if got := string(reply); err != nil || !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// A reader who got no quorum is taken out of the hash that all readers share, though others have come or gone meanwhile: what stays
// there would keep writers waiting for its TTL.
func TestAReadLockThatLostIsUndoneWhereOtherReadersComeAndGo(t *testing.T) {
	for _, test := range []struct {
		name      string
		before    string // who holds the lock; m is the caller
		meanwhile func(*split)
		want      map[string]string // what the hash holds in the end
	}{
		{"one comes", "o", func(s *split) { s.readBy(0, "p") }, map[string]string{"mode": "read", "o": "1", "p": "1"}},
		{"the only one goes", "o", func(s *split) { s.on(0, "HDEL", "k", "o") }, map[string]string{}},
		{"one comes, and the caller had a hold before", "m", func(s *split) { s.readBy(0, "p") },
			map[string]string{"mode": "read", "m": "1", "p": "1"}},
		{"the caller comes again", "o", func(s *split) { s.readBy(0, "m") }, map[string]string{"mode": "read", "m": "2", "o": "1"}},
		{"the hold was extended", "o", func(s *split) {
			s.readBy(0, "p")
			s.on(0, "PEXPIRE", "{k}:m:rwlock_timeout:1", "60000")
		}, map[string]string{"mode": "read", "m": "1", "o": "1", "p": "1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startSplit(t)
			s.readBy(0, test.before)
			holds := s.on(0, "HGET", "k", "m")
			for _, m := range s.masters[1:] {
				if err := m.Pause(); err != nil {
					t.Fatal(err)
				}
			}
			replied := make(chan string, 1)
			go func() {
				reply, err := s.client.Do("EVAL", readLock, "2", "k", "{k}:m:rwlock_timeout", "20000", "m", "m:write")
				replied <- fmt.Sprint(string(reply), err)
			}()
			eventually(t, cleanMax, "the master grants", func() error {
				if s.on(0, "HGET", "k", "m") == holds {
					return errors.New("not yet")
				}
				return nil
			})
			test.meanwhile(s)
			if reply := <-replied; !strings.HasPrefix(reply, "-NOQUORUM") {
				t.Fatalf("got %q", reply)
			}
			for _, m := range s.masters[1:] {
				if err := m.Resume(); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, cleanMax, "the hash", func() error {
				got := strings.Fields(s.on(0, "HGETALL", "k"))
				left := map[string]string{}
				for i := 2; i+2 < len(got); i += 4 {
					left[got[i]] = got[i+2]
				}
				if fmt.Sprint(left) != fmt.Sprint(test.want) {
					return fmt.Errorf("holds %v, want %v", left, test.want)
				}
				return nil
			})
		})
	}
}
