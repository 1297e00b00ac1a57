import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.redis.client.Command;
import io.vertx.redis.client.Redis;
import io.vertx.redis.client.RedisConnection;
import io.vertx.redis.client.RedisOptions;
import io.vertx.redis.client.Request;
import io.vertx.redis.client.Response;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Vert.x's client, which Quarkus has too, by commands. */
class VertxLocks extends Library {
  static final Vertx VERTX = Vertx.vertx();

  VertxLocks() {
    super("Vert.x", "vertx-redis-client");
    tokens = true;
  }

  public static void main(String[] args) throws Exception {
    Scenarios.run(new VertxLocks());
  }

  static <T> T get(io.vertx.core.Future<T> future) throws Exception {
    return future.toCompletionStage().toCompletableFuture().get(Scenarios.SOON, TimeUnit.MILLISECONDS);
  }

  Client open() {
    Redis redis = Redis.createClient(VERTX, new RedisOptions().setConnectionString("redis://" + HOST + ":" + PORT));
    return new Client() {
      public Lock lock(String name, long ttlMs, byte[] token, boolean keep) {
        byte[] own = token == null ? UUID.randomUUID().toString().getBytes() : token;
        return new HandLock(redis, name, ttlMs, Buffer.buffer(own));
      }

      public void data(Used used, String name, String piped) throws Exception {
        use(redis, used, name, piped);
      }

      public void close() {
        redis.close();
      }
    };
  }

  static void use(Redis redis, Used used, String name, String piped) throws Exception {
    String text = name + ":text";
    String number = name + ":number";
    get(redis.send(Request.cmd(Command.MSET).arg(text).arg("one").arg(number).arg(2)));
    used.step("strings", get(redis.send(Request.cmd(Command.MGET).arg(text).arg(number))), "[one, 2]");
    get(redis.send(Request.cmd(Command.HSET).arg(name + ":fields").arg("a").arg(1)));
    used.step("hash", get(redis.send(Request.cmd(Command.HGETALL).arg(name + ":fields"))).get("a"), "1");
    get(redis.send(Request.cmd(Command.RPUSH).arg(name + ":queue").arg("z")));
    used.step("BLPOP", get(redis.send(Request.cmd(Command.BLPOP).arg(name + ":queue").arg(20))).get(1), "z");
    RedisConnection own = get(redis.connect());
    get(own.send(Request.cmd(Command.WATCH).arg(number)));
    get(own.send(Request.cmd(Command.MULTI)));
    get(own.send(Request.cmd(Command.INCR).arg(number)));
    used.step("WATCH, MULTI", get(own.send(Request.cmd(Command.EXEC))), "[3]");
    List<Response> replies = get(redis.batch(List.of(
        Request.cmd(Command.SET).arg(text).arg("two"), Request.cmd(Command.SET).arg(piped).arg("t").arg("NX").arg("PX").arg(30_000),
        Request.cmd(Command.GET).arg(text), Request.cmd(Command.DEL).arg(piped))));
    used.step("pipeline", replies, "[OK, OK, two, 1]");
    CompletableFuture<String> subscribed = new CompletableFuture<>();
    CompletableFuture<String> heard = new CompletableFuture<>();
    own.handler(push -> (push.get(0).toString().equals("message") ? heard : subscribed).complete(push.get(2).toString()));
    get(own.send(Request.cmd(Command.SUBSCRIBE).arg(name + ":news"))); // this waits until it is sent, and no longer
    subscribed.get(Scenarios.SOON, TimeUnit.MILLISECONDS);
    get(redis.send(Request.cmd(Command.PUBLISH).arg(name + ":news").arg("hello")));
    used.step("pub/sub", heard.get(Scenarios.SOON, TimeUnit.MILLISECONDS), "hello");
    used.step("scripts", get(redis.send(Request.cmd(Command.EVAL).arg(DOUBLE).arg(1).arg(number))), "6");
    get(own.close());
  }

  record HandLock(Redis redis, String name, long ttlMs, Buffer token) implements Lock {
    public boolean acquire(long waitMs) throws Exception {
      return poll(waitMs, () -> {
        Response reply = get(redis.send(Request.cmd(Command.SET).arg(name).arg(token).arg("NX").arg("PX").arg(ttlMs)));
        want(reply == null || reply.toString().equals("OK"), "SET: " + reply);
        want(reply == null || Arrays.equals(get(redis.send(Request.cmd(Command.GET).arg(name))).toBytes(), token.getBytes()), "GET tells another token");
        return reply != null;
      });
    }

    public boolean release() throws Exception {
      String sha = get(redis.send(Request.cmd(Command.SCRIPT).arg("LOAD").arg(RELEASE))).toString();
      return get(redis.send(Request.cmd(Command.EVALSHA).arg(sha).arg(1).arg(name).arg(token))).toInteger() == 1;
    }

    public boolean extend(long ttlMs) throws Exception {
      return get(redis.send(Request.cmd(Command.EVAL).arg(EXTEND).arg(1).arg(name).arg(token).arg(ttlMs))).toInteger() == 1;
    }
  }
}
