<?php
// One client of a library; see ../go/remote. The argument says which: phpredis, predis, session, symfony or laravel, which takes a driver.

const RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end';
const EXTEND = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end';

const DOUBLE = 'return redis.call("incrby", KEYS[1], redis.call("get", KEYS[1]))';

// Where Debian puts libraries written in PHP.
set_include_path(get_include_path() . PATH_SEPARATOR . '/usr/share/php');

set_error_handler(function ($level, $message) {
    throw new ErrorException($message);
});

function poll(int $wait, callable $try): bool
{
    for ($end = hrtime(true) + $wait * 1_000_000; !$try(); usleep(50_000)) {
        if (hrtime(true) >= $end) {
            return false;
        }
    }
    return true;
}

// step notes what was used, which must have given what is wanted.
function step(array &$used, string $what, mixed $got, mixed $wanted): void
{
    if ($got !== $wanted) {
        throw new RuntimeException("$what: " . json_encode($got));
    }
    $used[] = $what;
}

class PhpRedis
{
    public const FEATURES = 'extends tokens data';
    private ?Redis $redis = null;

    public function version(): string
    {
        return phpversion('redis');
    }

    // A new connection for a broken one: phpredis makes none once it has been told that the server is gone.
    public function redis(): Redis
    {
        if ($this->redis === null || !$this->redis->isConnected()) {
            $this->redis = new Redis();
            $this->redis->connect(getenv('PROXY_HOST'), (int) getenv('PROXY_PORT'));
        }
        return $this->redis;
    }

    public function data(string $name, string $piped): array
    {
        $used = [];
        $redis = $this->redis();
        [$text, $number, $fields, $items] = ["$name:text", "$name:number", "$name:fields", "$name:items"];
        $redis->mset([$text => 'one', $number => 2]);
        step($used, 'strings', $redis->mget([$text, $number]), ['one', '2']);
        $redis->hSet($fields, 'a', 1);
        step($used, 'hash', $redis->hGetAll($fields), ['a' => '1']);
        $redis->rPush($items, 'x', 'y');
        step($used, 'list', $redis->lRange($items, 0, -1), ['x', 'y']);
        $nothing = $redis->blPop(["$name:queue"], 1);
        $redis->rPush("$name:queue", 'z');
        step($used, 'BLPOP', [$nothing, $redis->blPop(["$name:queue"], 1)], [[], ["$name:queue", 'z']]);
        $redis->watch($number);
        step($used, 'WATCH, MULTI', $redis->multi()->incr($number)->hIncrBy($fields, 'a', 1)->exec(), [3, 2]);
        $pipe = $redis->pipeline()->set($text, 'two')->set($piped, 't', ['nx', 'px' => 30000])->get($text)->del($piped);
        step($used, 'pipeline', $pipe->exec(), [true, true, 'two', 1]);
        $listener = new Redis();
        $listener->connect(getenv('PROXY_HOST'), (int) getenv('PROXY_PORT'), 0, null, 0, 5);
        $child = proc_open([PHP_BINARY, '-r', '$r = new Redis(); $r->connect($argv[1], (int) $argv[2]);
            while ($r->publish($argv[3], "hello") !== 1) { usleep(10000); }',
            getenv('PROXY_HOST'), getenv('PROXY_PORT'), "$name:news"], [], $pipes);
        $heard = null;
        try {
            $listener->subscribe(["$name:news"], function ($redis, $channel, $message) use (&$heard) {
                $heard = $message;
                throw new Exception(); // it has no other end
            });
        } catch (Exception $e) {
            $heard ??= $e->getMessage();
        }
        proc_close($child);
        $listener->close();
        step($used, 'pub/sub', $heard, 'hello');
        $redis->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);
        for ($found = [], $cursor = null; ($keys = $redis->scan($cursor, "$name:*")) !== false;) {
            $found = array_merge($found, $keys);
        }
        $found = array_unique($found);
        sort($found);
        step($used, 'SCAN', $found, [$fields, $items, $number, $text]);
        step($used, 'scripts', $redis->eval(DOUBLE, [$number], 1), 6);
        return $used;
    }

    public function lock(string $name, int $ttl, ?string $token): object
    {
        return new class($this, $name, $ttl, $token ?? random_bytes(16)) {
            public function __construct(private PhpRedis $client, private string $name, private int $ttl, private string $token)
            {
            }

            public function acquire(int $wait): bool
            {
                return poll($wait, function () {
                    $redis = $this->client->redis();
                    $redis->clearLastError();
                    $granted = $redis->set($this->name, $this->token, ['nx', 'px' => $this->ttl]);
                    if ($redis->getLastError() !== null) {
                        throw new RuntimeException($redis->getLastError());
                    }
                    if ($granted && $redis->get($this->name) !== $this->token) {
                        throw new RuntimeException('GET tells another token');
                    }
                    return $granted;
                });
            }

            public function release(): bool
            {
                $redis = $this->client->redis();
                $sha = $redis->script('load', RELEASE);
                return $redis->evalSha($sha, [$this->name, $this->token], 1) === 1;
            }

            public function extend(int $ttl): bool
            {
                return $this->client->redis()->eval(EXTEND, [$this->name, $this->token, $ttl], 1) === 1;
            }
        };
    }
}

class Predis
{
    public const FEATURES = 'extends tokens data';
    private Predis\Client $redis;

    public function __construct()
    {
        require_once 'Predis/Autoloader.php';
        Predis\Autoloader::register();
        $this->redis = new Predis\Client(['host' => getenv('PROXY_HOST'), 'port' => (int) getenv('PROXY_PORT')]);
    }

    public function version(): string
    {
        return Predis\Client::VERSION;
    }

    public function data(string $name, string $piped): array
    {
        $used = [];
        $redis = $this->redis;
        [$text, $number, $fields, $items] = ["$name:text", "$name:number", "$name:fields", "$name:items"];
        $redis->mset([$text => 'one', $number => 2]);
        step($used, 'strings', $redis->mget([$text, $number]), ['one', '2']);
        $redis->hset($fields, 'a', 1);
        step($used, 'hash', $redis->hgetall($fields), ['a' => '1']);
        $redis->rpush($items, ['x', 'y']);
        step($used, 'list', $redis->lrange($items, 0, -1), ['x', 'y']);
        $nothing = $redis->blpop(["$name:queue"], 1);
        $redis->rpush("$name:queue", ['z']);
        step($used, 'BLPOP', [$nothing, $redis->blpop(["$name:queue"], 1)], [null, ["$name:queue", 'z']]);
        $replies = $redis->transaction(['watch' => $number, 'cas' => true], function ($tx) use ($number, $fields) {
            $tx->get($number);
            $tx->multi();
            $tx->incr($number);
            $tx->hincrby($fields, 'a', 1);
        });
        step($used, 'WATCH, MULTI', $replies, [3, 2]);
        $replies = $redis->pipeline(function ($pipe) use ($text, $piped) {
            $pipe->set($text, 'two');
            $pipe->set($piped, 't', 'PX', 30000, 'NX');
            $pipe->get($text);
            $pipe->del($piped);
        });
        step($used, 'pipeline', array_map('strval', $replies), ['OK', 'OK', 'two', '1']);
        $other = new Predis\Client(['host' => getenv('PROXY_HOST'), 'port' => (int) getenv('PROXY_PORT')]);
        $heard = null;
        $listener = $other->pubSubLoop(['subscribe' => "$name:news"]);
        foreach ($listener as $message) {
            if ($message->kind === 'subscribe') {
                $redis->publish("$name:news", 'hello');
            } elseif ($message->kind === 'message') {
                $heard = $message->payload;
                $listener->unsubscribe();
            }
        }
        step($used, 'pub/sub', $heard, 'hello');
        $found = array_unique(iterator_to_array(new Predis\Collection\Iterator\Keyspace($redis, "$name:*"), false));
        sort($found);
        step($used, 'SCAN', $found, [$fields, $items, $number, $text]);
        step($used, 'scripts', $redis->eval(DOUBLE, 1, $number), 6);
        return $used;
    }

    public function lock(string $name, int $ttl, ?string $token): object
    {
        return new class($this->redis, $name, $ttl, $token ?? random_bytes(16)) {
            public function __construct(private Predis\Client $redis, private string $name, private int $ttl, private string $token)
            {
            }

            public function acquire(int $wait): bool
            {
                return poll($wait, function () {
                    $granted = $this->redis->set($this->name, $this->token, 'PX', $this->ttl, 'NX') !== null;
                    if ($granted && $this->redis->get($this->name) !== $this->token) {
                        throw new RuntimeException('GET tells another token');
                    }
                    return $granted;
                });
            }

            public function release(): bool
            {
                return $this->redis->evalsha($this->redis->script('load', RELEASE), 1, $this->name, $this->token) === 1;
            }

            public function extend(int $ttl): bool
            {
                return $this->redis->eval(EXTEND, 1, $this->name, $this->token, $ttl) === 1;
            }
        };
    }
}

// The session handler of phpredis locks each session. Its TTLs are whole seconds, and its release tells nothing.
class Session
{
    public const FEATURES = 'mute data';

    public function version(): string
    {
        return phpversion('redis');
    }

    // A session, whose data is kept under its lock. A process has one at a time: that of the lock is ended before, and
    // begun again.
    public function data(string $name, string $piped): array
    {
        $used = [];
        $held = session_id();
        session_write_close(); // which writes it, and releases
        session_id(preg_replace('/[^a-z0-9]/i', '-', $name));
        session_start();
        $_SESSION['cart'] = ['a' => 1];
        session_write_close();
        session_start();
        step($used, 'sessions', $_SESSION, ['cart' => ['a' => 1]]);
        session_abort();
        session_id($held);
        session_start(); // takes the lock again
        return $used;
    }

    public function lock(string $name, int $ttl, ?string $token): object
    {
        return new class(preg_replace('/[^a-z0-9]/i', '-', $name), $ttl) {
            public function __construct(private string $id, private int $ttl)
            {
            }

            public function acquire(int $wait): bool
            {
                if (session_status() === PHP_SESSION_ACTIVE) {
                    return false; // a process has one session at a time
                }
                foreach ([
                    'session.use_cookies' => 0, 'session.use_strict_mode' => 0, 'session.cache_limiter' => '',
                    'session.save_handler' => 'redis',
                    'session.save_path' => 'tcp://' . getenv('PROXY_HOST') . ':' . getenv('PROXY_PORT'),
                    'redis.session.locking_enabled' => 1,
                    'redis.session.lock_expire' => (int) ceil($this->ttl / 1000),
                    'redis.session.lock_retries' => intdiv($wait, 50), 'redis.session.lock_wait_time' => 50_000,
                ] as $name => $value) {
                    ini_set($name, $value);
                }
                session_id($this->id);
                $refused = false; // a session that could not be locked is begun all the same, with a notice
                set_error_handler(function ($level, $message) use (&$refused) {
                    return $refused = true;
                });
                $started = session_start();
                restore_error_handler();
                if ($started && $refused) {
                    session_abort();
                }
                return $started && !$refused;
            }

            public function release(): bool
            {
                return session_abort(); // releases, and writes nothing
            }
        };
    }
}

class Symfony
{
    public const FEATURES = 'extends';
    private Symfony\Component\Lock\LockFactory $factory;

    public function __construct()
    {
        require_once 'Symfony/Component/Lock/autoload.php';
        $redis = new Redis();
        $redis->connect(getenv('PROXY_HOST'), (int) getenv('PROXY_PORT'));
        $this->factory = new Symfony\Component\Lock\LockFactory(new Symfony\Component\Lock\Store\RedisStore($redis));
    }

    public function version(): string
    {
        return preg_replace('/[^0-9.].*/', '', trim(shell_exec("dpkg-query -W -f '\${Version}' php-symfony-lock")));
    }

    public function lock(string $name, int $ttl, ?string $token): object
    {
        return new class($this->factory->createLock($name, $ttl / 1000, false)) {
            public function __construct(private Symfony\Component\Lock\LockInterface $lock)
            {
            }

            public function acquire(int $wait): bool
            {
                return poll($wait, fn () => $this->lock->acquire(false));
            }

            public function release(): bool
            {
                if (!$this->lock->isAcquired()) {
                    return false;
                }
                $this->lock->release();
                return true;
            }

            public function extend(int $ttl): bool
            {
                $this->lock->refresh($ttl / 1000);
                return true;
            }
        };
    }
}

// The locks of Laravel's cache. Their TTLs are whole seconds.
class Laravel
{
    public const FEATURES = 'tokens data';
    private Illuminate\Cache\RedisStore $store;
    private Illuminate\Redis\RedisManager $manager;

    public function __construct(string $driver)
    {
        require_once 'Illuminate/Redis/autoload.php';
        require_once 'Illuminate/Cache/autoload.php';
        $address = ['host' => getenv('PROXY_HOST'), 'port' => (int) getenv('PROXY_PORT'), 'database' => 0];
        $this->manager = new Illuminate\Redis\RedisManager(null, $driver, ['default' => $address]);
        $this->store = new Illuminate\Cache\RedisStore($this->manager);
    }

    public function version(): string
    {
        return preg_replace('/[^0-9.].*/', '', trim(shell_exec("dpkg-query -W -f '\${Version}' php-illuminate-cache")));
    }

    public function data(string $name, string $piped): array
    {
        $used = [];
        $store = $this->store;
        $store->put("$name:value", ['a' => 1], 100);
        $store->forever("$name:number", 1);
        $added = $store->add("$name:added", 1, 100) && !$store->add("$name:added", 2, 100); // a script
        step($used, 'strings', [$store->get("$name:value"), $store->increment("$name:number", 2), $added], [['a' => 1], 3, true]);
        $store->putMany(["$name:x" => 1, "$name:y" => 2], 100);
        step($used, 'MULTI', $store->many(["$name:x", "$name:y"]), ["$name:x" => '1', "$name:y" => '2']);
        step($used, 'scripts', $added, true);
        $this->queue($used, $name);
        $this->limiters($used, $name);
        return $used;
    }

    // A queue whose worker waits in BLPOP: a job that is put back, one that is put off, and one whose worker is gone.
    private function queue(array &$used, string $name): void
    {
        require_once 'Illuminate/Queue/autoload.php';
        $queue = new Illuminate\Queue\RedisQueue($this->manager, "$name:jobs", 'default', 1, 1);
        $queue->setContainer(new Illuminate\Container\Container());
        $pop = function () use ($queue): array {
            poll(20_000, function () use ($queue, &$job) {
                return ($job = $queue->pop()) !== null;
            });
            return [$job, $job?->payload()['data'], $job?->attempts()];
        };
        $queue->push('Work', 'now');
        [$job, $data, $attempts] = $pop();
        $job?->release();
        $first = [$data, $attempts];
        [, $data, $attempts] = $pop(); // its worker does nothing, so that it is due again after a second
        $second = [$data, $attempts];
        [$job, $data, $attempts] = $pop();
        $job?->delete();
        step($used, 'queue', [$first, $second, [$data, $attempts]], [['now', 1], ['now', 2], ['now', 3]]);
        $queue->later(1, 'Work', 'later');
        [$job, $data] = $pop();
        $job?->delete();
        step($used, 'delayed jobs', [$data, $queue->size()], ['later', 0]);
    }

    private function limiters(array &$used, string $name): void
    {
        $times = fn ($limiter) => array_map(function () use ($limiter) {
            try {
                return $limiter()->then(fn () => 'yes', fn () => 'no');
            } catch (Illuminate\Contracts\Redis\LimiterTimeoutException) {
                return 'no';
            }
        }, [1, 2, 3]);
        $redis = $this->manager->connection();
        $throttle = $times(fn () => $redis->throttle("$name:throttle")->allow(2)->every(60)->block(0));
        $funnel = $times(fn () => $redis->funnel("$name:funnel")->limit(1)->block(0));
        step($used, 'limiters', [$throttle, $funnel], [['yes', 'yes', 'no'], ['yes', 'yes', 'yes']]);
    }

    public function lock(string $name, int $ttl, ?string $token): object
    {
        return new class($this->store->lock($name, (int) ceil($ttl / 1000), $token)) {
            public function __construct(private Illuminate\Contracts\Cache\Lock $lock)
            {
            }

            public function acquire(int $wait): bool
            {
                return poll($wait, fn () => $this->lock->get());
            }

            public function release(): bool
            {
                return $this->lock->release();
            }
        };
    }
}

ob_implicit_flush();
$class = ['phpredis' => PhpRedis::class, 'predis' => Predis::class, 'session' => Session::class, 'symfony' => Symfony::class,
    'laravel' => Laravel::class][$argv[1]];
$client = new $class(...array_slice($argv, 2));
$locks = [];
fwrite(STDOUT, 'ready ' . $client->version() . ' ' . $class::FEATURES . "\n");
while (($line = fgets(STDIN)) !== false) {
    $words = explode(' ', trim($line));
    try {
        if ($words[0] === 'data') {
            fwrite(STDOUT, 'used ' . implode(', ', $client->data($words[1], $words[2])) . "\n");
            continue;
        }
        $yes = match ($words[0]) {
            'lock' => (bool) ($locks[$words[1]] = $client->lock($words[2], (int) $words[3], $words[4] === '-' ? null : hex2bin(substr($words[4], 1)))),
            'acquire' => $locks[$words[1]]->acquire((int) $words[2]),
            'release' => $locks[$words[1]]->release(),
            'extend' => $locks[$words[1]]->extend((int) $words[2]),
        };
        fwrite(STDOUT, $yes ? "yes\n" : "no\n");
    } catch (Throwable $e) {
        for ($cause = $e; $cause->getPrevious() !== null; $cause = $cause->getPrevious());
        fwrite(STDOUT, 'error ' . get_class($e) . ': ' . strtr($cause->getMessage(), "\r\n", '  ') . "\n");
    }
}
