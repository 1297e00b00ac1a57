import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.SetParams;

/** Jedis 4 and later. */
class JedisNow extends JedisLocks {
  public static void main(String[] args) throws Exception {
    Scenarios.run(new JedisNow());
  }

  String set(Jedis jedis, byte[] name, byte[] token, long ttlMs) {
    return jedis.set(name, token, SetParams.setParams().nx().px(ttlMs));
  }
}
