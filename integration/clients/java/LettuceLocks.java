import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

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
    StatefulRedisConnection<String, String> words = client.connect();
    return new Client() {
      public Lock lock(String name, long ttlMs, byte[] token, boolean keep) {
        byte[] own = token == null ? UUID.randomUUID().toString().getBytes() : token;
        return new HandLock(commands, name.getBytes(), ttlMs, own);
      }

      public void data(Used used, String name, String piped) throws Exception {
        use(client, words, used, name, piped);
      }

      public void close() {
        client.shutdown(java.time.Duration.ZERO, java.time.Duration.ofSeconds(2));
      }
    };
  }

  static void use(RedisClient client, StatefulRedisConnection<String, String> connection, Used used, String name, String piped) throws Exception {
    RedisCommands<String, String> redis = connection.sync();
    RedisAsyncCommands<String, String> async = connection.async();
    String text = name + ":text";
    String number = name + ":number";
    String fields = name + ":fields";
    String items = name + ":items";
    redis.mset(Map.of(text, "one", number, "2"));
    used.step("strings", redis.get(text) + redis.get(number), "one2");
    redis.hset(fields, "a", "1");
    used.step("hash", redis.hgetall(fields), Map.of("a", "1"));
    redis.rpush(items, "x", "y");
    used.step("list", redis.lrange(items, 0, -1), List.of("x", "y"));
    try (StatefulRedisConnection<String, String> waiting = client.connect()) {
      RedisFuture<KeyValue<String, String>> popped = waiting.async().blpop(20, name + ":queue");
      redis.rpush(name + ":queue", "z");
      used.step("BLPOP", popped.get().getValue(), "z");
    }
    redis.watch(number);
    redis.multi();
    redis.incr(number);
    redis.hincrby(fields, "a", 1);
    used.step("WATCH, MULTI", redis.exec().stream().toList(), List.of(3, 2));
    RedisFuture<String> set = async.set(text, "two");
    RedisFuture<String> taken = async.set(piped, "t", SetArgs.Builder.nx().px(30_000));
    RedisFuture<String> got = async.get(text);
    RedisFuture<Long> gone = async.del(piped);
    used.step("pipeline", List.of(set.get(), taken.get(), got.get(), gone.get()), List.of("OK", "OK", "two", 1));
    CompletableFuture<String> heard = new CompletableFuture<>();
    try (StatefulRedisPubSubConnection<String, String> listener = client.connectPubSub()) {
      listener.addListener(new RedisPubSubAdapter<>() {
        public void message(String channel, String message) {
          heard.complete(message);
        }
      });
      listener.sync().subscribe(name + ":news");
      redis.publish(name + ":news", "hello");
      used.step("pub/sub", heard.get(Scenarios.SOON, TimeUnit.MILLISECONDS), "hello");
    }
    TreeSet<String> found = new TreeSet<>();
    ScanIterator.scan(redis, ScanArgs.Builder.matches(name + ":*")).forEachRemaining(found::add);
    used.step("SCAN", found, List.of(fields, items, number, text));
    used.step("scripts", redis.<Long>eval(DOUBLE, ScriptOutputType.INTEGER, number), 6);
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
