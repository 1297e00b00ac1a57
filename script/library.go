package script

// libraries names who is known to send texts of a shape, for logs and documentation. Every line was verified with a
// text from a release of that library: its SHA-1, its shape, its Meaning, and Redis's replies in all three worlds.
// What a text means never depends on this table.
var libraries = map[string]string{
	// Release
	"83ccb24b82c2": "redis.io, redlock-rb, redlock-py, pottery, node-redlock 2-3, redsync <4.12, bsm/redislock <0.10, " +
		"go-zero, Laravel, ShedLock, bull, RedLock.net",
	"839509083cdc": "redis-py",
	"5ae77590c538": "redsync",
	"54aba1735505": "node-redlock 4-5",
	"feee6ef03773": "rueidislock, DistributedLock.Redis",
	"0f9137a4a194": "redis-semaphore",
	"41050fe02dab": "Spring Integration",
	"7abfda15a1f4": "Spring Integration",
	"8e05fdc970e1": "lock4j",
	"7d60e0fe238a": "FreeRedis",
	"4ad1cf67fe81": "php-redis-lock",
	"c6ba06bcc00c": "aioredlock",

	// Extend
	"319d4c364c9a": "node-redlock 2-3, redsync, bsm/redislock <0.10, pottery, lock4j, ShedLock",
	"510a43e68c19": "redis-py",
	"f16ebc0bea5b": "redis-py",
	"7d9f2dddf862": "redis-py <3.5",
	"882757ad4ac9": "redbeat",
	"d1f9d751b019": "node-redlock 4-5",
	"cfc2384512a2": "DistributedLock.Redis",
	"979fe0bf454c": "redis-semaphore",
	"ffab3b1f4ad8": "Spring Integration",
	"36d4d4e9c424": "redsync 1.0-1.1",
	"addac2729ee0": "php-redis-lock",
	"38f5c3378d1f": "FreeRedis",
	"fa0d69aede52": "FreeRedis",
	"4103cd79783f": "python-redis-lock",
	"8cc082d5a5ca": "python-redis-lock <3.6",

	// Acquire, AcquireOrExtend
	"e6c3f9672db9": "node-redlock 4-5",
	"b3284fffe531": "node-redlock 2-3, lock4j",
	"d9953034e7f1": "rueidislock",
	"f7933239860a": "redis-py 2.10",
	"c7fca7a13efd": "bull",
	"9193ad202181": "walrus",
	"826ae0f75ee0": "redlock-rb",
	"d80d068289ca": "redsync",
	"b44c10c17268": "Spring Integration",
	"be50221a4182": "Symfony Lock <5.2",
	"a8b258caa307": "Symfony Lock <4.2",
	"c0637e5dfb07": "RedLock.net",
	"ad17de9c7021": "go-zero",
	"fb58c00bb85f": "aioredlock",

	// Query
	"e0cbf897ac5f": "bsm/redislock <0.10",
	"65cc9b4be6aa": "pottery",
	"f6cf4c83a57d": "aioredlock",
	"bca2fae6eb82": "redlock-rb",
}

// Library names the libraries that send texts of this shape, as far as that is known, and "" otherwise.
func (s *Script) Library() string {
	shape, _ := Shape(s.Text)
	return libraries[shape]
}
