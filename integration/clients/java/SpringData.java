import java.time.Duration;
import java.util.List;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.RedisCallback;
import org.springframework.data.redis.core.RedisOperations;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.core.ScanOptions;
import org.springframework.data.redis.core.SessionCallback;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;
import org.springframework.data.redis.listener.ChannelTopic;
import org.springframework.data.redis.listener.RedisMessageListenerContainer;
import org.springframework.data.redis.serializer.RedisSerializer;

/** Spring Data Redis over Lettuce: setIfAbsent and DefaultRedisScript. */
class SpringData extends Library {
  SpringData() {
    this("Spring Data Redis", "spring-data-redis");
  }

  SpringData(String name, String artifact) {
    super(name, artifact);
    tokens = true;
  }

  public static void main(String[] args) throws Exception {
    Scenarios.run(new SpringData());
  }

  Client open() {
    LettuceConnectionFactory factory = Factory.make();
    RedisTemplate<String, byte[]> template = new RedisTemplate<>();
    template.setConnectionFactory(factory);
    template.setKeySerializer(RedisSerializer.string());
    template.setValueSerializer(RedisSerializer.byteArray());
    template.afterPropertiesSet();
    return new Client() {
      public Lock lock(String name, long ttlMs, byte[] token, boolean keep) {
        return new HandLock(template, name, ttlMs, token == null ? UUID.randomUUID().toString().getBytes() : token);
      }

      public void data(Used used, String name, String piped) throws Exception {
        useData(factory, used, name, piped);
      }

      public void close() {
        factory.destroy();
      }
    };
  }

  void useData(LettuceConnectionFactory factory, Used used, String name, String piped) throws Exception {
    use(factory, used, name, piped);
  }

  static void use(LettuceConnectionFactory factory, Used used, String name, String piped) throws Exception {
    StringRedisTemplate redis = new StringRedisTemplate(factory);
    String text = name + ":text";
    String number = name + ":number";
    String fields = name + ":fields";
    String items = name + ":items";
    redis.opsForValue().set(text, "one", Duration.ofSeconds(100));
    used.step("strings", redis.opsForValue().get(text) + redis.opsForValue().increment(number, 2), "one2");
    redis.opsForHash().put(fields, "a", "1");
    used.step("hash", redis.opsForHash().entries(fields), "{a=1}");
    redis.opsForList().rightPushAll(items, "x", "y");
    used.step("list", redis.opsForList().range(items, 0, -1), List.of("x", "y"));
    CompletableFuture<String> popped = CompletableFuture.supplyAsync(() -> redis.opsForList().leftPop(name + ":queue", Duration.ofSeconds(20)));
    redis.opsForList().rightPush(name + ":queue", "z");
    used.step("BLPOP", popped.get(), "z");
    List<Object> replies = redis.execute(new SessionCallback<List<Object>>() {
      @SuppressWarnings("unchecked")
      public <K, V> List<Object> execute(RedisOperations<K, V> operations) {
        RedisOperations<String, String> session = (RedisOperations<String, String>) operations;
        session.watch(number);
        session.multi();
        session.opsForValue().increment(number);
        session.opsForHash().increment(fields, "a", 1);
        return session.exec();
      }
    });
    used.step("WATCH, MULTI", replies, List.of(3, 2));
    replies = redis.executePipelined((RedisCallback<Object>) connection -> {
      connection.stringCommands().set(text.getBytes(), "two".getBytes());
      connection.stringCommands().setNX(piped.getBytes(), "t".getBytes());
      connection.stringCommands().get(text.getBytes());
      connection.keyCommands().del(piped.getBytes());
      return null;
    });
    used.step("pipeline", replies, List.of(true, true, "two", 1));
    CompletableFuture<String> heard = new CompletableFuture<>();
    RedisMessageListenerContainer container = new RedisMessageListenerContainer();
    container.setConnectionFactory(factory);
    container.addMessageListener((message, pattern) -> heard.complete(new String(message.getBody())), ChannelTopic.of(name + ":news"));
    container.afterPropertiesSet();
    container.start();
    poll(Scenarios.SOON, () -> {
      redis.convertAndSend(name + ":news", "hello");
      return heard.isDone();
    });
    container.destroy();
    used.step("pub/sub", heard.get(1, TimeUnit.SECONDS), "hello");
    TreeSet<String> found = new TreeSet<>();
    redis.execute((RedisCallback<Object>) connection -> {
      connection.scan(ScanOptions.scanOptions().match(name + ":*").build()).forEachRemaining(key -> found.add(new String(key)));
      return null;
    });
    used.step("SCAN", found, List.of(fields, items, number, text));
    used.step("scripts", redis.execute(new DefaultRedisScript<>(DOUBLE, Long.class), List.of(number)), 6);
  }

  record HandLock(RedisTemplate<String, byte[]> template, String name, long ttlMs, byte[] token) implements Lock {
    public boolean acquire(long waitMs) throws Exception {
      return poll(waitMs, () -> template.opsForValue().setIfAbsent(name, token, Duration.ofMillis(ttlMs)));
    }

    public boolean release() {
      return template.execute(new DefaultRedisScript<>(RELEASE, Boolean.class), List.of(name), (Object) token);
    }

    public boolean extend(long ttlMs) {
      byte[] ms = Long.toString(ttlMs).getBytes();
      return template.execute(new DefaultRedisScript<>(EXTEND, Long.class), List.of(name), token, ms) == 1;
    }
  }
}
