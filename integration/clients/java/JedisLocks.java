import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPoolConfig;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Transaction;

/** Jedis by commands, as most of the locks on the web are written. */
abstract class JedisLocks extends Library {
  JedisLocks() {
    super("Jedis", "jedis");
    tokens = true;
  }

  /** Sets the key if it is absent. */
  abstract String set(Jedis jedis, byte[] name, byte[] token, long ttlMs);

  Client open() {
    JedisPoolConfig config = new JedisPoolConfig();
    config.setTestOnBorrow(true);
    config.setJmxEnabled(false);
    JedisPool pool = new JedisPool(config, HOST, PORT);
    return new Client() {
      public Lock lock(String name, long ttlMs, byte[] token, boolean keep) {
        return new HandLock(pool, name.getBytes(), ttlMs, token == null ? UUID.randomUUID().toString().getBytes() : token);
      }

      public void data(Used used, String name, String piped) throws Exception {
        use(pool, used, name, piped);
      }

      public void close() {
        pool.close();
      }
    };
  }

  /** Returns the keys that match. */
  abstract List<String> scan(Jedis jedis, String pattern);

  void use(JedisPool pool, Used used, String name, String piped) throws Exception {
    String text = name + ":text";
    String number = name + ":number";
    String fields = name + ":fields";
    String items = name + ":items";
    try (Jedis jedis = pool.getResource(); Jedis other = pool.getResource()) {
      jedis.mset(text, "one", number, "2");
      used.step("strings", jedis.mget(text, number), List.of("one", "2"));
      jedis.hset(fields, "a", "1");
      used.step("hash", jedis.hgetAll(fields), Map.of("a", "1"));
      jedis.rpush(items, "x", "y");
      used.step("list", jedis.lrange(items, 0, -1), List.of("x", "y"));
      CompletableFuture<List<String>> popped = CompletableFuture.supplyAsync(() -> jedis.blpop(20, name + ":queue"));
      other.rpush(name + ":queue", "z");
      used.step("BLPOP", popped.get(), List.of(name + ":queue", "z"));
      jedis.watch(number);
      Transaction transaction = (Transaction) jedis.multi();
      transaction.incr(number);
      transaction.hincrBy(fields, "a", 1);
      used.step("WATCH, MULTI", transaction.exec(), List.of(3, 2));
      Pipeline pipeline = (Pipeline) jedis.pipelined();
      pipeline.set(text, "two");
      pipeline.setnx(piped, "t");
      pipeline.get(text);
      pipeline.del(piped);
      used.step("pipeline", pipeline.syncAndReturnAll(), List.of("OK", 1, "two", 1));
      String[] heard = new String[1];
      jedis.subscribe(new JedisPubSub() {
        public void onSubscribe(String channel, int count) {
          other.publish(channel, "hello");
        }

        public void onMessage(String channel, String message) {
          heard[0] = message;
          unsubscribe();
        }
      }, name + ":news");
      used.step("pub/sub", heard[0], "hello");
      used.step("SCAN", new TreeSet<>(scan(jedis, name + ":*")), List.of(fields, items, number, text));
      used.step("scripts", jedis.eval(DOUBLE, 1, number), 6);
    }
  }

  class HandLock implements Lock {
    final JedisPool pool;
    final byte[] name;
    final long ttlMs;
    final byte[] token;

    HandLock(JedisPool pool, byte[] name, long ttlMs, byte[] token) {
      this.pool = pool;
      this.name = name;
      this.ttlMs = ttlMs;
      this.token = token;
    }

    public boolean acquire(long waitMs) throws Exception {
      return poll(waitMs, () -> {
        try (Jedis jedis = pool.getResource()) {
          String reply = set(jedis, name, token, ttlMs);
          want(reply == null || reply.equals("OK"), "SET: " + reply);
          want(reply == null || Arrays.equals(jedis.get(name), token), "GET tells another token");
          return reply != null;
        }
      });
    }

    public boolean release() {
      try (Jedis jedis = pool.getResource()) {
        return jedis.evalsha(jedis.scriptLoad(RELEASE.getBytes()), 1, name, token).equals(1L);
      }
    }

    public boolean extend(long ttlMs) {
      try (Jedis jedis = pool.getResource()) {
        return jedis.eval(EXTEND.getBytes(), 1, name, token, Long.toString(ttlMs).getBytes()).equals(1L);
      }
    }
  }
}
