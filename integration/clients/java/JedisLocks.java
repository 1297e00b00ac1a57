import java.util.Arrays;
import java.util.UUID;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPoolConfig;

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

      public void close() {
        pool.close();
      }
    };
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
