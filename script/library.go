package script

// A KnownText is a row of the table of texts that are recognised by their effect, with the libraries known to send the
// text.
type KnownText struct {
	Shape     string
	Does      string // take, extend, release or ask: the kind of a Family with the same effect
	Libraries string // with the known versions that send the text, "now" for the newest that was looked at
}

// knownTexts is for people. Every line was verified with a text from a release of the library: its SHA-1, its shape,
// its Meaning, and Redis's replies in all worlds. A text's meaning never depends on this table.
var knownTexts = []KnownText{
	{"83ccb24b82c2", "release", "redis.io, ShedLock 6.7-now, node-redlock 2.1-3.1, redsync 1.0-4.11, bsm/redislock 0.3-0.9, " +
		"redlock-rb 0.0.1-now, RedLock.net 2.3, Symfony Lock 3.4-5.1, Laravel, redlock-py, pottery, go-zero, bull, phpredis sessions"},
	{"839509083cdc", "release", "redis-py 2.10-now"},
	{"5ae77590c538", "release", "redsync 4.12-now"},
	{"54aba1735505", "release", "node-redlock 4.0-now"},
	{"feee6ef03773", "release", "rueidislock, DistributedLock.Redis"},
	{"0f9137a4a194", "release", "redis-semaphore"},
	{"41050fe02dab", "release", "Spring Integration 6.0.7-now"},
	{"7abfda15a1f4", "release", "Spring Integration 6.0.7-6.5"},
	{"8e05fdc970e1", "release", "lock4j"},
	{"7d60e0fe238a", "release", "FreeRedis"},
	{"4ad1cf67fe81", "release", "php-redis-lock 1.0"},
	{"c6ba06bcc00c", "release", "aioredlock"},

	{"319d4c364c9a", "extend", "ShedLock 6.7-now, node-redlock 2.1-3.1, redsync 1.2-now, bsm/redislock 0.3-0.9, " +
		"Symfony Lock 3.4-5.1, pottery, lock4j"},
	{"510a43e68c19", "extend", "redis-py 3.1-now (reacquire)"},
	{"f16ebc0bea5b", "extend", "redis-py 3.5-now"},
	{"7d9f2dddf862", "extend", "redis-py 2.10-3.4"},
	{"882757ad4ac9", "extend", "redbeat"},
	{"d1f9d751b019", "extend", "node-redlock 4.1-now"},
	{"cfc2384512a2", "extend", "DistributedLock.Redis"},
	{"979fe0bf454c", "extend", "redis-semaphore"},
	{"ffab3b1f4ad8", "extend", "Spring Integration 6.4-now"},
	{"36d4d4e9c424", "extend", "redsync 1.0-1.1"},
	{"addac2729ee0", "extend", "php-redis-lock 1.0"},
	{"38f5c3378d1f", "extend", "FreeRedis"},
	{"fa0d69aede52", "extend", "FreeRedis"},
	{"4103cd79783f", "extend", "python-redis-lock 3.6-now"},
	{"8cc082d5a5ca", "extend", "python-redis-lock 3.0-3.5"},

	{"e6c3f9672db9", "take", "node-redlock 4.1-now"},
	{"b3284fffe531", "take", "node-redlock 2.1-3.1, lock4j"},
	{"d9953034e7f1", "take", "rueidislock"},
	{"f7933239860a", "take", "redis-py 2.10"},
	{"c7fca7a13efd", "take", "bull"},
	{"9193ad202181", "take", "walrus"},
	{"826ae0f75ee0", "take", "redlock-rb 0.2-now"},
	{"d80d068289ca", "take", "redsync 4.12-now"},
	{"b44c10c17268", "take", "Spring Integration 5.0-now"},
	{"be50221a4182", "take", "Symfony Lock 3.4.15-5.1"},
	{"a8b258caa307", "take", "Symfony Lock 3.4-4.1"},
	{"c0637e5dfb07", "take", "RedLock.net 2.3"},
	{"ad17de9c7021", "take", "go-zero"},
	{"fb58c00bb85f", "take", "aioredlock"},

	{"e0cbf897ac5f", "ask", "bsm/redislock 0.3-0.9"},
	{"65cc9b4be6aa", "ask", "pottery"},
	{"f6cf4c83a57d", "ask", "aioredlock"},
	{"bca2fae6eb82", "ask", "redlock-rb 1.2-now"},
}

// libraries has the known libraries that send texts of a shape.
var libraries = func() map[string]string {
	m := make(map[string]string, len(knownTexts))
	for _, u := range knownTexts {
		m[u.Shape] = u.Libraries
	}
	return m
}()

// KnownTexts returns the table of texts that are recognised by their effect.
func KnownTexts() []KnownText { return knownTexts }
