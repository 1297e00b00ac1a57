import java.util.Arrays;
import java.util.List;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.params.SetParams;

/** Locks through Jedis, in RESP2 and RESP3. Arguments: HOST PORT. */
public final class JedisLocking {
  public static void main(String[] args) {
    HostAndPort address = new HostAndPort(args[0], Integer.parseInt(args[1]));
    for (RedisProtocol protocol : List.of(RedisProtocol.RESP2, RedisProtocol.RESP3)) {
      for (int db : new int[] {0, 1}) {
        var config =
            DefaultJedisClientConfig.builder().protocol(protocol).database(db).clientName("locking").build();
        try (JedisPooled jedis = new JedisPooled(address, config)) {
          lock(jedis, "jedis:" + protocol + ":" + db);
        }
      }
    }
    System.out.println("ok jedis");
  }

  private static void lock(JedisPooled jedis, String key) {
    SetParams nxpx = SetParams.setParams().nx().px(30000);
    jedis.del(key);
    Want.want("SET NX PX", jedis.set(key, "me", nxpx), "OK");
    Want.want("a second SET NX PX", jedis.set(key, "you", nxpx), null);
    Want.want("GET", jedis.get(key), "me");
    long ttl = jedis.pttl(key);
    Want.want("PTTL in range", ttl > 0 && ttl <= 30000, true);
    Want.want("release by a stranger", jedis.eval(Want.RELEASE, List.of(key), List.of("you")), 0L);
    String sha = jedis.scriptLoad(Want.RELEASE);
    Want.want("release by the owner", jedis.evalsha(sha, List.of(key), List.of("me")), 1L);
    Want.want("release again", jedis.evalsha(sha, List.of(key), List.of("me")), 0L);
    try (Pipeline pipe = jedis.pipelined()) {
      pipe.set(key, "me", nxpx);
      pipe.set(key, "you", nxpx);
      pipe.get(key);
      pipe.del(key);
      Want.want("a pipeline", pipe.syncAndReturnAll(), Arrays.asList("OK", null, "me", 1L));
    }
  }
}
