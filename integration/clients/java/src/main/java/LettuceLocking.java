import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.protocol.ProtocolVersion;
import java.util.List;

/** Locks through Lettuce, in RESP2 and RESP3. Arguments: HOST PORT. */
public final class LettuceLocking {
  public static void main(String[] args) {
    for (ProtocolVersion protocol : List.of(ProtocolVersion.RESP2, ProtocolVersion.RESP3)) {
      for (int db : new int[] {0, 1}) {
        RedisURI uri =
            RedisURI.builder().withHost(args[0]).withPort(Integer.parseInt(args[1])).withDatabase(db)
                .withClientName("locking").build();
        RedisClient client = RedisClient.create(uri);
        client.setOptions(ClientOptions.builder().protocolVersion(protocol).autoReconnect(false).build());
        try (StatefulRedisConnection<String, String> connection = client.connect()) {
          lock(connection.sync(), "lettuce:" + protocol + ":" + db);
        }
        client.shutdown();
      }
    }
    System.out.println("ok lettuce");
  }

  private static void lock(RedisCommands<String, String> redis, String key) {
    String[] keys = {key};
    redis.del(key);
    Want.want("SET NX PX", redis.set(key, "me", SetArgs.Builder.nx().px(30000)), "OK");
    Want.want("a second SET NX PX", redis.set(key, "you", SetArgs.Builder.nx().px(30000)), null);
    Want.want("GET", redis.get(key), "me");
    long ttl = redis.pttl(key);
    Want.want("PTTL in range", ttl > 0 && ttl <= 30000, true);
    Long stranger = redis.eval(Want.RELEASE, ScriptOutputType.INTEGER, keys, "you");
    Want.want("release by a stranger", stranger, 0L);
    String sha = redis.scriptLoad(Want.RELEASE);
    Long owner = redis.evalsha(sha, ScriptOutputType.INTEGER, keys, "me");
    Want.want("release by the owner", owner, 1L);
    Long again = redis.evalsha(sha, ScriptOutputType.INTEGER, keys, "me");
    Want.want("release again", again, 0L);
  }
}
