import java.time.Duration;
import java.util.List;
import java.util.UUID;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;
import org.springframework.data.redis.serializer.RedisSerializer;

/** Spring Data Redis over Lettuce: setIfAbsent and DefaultRedisScript. */
class SpringData extends Library {
  SpringData() {
    super("Spring Data Redis", "spring-data-redis");
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

      public void close() {
        factory.destroy();
      }
    };
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
