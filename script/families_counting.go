package script

// The scripts of Redisson that count: see whyCounter.

var semaphoreTexts = []familyText{
	{"c7dc9d189c1715465a31a06ddbc008585e0c20be", "tryAcquire", "2.2.4-now"},
	{"6ef996845b2b97db21c5bc1ed04b8eae2babe56f", "release", "2.2.4-3.21.3"},
	{"74e35a16120f0f07ddf9bccd2f3593b769a9fd11", "an older form", "2.2.4-3.16.2"},
	{"44d63d4882cfdb9af87c32c96c24a9e1e15cffd5", "an older form", "2.6.0-3.16.2"},
	{"6bb281549022225c6d8228b4af1e06c9d6610b90", "an older form", "2.6.0-3.11.6"},
	{"c3c3c87b52a880a2a73e312c1cc9d21f500d80f5", "an older form", "3.12.0-3.16.1"},
	{"af883fdf25153ad9a41ad1c0d5dfde728728961a", "an older form", "3.16.2-3.21.3"},
	{"c87766d572855e9461c4ecd453db5d1cbab6119e", "drainPermits", "3.16.3-now"},
	{"8d41a082c3a98f3e882844af9c9e9f9fbd7f8573", "an older form", "3.16.3-3.21.3"},
	{"ae27582488dd01f4e238cc0733a12146d410eb44", "release", "3.22.0-now"},
	{"241ce4e87e652b4f9b39d33cbcd7df9ee8ed906c", "trySetPermits", "3.22.0-now"},
	{"98238d408c6755085344670d3a2ddaa55cf177a9", "addPermits", "3.22.0-now"},
	{"38bf99884eb94708a40a9aabacb15b4c5f16e804", "trySetPermits with TTL", "3.29.0-now"},
	{"6883802454c09d455e3234c8b01549adf1fb8b4c", "releaseIfExists", "4.0.0-now"},
}

var permitTexts = []familyText{
	{"1c2f23a6a6a0b73ec7e65363ebd0f04aa6118a05", "an older form", "2.6.0-3.11.6"},
	{"53d4f9a6b4a34a50743da9a0b2d689f55cd3ad07", "an older form", "2.6.0-3.16.8"},
	{"575a088d37e6b44b707ce3103c04a03c2cd504bd", "an older form", "2.6.0-3.21.3"},
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
}

var latchTexts = []familyText{
	{"956d64ccf21d1feed0339006db8295e2aa04a8d8", "trySetCount", "2.2.1-3.21.3"},
	{"23bcabf6e8e3267791df8ea2e9ed607944b28658", "delete", "2.2.1-3.21.3"},
	{"c103a1b27e5635c206edc800af5851a8c4cc8305", "countDown", "2.2.6-3.21.3"},
	{"38060fab26b0e7c5982a5cfd7ad542e44d3da19b", "countDown", "3.22.0-now"},
	{"2a52d54a6f35bc8af5e84a2930b2ca1aa2a15892", "trySetCount", "3.22.0-now"},
	{"47aed1b8133417c9bc009ffc08602e37ed4a1bb3", "delete", "3.22.0-now"},
}
