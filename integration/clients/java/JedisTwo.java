import redis.clients.jedis.Jedis;

/** Jedis 2. */
class JedisTwo extends JedisLocks {
  public static void main(String[] args) throws Exception {
    Scenarios.run(new JedisTwo());
  }

  String set(Jedis jedis, byte[] name, byte[] token, long ttlMs) {
    return jedis.set(name, token, "NX".getBytes(), "PX".getBytes(), ttlMs);
  }
}
