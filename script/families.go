package script

import "slices"

// knownFamilies is the table. Every SHA-1 was computed from a released version of its library and checked with a real
// Redis. The versions are the first and last release with the text; "now" is the newest release that was looked at
// (Redisson 4.7).
var knownFamilies = slices.Concat(
	redisson("RLock", Family{Kind: Takes, Granted: GrantNil, Holder: 2}, []familyText{
		{"149c5a8bf18676fd99e9e6e24923bd64d9b62f94", "lock, tryLock", "3.19-now"},
		{"dad0f8d619e548e04f21fb48d50be5034df3adae", "lock, tryLock; of RSpinLock to now", "3.12.3-3.18"},
		{"9401052d872adfd0179ef8c8e8c028512707629a", "lock, tryLock", "2.2.4-3.12.2"},
		{"3daa7be6cf69d9309ad990442e83bf25094f9b22", "lock, tryLock of RNonReentrantLock", "4.4-now"},
	}),
	redisson("RLock", Family{Kind: Releases, Granted: GrantNotNil}, []familyText{
		{"6866459238a13a701d42f4971f12d9f3a50e2442", "unlock", "3.24-now"},
		{"778cea8aada230ae060b432fc333adaec85f2f4c", "unlock", "3.22-3.23"},
		{"3ffe249c16dee540ac8ab32e39bd408626b9aff7", "unlock", "3.10.6-3.21"},
		{"93cfc048f82624d1670a310aa0ad58918c0824a5", "unlock", "2.2.4-3.10.5"},
		{"73ac2729af29ea9a975f95e8097f7ee9a74cce3d", "unlock of RSpinLock", "3.24-now"},
		{"5b9e58d1bcb8498e14aa1d5b49a1ca5b90748946", "unlock of RSpinLock", "3.15-3.23"},
	}),
	redisson("RLock", Family{Kind: Releases, Blind: true}, []familyText{
		{"605e338249a7a1d40df83b04f7658354f883b41b", "forceUnlock", "3.22-now"},
		{"7e9c80b3d786b95d5d4aaf8fd73adb9775fa6fb1", "forceUnlock", "2.2.3-3.21"},
		{"51b433c3cc9a6ca991b3aefec63d23490c246318", "forceUnlock of RSpinLock", "3.15-now"},
	}),
	redisson("RLock", Family{Kind: Extends, Each: true}, []familyText{
		{"6a3d31570dc6f4b0bd32bcdc8e75667747c6f635", "watchdog, many locks at once", "3.44-now"},
	}),
	redisson("RLock", Family{Kind: Extends}, []familyText{
		{"8e19a1ddbdee9138df9f32a480c57addab4353d1", "watchdog", "2.4-3.43"},
		{"3fd750e0b43af99dbd223e5523718f18cded3664", "expire, lease of a MultiLock", "3.17-now"},
		{"3adcab8843f28538b47f67950913e2a88189dddd", "expire, lease of a MultiLock", "3.13.6-3.16"},
	}),
	redisson("RReadWriteLock", Family{Kind: Takes, Granted: GrantNil, Holder: 2, Derived: true}, []familyText{
		{"95553a6ff11176c18e71344e89d116b06fd6f753", "read lock", "3.11.1-now"},
		{"3e6597e1d1157c59ac0d6efa2ba7e92ef418c41e", "read lock", "2.10.5-3.11.0"},
		{"6306ba3bf1f563b284bed52d305fce615c6664d9", "write lock", "2.10.5-now"},
	}),
	redisson("RReadWriteLock", Family{Kind: Releases, Granted: GrantNotNil, Holder: 2, Derived: true}, []familyText{
		{"6e1b10e11ac0a3ed8e902562ecd32ce01b553039", "read unlock", "3.44-now"},
		{"5947c0fee6ca25ae094ec1b3e7a2559a9273d29f", "read unlock", "3.24-3.43"},
		{"92a54c31a4dc3b46f81e24a6dd5bb7d677c6f882", "read unlock", "3.22-3.23"},
		{"f5469be4bfe5232d519471092634b3ee84e5ee6f", "read unlock", "2.10.5-3.21"},
	}),
	redisson("RReadWriteLock", Family{Kind: Releases, Granted: GrantNotNil, Derived: true}, []familyText{
		{"21f5fb0f8ddfa9be5c3e0c9757c128796add75c6", "write unlock", "3.44-now"},
		{"d29c5559782035515d32e926762830b3304b49be", "write unlock", "3.24-3.43"},
		{"319a1cdf1b56c767a0a9adf2224250bf811f110c", "write unlock", "3.22-3.23"},
		{"baa634f6184acc1b8f145e810a0e0e00967a3cbe", "write unlock", "2.8-3.21"},
	}),
	redisson("RReadWriteLock", Family{Kind: Releases, Blind: true, Derived: true}, []familyText{
		{"27dbe744e95c1d854a7f556cc6817030de2d0d01", "read forceUnlock", "3.22-now"},
		{"23f9bc91439172625235ce2ee06d6647f08a7e27", "read forceUnlock", "2.8.2-3.21"},
		{"2e2cb2a3b13e2e80e4236ef6a25beaf365dba608", "write forceUnlock", "3.22-now"},
		{"23639b0b2d18d26ce352e148ff4ac5b8e984b696", "write forceUnlock", "2.8.2-3.21"},
	}),
	redisson("RReadWriteLock", Family{Kind: Extends, Each: true, Derived: true}, []familyText{
		{"38d2b478dfbe264ab67c221b7e4be62245f00ba0", "read watchdog", "4.4-now"},
		{"d6564f42b98d6eece0e940a478ee248f80b8a90a", "read watchdog", "4.0-4.3"},
		{"1affef780a01e1406cb1968c62918f618d10d6a3", "read watchdog", "3.44-3.52"},
	}),
	redisson("RReadWriteLock", Family{Kind: Extends, Derived: true}, []familyText{
		{"6563941ff57e01b8cf61e86907b80686438a2f74", "read watchdog", "2.14-3.43"},
	}),
	redisson("RReadWriteLock", Family{Kind: Asks}, []familyText{
		{"8ad44f1ba014938c20da38206b6d496c85ec1aed", "read isLocked", "3.24-now"},
	}),
	redisson("RFairLock", Family{Kind: Takes, Granted: GrantNil, Holder: 2, Queues: true}, []familyText{
		{"8f6ed299ffd259f0539c20f89253998c0777ea75", "lock, tryLock with a wait", "3.45-now"},
		{"929defe0321e0a4c943b4244951d3a730b6eaabc", "lock, tryLock with a wait", "3.32-3.44"},
		{"762bfafa6be221431a0b668685dd15c926483619", "lock, tryLock with a wait", "3.11.1-3.30"},
		{"c10436d1a94338a33b5ca6ac6f483f6b92193d48", "lock, tryLock with a wait", "2.7-3.11.0"},
		{"d20501c26a30adf6fb0fe9883bbbcc497e6157e2", "tryLock", "3.32-now"},
		{"aa0a28d2eb7cbeb50151315a58eb75302d8dfa40", "tryLock", "3.11.1-3.30"},
		{"706c2b7e93b133c46a7d8593a3a95d5ab55e6721", "tryLock", "2.7-3.11.0"},
		{"46724422f148047badd768b1b1a3d750d86bded2", "lock of RNonReentrantFairLock", "4.4-now"},
		{"5bea9498faee85066db11f2f8bf80fccbf222eaf", "tryLock of RNonReentrantFairLock", "4.4-now"},
	}),
	redisson("RFairLock", Family{Kind: Releases, Granted: GrantNotNil}, []familyText{
		{"367f80bd2e300e411fb0936d9b601e5bcb3fd4b6", "unlock", "3.32-now"},
		{"ca303f8587d0942f8a0021f62338626ca4dd0118", "unlock", "3.24-3.30"},
		{"14f85250fb2a386500bf8e4b25a8e95db140ff0c", "unlock", "3.22-3.23"},
		{"35d32367b21753c39b55dc64d1906fee627cc9a8", "unlock", "2.8.2-3.21"},
	}),
	redisson("RFairLock", Family{Kind: Releases, Blind: true}, []familyText{
		{"71ed11d4e4818119ac560b3d670a7f08256afc46", "forceUnlock", "3.32-now"},
		{"047c11d7fec40d0102fe9903ff1e19e9a1dec610", "forceUnlock", "3.22-3.30"},
		{"95cdf4b03f82c82edf987c7d216b4b67d861b14f", "forceUnlock", "2.7-3.21"},
	}),
	redisson("RFairLock", Family{Kind: Tells}, []familyText{
		{"d1ddef65ad80886b5d36e023c99930044ddd653a", "leaving the queue", "3.11.1-now"},
		{"33148f0ca0bbc1fae2674efa67209dcb1f6c6431", "leaving the queue", "2.10.5-3.11.0"},
	}),
	redisson("FasterMultiLock", Family{Kind: Takes}, []familyText{{"6f6c8d62862d8d76ea41fc769938285c3aca3005", "tryLock", "3.38-now"}}),
	redisson("FasterMultiLock", Family{Kind: Takes, Granted: GrantNil}, []familyText{
		{"eba4f75b2998ef1ead8e55019d89d93d85dadf60", "lock, tryLock with a wait", "3.38-now"},
	}),
	redisson("FasterMultiLock", Family{Kind: Releases, Granted: GrantNotNil}, []familyText{
		{"5088a04fb08aa002f465f0f90b35ed8da9b27a3c", "unlock", "3.38-now"},
	}),
	redisson("FasterMultiLock", Family{Kind: Releases, Blind: true}, []familyText{{"9f004091f2597ace3c2e75f8b32c7adf985f412e", "forceUnlock", "3.38-now"}}),
	redisson("FasterMultiLock", Family{Kind: Extends}, []familyText{
		{"935362a31ac5b3d6f7c5c3f1e26d9a012f87f2bd", "watchdog", "3.44-now"},
		{"9cdf4e206c51f838a9e65cf6e84613f0de3559cf", "watchdog", "3.38-3.43"},
	}),
	redisson("FasterMultiLock", Family{Kind: Asks}, []familyText{
		{"b9e070cb84c0ed3944b58dcb4ddf45af7adeb9c8", "isHeldByThread", "3.38-now"},
		{"25ede9b3422ba7c8d75cc43d73a4d90331598aa0", "isLocked", "3.38-now"},
	}),
	redisson("RFencedLock", Family{Kind: Refused, Why: whyFence}, []familyText{
		{"49babb5a1e6a0c5f188c2ae62b93b51cdfd63e45", "lockAndGetToken", "3.19-now"},
		{"46b5551ba403d6152a7a6eca122e08728d6c8c66", "lock, tryLock", "3.19-now"},
	}),
	redisson("RSemaphore", Family{Kind: Refused, Why: whyCounter}, []familyText{
		{"c7dc9d189c1715465a31a06ddbc008585e0c20be", "tryAcquire", "2.2.4-now"},
		{"6ef996845b2b97db21c5bc1ed04b8eae2babe56f", "release", "2.2.4-3.21.3"},
		{"74e35a16120f0f07ddf9bccd2f3593b769a9fd11", "an older form", "2.2.4-3.16.2"},
		{"44d63d4882cfdb9af87c32c96c24a9e1e15cffd5", "an older form", "2.4.0-3.18.0"},
		{"6bb281549022225c6d8228b4af1e06c9d6610b90", "an older form", "2.4.0-3.11.6"},
		{"c3c3c87b52a880a2a73e312c1cc9d21f500d80f5", "an older form", "3.12.0-3.16.1"},
		{"af883fdf25153ad9a41ad1c0d5dfde728728961a", "an older form", "3.16.2-3.21.3"},
		{"c87766d572855e9461c4ecd453db5d1cbab6119e", "drainPermits", "3.16.3-now"},
		{"8d41a082c3a98f3e882844af9c9e9f9fbd7f8573", "an older form", "3.16.3-3.21.3"},
		{"ae27582488dd01f4e238cc0733a12146d410eb44", "release", "3.22.0-now"},
		{"241ce4e87e652b4f9b39d33cbcd7df9ee8ed906c", "trySetPermits", "3.22.0-now"},
		{"98238d408c6755085344670d3a2ddaa55cf177a9", "addPermits", "3.22.0-now"},
		{"38bf99884eb94708a40a9aabacb15b4c5f16e804", "trySetPermits with TTL", "3.29.0-now"},
		{"6883802454c09d455e3234c8b01549adf1fb8b4c", "releaseIfExists", "4.0.0-now"},
	}),
	redisson("RPermitExpirableSemaphore", Family{Kind: Refused, Why: whyCounter}, []familyText{
		{"1c2f23a6a6a0b73ec7e65363ebd0f04aa6118a05", "an older form", "2.4.0-3.11.6"},
		{"53d4f9a6b4a34a50743da9a0b2d689f55cd3ad07", "an older form", "2.4.0-3.16.8"},
		{"575a088d37e6b44b707ce3103c04a03c2cd504bd", "an older form", "2.4.0-3.21.3"},
		{"6aee5085c7e0b3ff5d8612116a9b5f2ceb1fdab2", "an older form", "2.8.0-3.21.3"},
		{"5100a65fefa9ca6c9ed0977c06c41c68e2e847e8", "an older form", "2.13.2-3.21.3"},
		{"9dd7dc38c905805c04c8f14cb8aae2bd5dd529b0", "an older form", "3.12.0-3.21.3"},
		{"2eac39f9e36394f850326ea7cd240d6ebc715ae2", "an older form", "3.17.0-3.21.3"},
		{"795a15adb7654812d3711bed0f526f84076f8f4e", "an older form", "3.19.1-3.21.3"},
		{"dd0e62727caf54b589ae8e4bf22c32ec5ec33250", "an older form", "3.19.1-3.21.3"},
		{"f753b3fd2954a5f1ed4d8f95a9c41819ecc27f41", "an older form", "3.19.1-3.21.3"},
		{"d47a2fd3852467e5e7f2d1618c92a1ca719fcf7a", "an older form", "3.22.0-3.23.3"},
		{"4ce079451bee2993ce00c8a4e205b536c6ccad67", "tryRelease one", "3.22.0-now"},
		{"26b3972b2c9e617556282f404cb79709d746a713", "availablePermits", "3.22.0-now"},
		{"e242db5c1c68811b0d26a41937dcf22415b6d872", "getPermits", "3.22.0-now"},
		{"6f0b0be79a0c146c778cb14f40c10eb5b706e574", "acquiredPermits", "3.22.0-now"},
		{"055e71dede7c0d07958c639e4661ab8bd36c4ab9", "an older form", "3.22.0-3.23.3"},
		{"ec6fb1cd5f66817424e8fe70fee7929391b7c6f0", "addPermits", "3.22.0-now"},
		{"2298b02cc67a89f2a638e47503db3675c73d77f5", "updateLeaseTime", "3.22.0-now"},
		{"992c96b09a3d8ea0b37f5dc12e5347a44d93909d", "tryAcquire", "3.23.4-now"},
		{"bb41a8ec1cd921c89e9d8f2ddde38ad13a2e8b74", "an older form", "3.23.4-3.40.2"},
		{"494d8561fee0cdb033f6c28d74c052c52189a578", "setPermits", "3.23.4-now"},
		{"cf3ab77b1c0ae1226ae0e06e5cb18ee75f56c96b", "release many", "3.41.0-now"},
		{"8be95cb5221cc7ee883cacb8859a8b32ef501a0e", "getLeaseTime", "3.41.0-now"},
	}),
	redisson("RCountDownLatch", Family{Kind: Refused, Why: whyCounter}, []familyText{
		{"956d64ccf21d1feed0339006db8295e2aa04a8d8", "trySetCount", "2.2.1-3.21.3"},
		{"23bcabf6e8e3267791df8ea2e9ed607944b28658", "delete", "2.2.1-3.21.3"},
		{"c103a1b27e5635c206edc800af5851a8c4cc8305", "countDown", "2.2.6-3.21.3"},
		{"38060fab26b0e7c5982a5cfd7ad542e44d3da19b", "countDown", "3.22.0-now"},
		{"2a52d54a6f35bc8af5e84a2930b2ca1aa2a15892", "trySetCount", "3.22.0-now"},
		{"47aed1b8133417c9bc009ffc08602e37ed4a1bb3", "delete", "3.22.0-now"},
	}),
	others,
)

// others are known by their shape, because their libraries format the texts differently from release to release.
var others = slices.Concat(
	like(Family{Kind: Releases, Library: "Spring Integration", Does: "unlock and publish, 5.5-now"},
		"8d39e24733a6", "a31511cd1ae2", "6880264e7227", "4839f16d1887", "b543700df22f", "487b4a2c1711"),
	like(Family{Kind: Refused, Why: whyList, Library: "python-redis-lock", Does: "release, reset"},
		"feb9a22d7971", "b62c5ae4a944", "a093dc0d8326", "77517b01f3e7", "71bbbc325b71", "757a329a59e6", "230daf3ddec0",
		"c30e1e0437ba", "afe8baa514df", "97de66c28c6a", "9164bf6f71e6", "8524456d87dd", "9549cdbc752a"),
	like(Family{Kind: Refused, Why: whyList, Library: "walrus", Does: "release"}, "044f424e8da6"),
	like(Family{Kind: Refused, Why: whyCounter, Library: "redis-semaphore", Does: "semaphores"},
		"c8c73c4b1952", "23bbf01abcdc", "bff9e90bbd5d", "871d1c23aaf2", "01b79aaa678f"),
	like(Family{Kind: Refused, Why: whyFence, Library: "ioredfour, redfour", Does: "acquire, 1.0-now"}, "71ca6370d373"),
	like(Family{Kind: Refused, Why: whyFence, Library: "fencekit", Does: "acquire, 0.6"}, "08e9487c740b"),
	like(Family{Kind: Refused, Why: whyFence, Library: "redis-fifo-lock", Does: "acquire, release, 0.2-now"},
		"9efa348ca898", "3b192604a463"),
	[]Family{
		{SHA: "14b5a67944e7ac72a664ccfe1401554d683e190c", Kind: Refused, Why: whyCounter, Library: "DistributedLock.Redis", Does: "semaphore: acquire"},
		{SHA: "3850b48f22b01baa0ed9428b0bb6e94cf9957d13", Kind: Refused, Why: whyCounter, Library: "DistributedLock.Redis", Does: "semaphore: extend"},
		{Shape: "9f61b1022650", Kind: Tells, Library: "Symfony Lock", Does: "whether scripts may use TIME, 5.2-now"},
		{Shape: "4df3e8f9623c", Kind: Takes, Library: "Symfony Lock", Does: "acquire, 5.2-now"},
		{Shape: "f88ade4c0164", Kind: Takes, Library: "Symfony Lock", Does: "acquire to read, 5.2-now"},
		{Shape: "cbe0abd9c58e", Kind: Extends, Library: "Symfony Lock", Does: "refresh, 5.2-now"},
		{Shape: "f3075c652965", Kind: Releases, Library: "Symfony Lock", Does: "release, 5.2-now"},
		{Shape: "9d51ed3abc89", Kind: Asks, Library: "Symfony Lock", Does: "is it mine, 5.2-now"},
		{Shape: "e6c3f9672db9", Kind: Takes, Granted: GrantKeys, Library: "node-redlock", Does: "acquire several, 4.1-5"},
		{Shape: "e00fb92337a6", Kind: Takes, Granted: GrantKeys, Library: "node-redlock", Does: "acquire, 4.0"},
		{Shape: "d1f9d751b019", Kind: Extends, Granted: GrantKeys, Library: "node-redlock", Does: "extend several, 4.1-5"},
		{Shape: "5602e53712d9", Kind: Extends, Granted: GrantKeys, Library: "node-redlock", Does: "extend, 4.0"},
		{Shape: "54aba1735505", Kind: Releases, Library: "node-redlock", Does: "release several, 4-5"},
		{Shape: "d7c413763c9a", Kind: Takes, Granted: GrantKeys, Library: "@sesamecare-oss/redlock", Does: "acquire, 1.3-now"},
		{Shape: "26e0b7703528", Kind: Extends, Granted: GrantKeys, Library: "@sesamecare-oss/redlock", Does: "extend, 1.3-now"},
		{Shape: "e704fed9ea09", Kind: Releases, Library: "@sesamecare-oss/redlock", Does: "release, 1.3-now"},
		{Shape: "b9fbcecf44b9", Kind: Takes, Permits: 1, Library: "effect-distributed-lock", Does: "acquire, 0.0.11"},
		{Shape: "d11b017fcb83", Kind: Extends, Permits: 1, Library: "effect-distributed-lock", Does: "refresh, 0.0.11"},
		{Shape: "a4fccb9aa040", Kind: Releases, Library: "effect-distributed-lock", Does: "release, 0.0.11"},
		{Shape: "70544ef3b194", Kind: Asks, Library: "effect-distributed-lock", Does: "how many hold it, 0.0.11"},
		{Shape: "dd56cf729308", Kind: Takes, Granted: GrantFirst, Library: "redlock-universal", Does: "acquire several, 0.8"},
		{Shape: "62b24b719bdc", Kind: Extends, Granted: GrantFirst, Library: "redlock-universal", Does: "extend while enough is left, 0.8"},
		{Shape: "9be3925e8065", Kind: Takes, Library: "@redis-kit/lock", Does: "acquire, 0.1"},
		{Shape: "b34f1ec8f773", Kind: Extends, Library: "@redis-kit/lock", Does: "extend, 0.1"},
		{Shape: "a9600b3ad3f4", Kind: Releases, Library: "@redis-kit/lock", Does: "release, 0.1"},
		{SHA: "444506ed6079843ae4590ff6caf5f677dae3a35f", Kind: Tells, Library: "Redisson", Does: "is it a cluster, 4.7"},
		{Shape: "03772a1f95ac", Kind: Takes, Granted: GrantOK, Library: "rueidislock", Does: "acquire until a time, now"},
		{Shape: "c57d4da10cf2", Kind: Extends, Library: "rueidislock", Does: "extend until a time, now"},
		{SHA: "0eafb65e6aa537bcc966e2af2a66dc7f3f66e121", Kind: Takes, Library: "Medusa", Does: "acquire, 2.0-now"},
		{SHA: "1aa70d3714f14a74e5d432283dae75da8fd9f1f8", Kind: Takes, Granted: GrantNil, Holder: 2, Library: "node-redisson", Does: "lock, tryLock, 1.0"},
		{SHA: "4a66e59a59b914f2e818c168080109f73e3b4996", Kind: Releases, Granted: GrantNotNil, Library: "node-redisson", Does: "unlock, 1.0"},
		{SHA: "998172e59d96b314fb35ad302575fa19c8f518f2", Kind: Extends, Library: "node-redisson", Does: "watchdog, 1.0"},
		{SHA: "95d09a0dc5130d77bf36b4cb795f78f8839bc372", Kind: Releases, Blind: true, Library: "node-redisson", Does: "forceUnlock, 1.0"},
		{SHA: "eb0c00d98f6f33b4262419a509002884540f30be", Kind: Takes, Granted: GrantOK, Library: "bsm/redislock", Does: "obtain, 0.10"},
		{Shape: "cd67214f6cd2", Kind: Takes, Granted: GrantOK, Library: "bsm/redislock", Does: "obtain, 0.9.4"},
		{SHA: "5a22d7e8431313862816d4416b5e46dd70fc340d", Kind: Extends, Granted: GrantOK, Library: "bsm/redislock", Does: "refresh, 0.10"},
		{SHA: "9470c810040e272ee6c579d8d4331aaf6332a7b1", Kind: Releases, Granted: GrantOK, Library: "bsm/redislock", Does: "release, 0.10"},
		{SHA: "66e1084c2d842a7e8c271925aae90219fac4e129", Kind: Asks, Library: "bsm/redislock", Does: "TTL, 0.10"},
	},
)

// Why some scripts are refused.
const (
	whyCounter = "its count would diverge between masters, and a majority of them admits more holders than one Redis; " +
		"see Scripts that are refused in docs/clients.md"
	whyList = "it wakes waiters through a list, and each master would hand its element to another waiter; " +
		"see Scripts that are refused in docs/clients.md"
	whyFence = "each master would count its fencing tokens for itself, and begin anew after ttl_max; " +
		"use a lock without them, as Redisson's RLock, or the command LOCK, whose fence grows; " +
		"see Scripts that are refused in docs/clients.md"
)

// A familyText is one script of a library.
type familyText struct{ sha, does, versions string }

func redisson(class string, like Family, texts []familyText) []Family {
	var rows []Family
	for _, t := range texts {
		row := like
		row.SHA, row.Library, row.Does = t.sha, "Redisson "+class, t.does+", "+t.versions
		rows = append(rows, row)
	}
	return rows
}

func like(row Family, shapes ...string) []Family {
	rows := make([]Family, len(shapes))
	for i, shape := range shapes {
		rows[i] = row
		rows[i].Shape = shape
	}
	return rows
}
