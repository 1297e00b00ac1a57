import io.lettuce.core.RedisClient;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import java.util.Arrays;
import java.util.UUID;

/** Lettuce, by commands. */
class LettuceLocks extends Library {
  LettuceLocks() {
    super("Lettuce", "lettuce-core");
    tokens = true;
  }

  public static void main(String[] args) throws Exception {
    Scenarios.run(new LettuceLocks());
  }

  Client open() {
    RedisClient client = RedisClient.create("redis://" + HOST + ":" + PORT);
    RedisCommands<byte[], byte[]> commands = client.connect(ByteArrayCodec.INSTANCE).sync();
    return new Client() {
      public Lock lock(String name, long ttlMs, byte[] token, boolean keep) {
        byte[] own = token == null ? UUID.randomUUID().toString().getBytes() : token;
        return new HandLock(commands, name.getBytes(), ttlMs, own);
      }

      public void close() {
        client.shutdown(java.time.Duration.ZERO, java.time.Duration.ofSeconds(2));
      }
    };
  }

  record HandLock(RedisCommands<byte[], byte[]> commands, byte[] name, long ttlMs, byte[] token) implements Lock {
    public boolean acquire(long waitMs) throws Exception {
      return poll(waitMs, () -> {
        String reply = commands.set(name, token, SetArgs.Builder.nx().px(ttlMs));
        want(reply == null || reply.equals("OK"), "SET: " + reply);
        want(reply == null || Arrays.equals(commands.get(name), token), "GET tells another token");
        return reply != null;
      });
    }

    public boolean release() {
      String sha = commands.scriptLoad(RELEASE.getBytes());
      return commands.<Long>evalsha(sha, ScriptOutputType.INTEGER, new byte[][] {name}, token) == 1;
    }

    public boolean extend(long ttlMs) {
      return commands.<Long>eval(EXTEND.getBytes(), ScriptOutputType.INTEGER, new byte[][] {name}, token, Long.toString(ttlMs).getBytes()) == 1;
    }
  }
}
